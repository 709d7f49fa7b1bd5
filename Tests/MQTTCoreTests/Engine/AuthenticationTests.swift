import MQTTCore
import TestSupport
import Testing

@Suite("Engine: enhanced authentication", .heavy)
struct AuthenticationTests {
    private func pair() -> EnginePair {
        let pair = EnginePair(
            client: {
                $0.authenticationMethod = "DANCE"
                $0.authenticationData = [1]
                $0.requestTimeout = 10_000_000_000
            }, server: { $0.requestTimeout = 10_000_000_000 })
        pair.serverAnswers = false
        return pair
    }

    /// A client that is connected, and has just begun to authenticate again.
    private func reauthenticating() throws -> EnginePair {
        let pair = pair()
        try pair.connect()
        pair.server.run { engine, effects in
            try? engine.acceptConnection(sessionPresent: false, at: pair.now, into: &effects)
        }
        pair.settle()
        try pair.client.engine.authenticate(reason: .reauthenticate, data: [4], at: pair.now)
        return pair
    }

    private func authentications(_ end: EnginePair.End) -> [MQTTPacket.Auth] {
        end.events.compactMap { if case .authenticationReceived(let auth) = $0 { auth } else { nil } }
    }

    @Test func `steps are exchanged before CONNACK and again afterwards [MQTT 5.0 4.12]`() throws {
        let pair = pair()
        try pair.connect()
        try pair.server.engine.authenticate(data: [2], at: pair.now)
        pair.settle()
        #expect(authentications(pair.client).last?.properties.authenticationData == [2])
        try pair.client.engine.authenticate(data: [3], at: pair.now)
        pair.settle()
        #expect(authentications(pair.server).last?.properties.authenticationData == [3])
        pair.server.run { engine, effects in
            try? engine.acceptConnection(sessionPresent: false, at: pair.now, into: &effects)
        }
        pair.settle()
        #expect(pair.client.engine.phase == .connected)
        #expect(pair.client.types == [.connect, .auth])
        try pair.client.engine.authenticate(reason: .reauthenticate, data: [4], at: pair.now)
        pair.settle()
        #expect(authentications(pair.server).last?.reasonCode == .reauthenticate)
        try pair.server.engine.authenticate(reason: .success, data: nil, at: pair.now)
        pair.settle()
        #expect(authentications(pair.client).last?.reasonCode == .success)
        pair.advance(seconds: 11)
        #expect(pair.client.failure == nil)
    }

    @Test func `AUTH that arrives while the client waits to leave is no violation`() throws {
        let pair = try reauthenticating()
        pair.settle()
        // PUBREC is on its way.
        try pair.publish("x", qos: .exactlyOnce, from: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.flush()
        pair.client.run { engine, effects in try? engine.leave(within: 2_000_000_000, at: pair.now, into: &effects) }
        #expect(pair.client.engine.phase == .leaving)
        try pair.server.engine.authenticate(reason: .success, data: nil, at: pair.now)
        pair.settle()
        #expect(pair.client.failure == nil)
        #expect(authentications(pair.client).last?.reasonCode == .success)
    }

    @Test func `a step that is late because the caller does not read ends no connection`() throws {
        let pair = try reauthenticating()
        pair.client.engine.setReadingPaused(true, at: pair.now)
        pair.advance(seconds: 40)
        pair.client.engine.setReadingPaused(false, at: pair.now)
        pair.advance(seconds: 9)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 2)
        #expect(pair.client.failure == .authenticationTimeout)
    }

    @Test func `a step without an answer is noticed`() throws {
        let pair = pair()
        try pair.connect()
        try pair.server.engine.authenticate(data: [2], at: pair.now)
        pair.settle()
        pair.advance(seconds: 10)
        #expect(pair.server.failure == .authenticationTimeout)
        #expect(pair.server.shouldClose)
    }

    @Test func `AUTH without a method, or with another one, ends the connection [MQTT-4.12.0-5, 4.12.0-7]`() throws {
        let none = EnginePair()
        try none.connect()
        let auth = MQTTPacket.Auth(
            reasonCode: .continueAuthentication,
            properties: [MQTTProperty(.authenticationMethod, .string("WALTZ"))])
        try none.inject(.auth(auth), into: none.client)
        #expect(none.client.violation?.clause == "MQTT-4.12.0-7")
        let other = pair()
        try other.connect()
        try other.inject(.auth(auth), into: other.client)
        #expect(other.client.violation?.clause == "MQTT-4.12.0-5")
        #expect(throws: MQTTUsageError.self) { try none.server.engine.authenticate(data: nil, at: none.now) }
    }

    @Test func `only what a side may say now is said`() throws {
        let pair = pair()
        try pair.connect()
        for reason in [MQTTReasonCode.reauthenticate, .success] {
            let error = #expect(throws: MQTTUsageError.self) {
                try pair.client.engine.authenticate(reason: reason, data: nil, at: pair.now)
            }
            #expect(error?.code == .answerMismatch)
        }
        let old = EnginePair(version: .v3_1_1)
        try old.connect()
        let error = #expect(throws: MQTTUsageError.self) { try old.client.engine.authenticate(data: nil, at: old.now) }
        #expect(error?.code == .notInThisVersion)
    }

    @Test func `steps before CONNACK do not extend the time to connect`() throws {
        let pair = EnginePair(
            client: {
                $0.authenticationMethod = "DANCE"
                $0.connectTimeout = 5_000_000_000
            })
        pair.serverAnswers = false
        try pair.connect()
        for _ in 0..<4 {
            try pair.server.engine.authenticate(data: [2], at: pair.now)
            pair.settle()
            try pair.client.engine.authenticate(data: [3], at: pair.now)
            pair.settle()
            pair.advance(seconds: 1)
        }
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 1)
        #expect(pair.client.failure == .connectTimeout)
        #expect(authentications(pair.client).count == 4)
    }

    @Test func `a second AUTH before the first was answered ends the connection [MQTT 5.0 4.12]`() throws {
        let auth = MQTTPacket.auth(
            .init(
                reasonCode: .continueAuthentication,
                properties: [MQTTProperty(.authenticationMethod, .string("DANCE"))]))
        // The client owes an answer after the first; the server owes one to CONNECT.
        for connects in [false, true] {
            let pair = pair()
            try pair.connect()
            if connects {
                try pair.inject(auth, into: pair.client)
                #expect(pair.client.violation == nil)
            }
            let end = connects ? pair.client : pair.server
            try pair.inject(auth, into: end)
            #expect(end.violation?.reasonCode == .protocolError)
            #expect(end.violation?.clause == "MQTT 5.0 4.12")
            #expect(authentications(end).count == (connects ? 1 : 0))
        }
    }

    @Test func `AUTH that no authentication asked for ends the connection [MQTT 5.0 4.12.1]`() throws {
        for reason in [MQTTReasonCode.continueAuthentication, .success] {
            let pair = pair()
            pair.serverAnswers = true
            try pair.connect()
            let auth = MQTTPacket.Auth(
                reasonCode: reason, properties: [MQTTProperty(.authenticationMethod, .string("DANCE"))])
            try pair.inject(.auth(auth), into: pair.client)
            #expect(pair.client.violation?.clause == "MQTT 5.0 4.12")
            #expect(authentications(pair.client).isEmpty)
        }
    }

    @Test func `one authentication is renewed at a time, and none without an end`() throws {
        let pair = EnginePair(
            client: {
                $0.authenticationMethod = "DANCE"
                $0.connectTimeout = 5_000_000_000
            })
        try pair.connect()
        try pair.client.engine.authenticate(reason: .reauthenticate, data: [1], at: pair.now)
        let error = #expect(throws: MQTTUsageError.self) {
            try pair.client.engine.authenticate(reason: .reauthenticate, data: [1], at: pair.now)
        }
        #expect(error?.code == .answerMismatch)
        pair.settle()
        for _ in 0..<5 {
            #expect(pair.client.failure == nil)
            try pair.server.engine.authenticate(data: [2], at: pair.now)
            pair.settle()
            try pair.client.engine.authenticate(data: [3], at: pair.now)
            pair.settle()
            pair.advance(seconds: 1)
        }
        #expect(pair.client.failure == .authenticationTimeout)
    }

    @Test func `a re-authentication is not a server's to begin [MQTT 5.0 3.15.2.1]`() throws {
        let pair = pair()
        pair.serverAnswers = true
        try pair.connect()
        let auth = MQTTPacket.Auth(
            reasonCode: .reauthenticate, properties: [MQTTProperty(.authenticationMethod, .string("DANCE"))])
        try pair.inject(.auth(auth), into: pair.client)
        #expect(pair.client.violation?.reasonCode == .protocolError)
        #expect(pair.client.violation?.clause == "MQTT-3.15.2-1")
        #expect(authentications(pair.client).isEmpty)
    }
}

import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Subscriptions to a filter that the client has subscribed already.
@Suite("Client: further subscriptions of one filter", .turns)
struct FurtherSubscriptionTests {
    /// A server that keeps the SUBSCRIBE and UNSUBSCRIBE packets that it receives, and answers SUBSCRIBE itself unless it
    /// withholds that.
    private final class Server: Sendable {
        private struct State {
            var subscribed: [MQTTPacket.Subscribe] = []
            var unsubscribed: [String] = []
            var withholds = false
            var unanswered: [(step: ScriptedServer.Step, packetID: UInt16)] = []
        }

        private let state = Mutex(State())
        private let scripted = Mutex<ScriptedServer?>(nil)

        init(clock: ManualClock? = nil) {
            let server = ScriptedServer(clock: clock) { [weak self] step in self?.handle(step) }
            scripted.withLock { $0 = server }
        }

        var scriptedServer: ScriptedServer { scripted.withLock { $0! } }
        var subscribed: [MQTTSubscriptionRequest] { state.withLock { $0.subscribed.flatMap(\.subscriptions) } }
        var properties: [MQTTProperties] { state.withLock { $0.subscribed.map(\.properties) } }
        var unsubscribed: [String] { state.withLock { $0.unsubscribed } }
        var unansweredCount: Int { state.withLock { $0.unanswered.count } }
        func setWithholding(_ withholds: Bool) { state.withLock { $0.withholds = withholds } }

        /// Answers the SUBSCRIBE at this place among those that are not answered.
        func answer(_ code: MQTTReasonCode, at place: Int = 0) {
            let found = state.withLock { state in
                place < state.unanswered.count ? state.unanswered.remove(at: place) : nil
            }
            guard let (step, packetID) = found else { return }
            step.perform { try? $0.engine.acknowledgeSubscribe(packetID, codes: [code], at: MonotonicClock.now) }
        }

        func send(_ text: String, to topic: String, retain: Bool = false) {
            scriptedServer.link?.perform { machine in
                _ = try? machine.engine.publish(
                    topic: topic, payload: Array(text.utf8), qos: .atMostOnce, retain: retain, properties: [],
                    token: 1, at: MonotonicClock.now)
            }
        }

        private func handle(_ step: ScriptedServer.Step) {
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let packet):
                let isWithheld = state.withLock { state in
                    state.subscribed.append(packet)
                    if state.withholds { state.unanswered.append((step, packet.packetID)) }
                    return state.withholds
                }
                guard !isWithheld else { return }
                step.perform { machine in
                    let codes = packet.subscriptions.map { MQTTReasonCode(rawValue: $0.qos.rawValue) }
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
                }
            case .unsubscribeReceived(let packet):
                state.withLock { $0.unsubscribed += packet.filters }
                step.perform { machine in
                    try? machine.engine.acknowledgeUnsubscribe(
                        packet.packetID, codes: packet.filters.map { _ in .success }, at: MonotonicClock.now)
                }
            default: break
            }
        }
    }

    private func isRefusal(_ error: any Error) -> Bool { (error as? MQTTError)?.code == .refused }

    // MARK: Retained messages

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `each sequence of a filter begins with its retained messages`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
        var sequences: [MQTTSubscription] = []
        for qos in [QoS.atLeastOnce, .atMostOnce, .exactlyOnce, .atLeastOnce] {
            let door = try await client.subscribe(to: "house/+", qos: qos)
            let first = try #require(try await door.first(1).first)
            #expect(first.text == "closed" && first.isRetained)
            sequences.append(door)
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `sequences of a filter that are opened at once each get its retained message`(version: MQTTVersion)
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<8 {
                group.addTask { try await client.subscribe(to: "house/door").first(1).first?.text }
            }
            for try await text in group { #expect(text == "closed") }
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `sequences that want no retained messages or are shared send no second SUBSCRIBE`() async throws {
        let server = Server()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = [
            try await client.subscribe(to: "a"), try await client.subscribe(to: "$share/workers/a"),
        ]
        #expect(server.subscribed.map(\.filter) == ["a", "$share/workers/a"])
        let further = [
            try await client.subscribe(to: "a", retainHandling: .sendIfNew),
            try await client.subscribe(to: "a", qos: .atMostOnce, retainHandling: .doNotSend),
            try await client.subscribe(to: "$share/workers/a"),
        ]
        #expect(further.map(\.reasonCodes) == [[.grantedQoS2], [.grantedQoS2], [.grantedQoS2]])
        #expect(server.subscribed.count == 2)
        server.send("x", to: "a")
        for messages in first + further { #expect(try await messages.first(1).map(\.text) == ["x"]) }
        await client.disconnect()
    }

    @Test
    func `the SUBSCRIBE for a further sequence keeps the QoS, the options and the properties of the subscription`()
        async throws
    {
        let server = Server()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        var properties = MQTTProperties()
        properties.subscriptionIdentifiers = [7]
        let first = try await client.subscribe(
            to: "a", qos: .exactlyOnce, noLocal: true, retainAsPublished: true, retainHandling: .doNotSend,
            properties: properties)
        let second = try await client.subscribe(to: "a", qos: .atMostOnce)
        var expected = MQTTSubscriptionRequest(
            filter: "a", qos: .exactlyOnce, noLocal: true, retainAsPublished: true, retainHandling: .doNotSend)
        #expect(server.subscribed.first == expected)
        expected.retainHandling = .sendAtSubscribe
        #expect(server.subscribed.dropFirst() == [expected])
        #expect(server.properties == [properties, properties])
        #expect(second.grantedQoS == .exactlyOnce)
        withExtendedLifetime(first) {}
        await client.disconnect()
    }

    /// The first one has them, or wants none.
    @Test func `a sequence with a higher QoS that wants no retained messages does not repeat them`() async throws {
        let server = Server()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        let second = try await client.subscribe(to: "a", qos: .atLeastOnce, retainHandling: .doNotSend)
        #expect(server.subscribed.map(\.qos) == [.atMostOnce, .atLeastOnce])
        #expect(server.subscribed.map(\.retainHandling) == [.sendAtSubscribe, .doNotSend])
        // A server without the session has neither.
        server.scriptedServer.link?.dropConnection()
        #expect(await eventually { server.subscribed.count == 3 })
        #expect(server.subscribed.last?.qos == .atLeastOnce)
        #expect(server.subscribed.last?.retainHandling == .sendAtSubscribe)
        withExtendedLifetime((first, second)) {}
        await client.disconnect()
    }

    // MARK: The server's answers

    @Test func `each of two subscribes to a filter returns with the answer to its own SUBSCRIBE`() async throws {
        let server = Server()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let isAnswered = Mutex(false)
        let second = Task {
            defer { isAnswered.withLock { $0 = true } }
            return try await client.subscribe(to: "a")
        }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answer(.grantedQoS1)
        #expect(try await first.value.grantedQoS == .atLeastOnce)
        #expect(!isAnswered.withLock { $0 })
        server.answer(.success)
        #expect(try await second.value.grantedQoS == .atMostOnce)
        await client.disconnect()
    }

    /// With the same QoS and with a higher one.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atMostOnce, .atLeastOnce])
    func `a refused further subscribe throws, and the first sequence continues`(version: MQTTVersion, qos: QoS)
        async throws
    {
        let server = Server()
        let client = server.scriptedServer.client { $0.version = version }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a", qos: qos) }
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(version.hasProperties ? .notAuthorized : .unspecifiedError)
        await #expect { _ = try await second.value } throws: { isRefusal($0) }
        server.send("x", to: "a")
        #expect(try await first.first(1).map(\.text) == ["x"])
        #expect(server.unsubscribed.isEmpty)
        // What was refused is not asked for again.
        server.setWithholding(false)
        server.scriptedServer.link?.dropConnection()
        #expect(await eventually { server.subscribed.count == 3 })
        #expect(server.subscribed.last?.qos == .atMostOnce)
        await client.disconnect()
    }

    @Test func `a refused first subscribe throws, and the further one that is granted continues`() async throws {
        let server = Server()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answer(.notAuthorized)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        server.answer(.success)
        let messages = try await second.value
        server.send("x", to: "a")
        #expect(try await messages.first(1).map(\.text) == ["x"])
        await client.disconnect()
    }

    @Test func `two refused subscribes to a filter throw, whatever the order of the answers`() async throws {
        let server = Server()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answer(.notAuthorized, at: 1)
        await #expect { _ = try await second.value } throws: { isRefusal($0) }
        server.answer(.notAuthorized)
        await #expect { _ = try await first.value } throws: { isRefusal($0) }
        #expect(server.unsubscribed.isEmpty)
        await client.disconnect()
    }

    @Test func `a further subscribe without an answer times out, and the first sequence continues`() async throws {
        let clock = try ManualClock()
        let server = Server(clock: clock)
        let client = server.scriptedServer.client { $0.requestTimeout = .seconds(50) }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        await clock.advance(by: .seconds(50))
        await #expect { _ = try await second.value } throws: { ($0 as? MQTTError)?.code == .timedOut }
        server.send("x", to: "a")
        #expect(try await first.first(1).map(\.text) == ["x"])
        #expect(server.unsubscribed.isEmpty)
        await client.disconnect()
    }

    // MARK: Ends

    @Test(arguments: [MQTTReasonCode.success, .notAuthorized])
    func `a further subscribe that is cancelled leaves the first sequence alone, whatever is answered`(
        code: MQTTReasonCode
    ) async throws {
        let server = Server()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        second.cancel()
        await #expect { _ = try await second.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        server.answer(code)
        server.send("x", to: "a")
        #expect(try await first.first(1).map(\.text) == ["x"])
        #expect(server.unsubscribed.isEmpty)
        try await first.unsubscribe()
        #expect(server.unsubscribed == ["a"])
        await client.disconnect()
    }

    /// Of the further one.
    @Test(arguments: [MQTTReasonCode.success, .notAuthorized])
    func `the first sequence may end before the further one is answered`(code: MQTTReasonCode) async throws {
        let server = Server()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        try await first.unsubscribe()
        #expect(server.unsubscribed.isEmpty)
        server.answer(code)
        if code.isError {
            await #expect { _ = try await second.value } throws: { isRefusal($0) }
        } else {
            let messages = try await second.value
            server.send("x", to: "a")
            #expect(try await messages.first(1).map(\.text) == ["x"])
            try await messages.unsubscribe()
        }
        #expect(await eventually { server.unsubscribed == ["a"] })
        await client.disconnect()
    }

    @Test func `a further subscribe whose connection is lost is answered on the next one`() async throws {
        let server = Server()
        let client = server.scriptedServer.client { $0.requestTimeout = .patience }
        try await client.connect()
        let first = try await client.subscribe(to: "a")
        server.setWithholding(true)
        let second = Task { try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        server.setWithholding(false)
        server.scriptedServer.link?.dropConnection()
        let messages = try await second.value
        #expect(server.subscribed.count == 3)
        server.send("x", to: "a")
        for messages in [first, messages] { #expect(try await messages.first(1).map(\.text) == ["x"]) }
        await client.disconnect()
    }
}

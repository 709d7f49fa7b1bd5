import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing

/// What client and server say to each other beside the codes.
@Suite("Client: answers and remarks", .turns)
struct AnswerTests {
    private func remark(_ reason: String, _ pairs: (String, String)...) -> MQTTProperties {
        var properties = MQTTProperties()
        properties.reasonString = reason
        properties.userProperties = pairs.map { MQTTUserProperty($0.0, $0.1) }
        return properties
    }

    private func users(_ pairs: (String, String)...) -> MQTTProperties {
        var properties = MQTTProperties()
        properties.userProperties = pairs.map { MQTTUserProperty($0.0, $0.1) }
        return properties
    }

    @Test func `what a server remarks to a message reaches its publisher`() async throws {
        let accepted = remark("nobody listens", ("node", "3"))
        let received = remark("taken", ("node", "4"), ("node", "5"))
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        server.remark { message in
            message.flags.qos == .atLeastOnce
                ? [
                    .puback(
                        .init(
                            packetID: message.packetID, reasonCode: .noMatchingSubscribers, properties: accepted))
                ]
                : [
                    .pubrec(
                        .init(
                            packetID: message.packetID, reasonCode: .noMatchingSubscribers, properties: received))
                ]
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let first = try await client.publish(MQTTOutgoingMessage([], to: "a", qos: .atLeastOnce))
        #expect(first == MQTTPublishResult(.noMatchingSubscribers, properties: accepted))
        let second = try await client.publish(MQTTOutgoingMessage([], to: "a", qos: .exactlyOnce))
        #expect(second == MQTTPublishResult(.noMatchingSubscribers, properties: received))
        #expect(second.properties.userProperties.map(\.value) == ["4", "5"])
        let third = try await client.publish(MQTTOutgoingMessage([], to: "a", qos: .atMostOnce))
        #expect(third == MQTTPublishResult(.success))
        await client.disconnect()
    }

    @Test func `a server that refuses to unsubscribe makes unsubscribe() throw`() async throws {
        let said = remark("not now")
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let subscribe):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: subscribe.subscriptions.map { _ in .success }, at: 0)
                }
            case .unsubscribeReceived(let unsubscribe):
                let codes = unsubscribe.filters.map { $0 == "b" ? .success : MQTTReasonCode.notAuthorized }
                step.perform { machine in
                    try? machine.engine.acknowledgeUnsubscribe(
                        unsubscribe.packetID, codes: codes, properties: said, at: 0)
                }
            default: break
            }
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let refused = try await client.subscribe(to: "a")
        await #expect { try await refused.unsubscribe() } throws: { error in
            guard let error = error as? MQTTError else { return false }
            return error.code == .refused && error.reasonCode == .notAuthorized && error.properties == said
        }
        // As with SUBSCRIBE, one filter that was not refused is enough.
        let mixed = try await client.subscribe(to: [.init(filter: "a"), .init(filter: "b")])
        let answer = try await mixed.unsubscribe(properties: [])
        #expect(answer.reasonCodes.map(\.isError) == [true, false])
        await client.disconnect()
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `a refusal says it in the server's words, one by one and in a batch`(qos: QoS) async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        server.remark { message in
            // The middle one of three is refused; what is said about the others is not taken for it.
            let isRefused = message.payloadCount == 2
            var properties = MQTTProperties()
            properties.reasonString = isRefused ? "the quota is 17" : "fine"
            let answer = MQTTPacket.Acknowledgement(
                packetID: message.packetID, reasonCode: isRefused ? .quotaExceeded : .success, properties: properties)
            return [message.flags.qos == .atLeastOnce ? .puback(answer) : .pubrec(answer)]
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        do throws(MQTTError) {
            try await client.publish([1, 2], to: "a", qos: qos)
            Issue.record("it was accepted")
        } catch {
            #expect(error.code == .refused && error.reasonCode == .quotaExceeded)
            #expect(error.properties.reasonString == "the quota is 17")
            #expect(error.message.contains("the quota is 17"))
        }
        do throws(MQTTError) {
            try await client.publish(
                [[1], [1, 2], [1, 2, 3]].map { .init($0, to: "a", qos: qos) }
            ).check()
            Issue.record("it was accepted")
        } catch {
            #expect(error.properties.reasonString == "the quota is 17")
        }
        var events = client.events.makeAsyncIterator()
        try await client.enqueue(MQTTOutgoingMessage([1, 2], to: "a", qos: qos))
        while let event = await events.next() {
            guard case .undelivered(let error) = event else { continue }
            #expect(error.properties.reasonString == "the quota is 17")
            break
        }
        await client.disconnect()
    }

    @Test func `SUBSCRIBE and UNSUBSCRIBE carry words, and so do their answers`() async throws {
        let asked = users(("who", "me"), ("who", "still me"))
        let granted = remark("with pleasure", ("shard", "2"))
        let refused = remark("not this one")
        let forgotten = remark("bye", ("left", "0"))
        let seen = Mutex<[MQTTProperties]>([])
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let packet):
                seen.withLock { $0.append(packet.properties) }
                let isRefused = packet.subscriptions.contains { $0.filter == "no" }
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        packet.packetID, codes: packet.subscriptions.map { _ in isRefused ? .notAuthorized : .success },
                        properties: isRefused ? refused : granted, at: 0)
                }
            case .unsubscribeReceived(let packet):
                seen.withLock { $0.append(packet.properties) }
                step.perform { machine in
                    try? machine.engine.acknowledgeUnsubscribe(
                        packet.packetID, codes: [.noSubscriptionExisted], properties: forgotten, at: 0)
                }
            default: break
            }
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(to: "a", properties: asked)
        #expect(messages.grantProperties == granted)
        let plain = try await client.subscribe(to: "b")
        #expect(seen.withLock { $0 } == [asked, []])
        // Both are made again, each as it was asked for.
        server.link?.dropConnection()
        #expect(await eventually { seen.withLock { $0.count } == 4 })
        #expect(Set(seen.withLock { $0[2...] }) == [asked, []])
        do throws(MQTTError) {
            _ = try await client.subscribe(to: "no")
            Issue.record("it was granted")
        } catch {
            #expect(error.properties == refused)
            #expect(error.message.contains("not this one"))
        }
        let answer = try await messages.unsubscribe(properties: asked)
        #expect(answer.reasonCodes == [.noSubscriptionExisted] && answer.properties == forgotten)
        #expect(seen.withLock { $0.last } == asked)
        try await plain.unsubscribe()
        await client.disconnect()
    }

    @Test func `words with a subscription need 5_0`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v3_1_1 }
        let asked = users(("who", "me"))
        await #expect { _ = try await client.subscribe(to: "a", properties: asked) } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        await #expect { try await client.disconnect(reason: .disconnectWithWillMessage) } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        #expect(client.state.isConnected)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `DISCONNECT carries reason, words and another session expiry`() async throws {
        let farewell = Mutex<MQTTPacket.Disconnect?>(nil)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .disconnectReceived(let packet): farewell.withLock { $0 = packet }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.sessionExpiry = .seconds(60)
        }
        try await client.connect()
        var properties = remark("moving house", ("to", "the sea"))
        properties.sessionExpiryInterval = 3600
        // What only servers say is a mistake, and nothing ends for it.
        for reason in [MQTTReasonCode.serverMoved, .notAuthorized] {
            await #expect { try await client.disconnect(reason: reason) } throws: {
                ($0 as? MQTTError)?.code == .invalidRequest
            }
        }
        var wrong = MQTTProperties()
        wrong.contentType = "x"
        await #expect { try await client.disconnect(reason: .normalDisconnection, properties: wrong) } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        #expect(client.state.isConnected)
        try await client.disconnect(reason: .disconnectWithWillMessage, properties: properties)
        #expect(await eventually { farewell.withLock { $0 != nil } })
        #expect(farewell.withLock { $0?.reasonCode } == .disconnectWithWillMessage)
        #expect(farewell.withLock { $0?.properties } == properties)
        // Without a connection there is nobody to say it to.
        try await client.disconnect(reason: .disconnectWithWillMessage)
    }

    @Test func `a session that CONNECT let die is not revived, and a will is published on request`() async throws {
        let bench = try await Bench()
        let watcher = try await bench.connected()
        let wills = try await watcher.subscribe(to: "will")
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.will = MQTTWill([7], to: "will")
        }
        var properties = MQTTProperties()
        properties.sessionExpiryInterval = 60
        await #expect { try await client.disconnect(reason: .normalDisconnection, properties: properties) } throws: {
            ($0 as? MQTTError)?.message.contains("sessionExpiry") == true
        }
        try await client.disconnect(reason: .disconnectWithWillMessage)
        #expect(try await wills.first(1).first?.bytes == [7])
        await watcher.disconnect()
        await bench.stop()
    }
}

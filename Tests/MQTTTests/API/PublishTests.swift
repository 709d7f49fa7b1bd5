import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@Suite("Client: publishing", .turns)
struct PublishTests {
    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0], QoS.allCases)
    func `what is published arrives once and in order`(version: MQTTVersion, qos: QoS) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let messages = try await client.subscribe(to: "a/+", qos: qos)
        #expect(messages.grantedQoS == qos)
        for number in 0..<50 { try await client.publish("\(number)", to: "a/b", qos: qos) }
        let received = try await messages.first(50)
        #expect(received.map(\.text) == (0..<50).map { "\($0)" })
        #expect(received.allSatisfy { $0.topic == "a/b" && $0.qos == qos && $0.droppedBefore == 0 })
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [1 << 20, 4_096])
    func `an array of QoS 0, 1 and 2 in turn arrives in order, without a wait for each acknowledgement`(
        outbox: Int
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumOutboxBytes = outbox }
        let messages = try await client.subscribe(to: "a")
        let before = client.counters
        try await client.publish(
            (0..<900).map { number in
                MQTTOutgoingMessage(
                    Array("\(number)".utf8) + [UInt8](repeating: 0x20, count: 100), to: "a",
                    qos: QoS.allCases[number % 3])
            }
        ).check()
        let received = try await messages.first(900)
        let numbers = received.compactMap { Int($0.text?.split(separator: " ").first ?? "") }
        #expect(numbers == Array(0..<900))
        #expect(client.counters.messagesSent - before.messagesSent == 900)
        if outbox == 1 << 20 { #expect(client.counters.writes - before.writes < 300) }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `an empty payload is a message, and a retained one is delivered to later subscribers`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        try await client.publish("kept", to: "r", qos: .atLeastOnce, retain: true)
        let messages = try await client.subscribe(to: "r")
        let kept = try #require(try await messages.first(1).first)
        #expect(kept.isRetained && kept.text == "kept")
        try await client.publish([], to: "r", qos: .atLeastOnce, retain: true)
        let cleared = try #require(try await messages.first(1).first)
        #expect(cleared.bytes.isEmpty && !cleared.isRetained)
        #expect(bench.broker.retainedCount == 0)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `cancelling a publish ends the wait, and the message still goes through`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let waiting = Task { () -> MQTTError.Code? in
            do throws(MQTTError) {
                try await client.publish("slow", to: "a", qos: .atLeastOnce)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(try await messages.first(1).first?.text == "slow")
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        // The identifier stays taken: what follows has another one, and is acknowledged as itself.
        bench.broker.changeFaults { $0.withholdsAcknowledgements = false }
        try await client.publish("next", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(1).first?.text == "next")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a publish of a cancelled task is refused before anything is sent`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let task = Task { () -> MQTTError.Code? in
            withUnsafeCurrentTask { $0?.cancel() }
            do throws(MQTTError) {
                try await client.publish("never", to: "a", qos: .exactlyOnce)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await task.value == .cancelled)
        #expect(client.counters.messagesSent == 0)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `cancelling a publish of many messages while their acknowledgements arrive ends it once`(
        qos: QoS
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = (0..<50).map { MQTTOutgoingMessage([UInt8($0)], to: "a", qos: qos) }
        var random = SeededGenerator(seed: Campaign.seed)
        let measured = try await ContinuousClock().measure { try await client.publish(messages).check() }
        // On a busy machine one publish may take seconds.
        let undisturbed = min(measured, .milliseconds(20))
        var cancelled = 0
        for _ in 0..<300 {
            let publishing = Task { () -> MQTTError.Code? in
                do throws(MQTTError) {
                    try await client.publish(messages).check()
                    return nil
                } catch {
                    return error.code
                }
            }
            let moment = ContinuousClock.now + undisturbed * Double.random(in: 0..<1, using: &random)
            while ContinuousClock.now < moment { await Task.yield() }
            publishing.cancel()
            let code = await publishing.value
            #expect(code == nil || code == .cancelled)
            if code == .cancelled { cancelled += 1 }
        }
        #expect(cancelled > 0)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `ten thousand publishes from many tasks keep the order of each task`() async throws {
        let bench = try await Bench { $0.limits.maximumSessionMessages = 20_000 }
        let client = try await bench.connected { $0.maximumQueuedMessages = 20_000 }
        let messages = try await client.subscribe(to: "order/#", qos: .atLeastOnce)
        let receiver = Task { try await messages.first(10_000).map { ($0.topic, Int($0.text ?? "") ?? -1) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<50 {
                group.addTask {
                    for number in 0..<200 {
                        let qos = number % 2 == 0 ? QoS.atMostOnce : .atLeastOnce
                        // Of one QoS, so that the broker keeps the order too.
                        try await client.publish("\(number)", to: "order/\(task)/\(qos.rawValue)", qos: qos)
                    }
                }
            }
            try await group.waitForAll()
        }
        var last: [String: Int] = [:]
        for (topic, number) in try await receiver.value {
            #expect(number > last[topic] ?? -1)
            last[topic] = number
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `an array continues after a message that cannot be sent, whose result is its error`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "#")
        for qos in QoS.allCases {
            let array = ["good", "bad/#", "late"].map { MQTTOutgoingMessage([1], to: $0, qos: qos) }
            let results = await client.publish(array)
            #expect(results.map { (try? $0.get())?.reasonCode } == [.success, nil, .success])
            #expect(throws: MQTTError.self) { try results[1].get() }
            #expect { try results.check() } throws: { ($0 as? MQTTError)?.code == .invalidRequest }
            #expect(try await messages.first(2).map(\.topic) == ["good", "late"])
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `each message of an array has the server's answer, in the order of the array`() async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let remark: MQTTProperties = [MQTTProperty(.reasonString, .string("because"))]
        let held = Mutex<[UInt16]>([])
        server.remark { message in
            guard message.flags.qos == .atLeastOnce else {
                return [.pubrec(.init(packetID: message.packetID, reasonCode: .notAuthorized, properties: remark))]
            }
            // The first is answered after the last.
            let number = held.withLock { held in
                held.append(message.packetID)
                return held.count
            }
            switch number {
            case 1: return []
            case 3: return [.puback(.init(packetID: message.packetID, reasonCode: .quotaExceeded, properties: remark))]
            case 60:
                let first = held.withLock { $0[0] }
                return [
                    .puback(.init(packetID: message.packetID, reasonCode: .noMatchingSubscribers)),
                    .puback(.init(packetID: first, reasonCode: .noMatchingSubscribers, properties: remark)),
                ]
            default: return [.puback(.init(packetID: message.packetID, reasonCode: .success))]
            }
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        var array = (0..<60).map {
            MQTTOutgoingMessage([$0], to: "a/topic/that/is/long", qos: .atLeastOnce)
        }
        array.insert(.init([], to: "b", qos: .exactlyOnce), at: 30)
        array.append(.init([], to: "b", qos: .atMostOnce))
        let results = await client.publish(array)
        var expected = Array(repeating: MQTTReasonCode.success, count: 62)
        (expected[0], expected[2], expected[30], expected[60]) = (
            .noMatchingSubscribers, .quotaExceeded, .notAuthorized, .noMatchingSubscribers
        )
        let codes = results.map { result -> MQTTReasonCode? in
            switch result {
            case .success(let answer): answer.reasonCode
            case .failure(let error): error.reasonCode
            }
        }
        #expect(codes == expected)
        #expect(try results[0].get().properties == remark)
        #expect { try results[2].get() } throws: { ($0 as? MQTTError)?.properties == remark }
        #expect { try results.check() } throws: { ($0 as? MQTTError)?.reasonCode == .quotaExceeded }
        await client.disconnect()
    }

    @Test func `a cancelled array has the answers that have come, and the others are cancelled`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let qualities: [QoS] = [.atMostOnce, .atLeastOnce, .atLeastOnce, .exactlyOnce, .atMostOnce]
        let array = qualities.enumerated().map { MQTTOutgoingMessage([], to: $0 == 2 ? "#" : "a", qos: $1) }
        let publishing = Task { await client.publish(array) }
        #expect(await eventually { client.counters.messagesSent >= 4 })
        publishing.cancel()
        let codes = await publishing.value.map { result -> MQTTError.Code? in
            guard case .failure(let error) = result else { return nil }
            return error.code
        }
        #expect(codes == [nil, .cancelled, .invalidRequest, .cancelled, nil])
        await bench.stop()
    }

    @Test func `a full outbox makes the publisher wait, and a try fails at once`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumOutboxBytes = 4096 }
        bench.damage(client) { $0.capacity = 0 }
        var taken = 0
        // The loop takes the outbox out once before it finds that the wire takes nothing.
        for _ in 0..<2 {
            while try client.tryPublish(MQTTOutgoingMessage([UInt8](repeating: 0, count: 1000), to: "a")) { taken += 1 }
            await EventLoop.shared.result {}
        }
        let waiting = Task { _ = try await client.publish([UInt8](repeating: 0, count: 1000), to: "a") }
        try await Task.sleep(for: .milliseconds(50))
        #expect(client.counters.messagesSent == taken)
        bench.damage(client) { $0.capacity = 1 << 20 }
        try await waiting.value
        #expect(client.counters.messagesSent == taken + 1)
        await client.disconnect()
        await bench.stop()
    }
}

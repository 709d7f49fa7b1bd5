import MQTTCore
import TestSupport
import Testing
import Transport

@testable import MQTT

/// Arrays of messages, some of which cannot be sent.
@Suite("Client: arrays of messages", .turns)
struct ArrayTests {
    /// The codes of the results; nil for success.
    private func errorCodes(_ results: MQTTClient.PublishResults) -> [MQTTError.Code?] {
        results.map { if case .failure(let error) = $0 { error.code } else { nil } }
    }

    private struct Case: Sendable, CustomTestStringConvertible {
        var isConnectedAgain: Bool
        /// Whether a QoS 1 message follows.
        var isMixed: Bool
        var queues = false

        var testDescription: String {
            "\(isMixed ? "QoS 0 and 1" : "QoS 0"), continued \(isConnectedAgain ? "after" : "before") the reconnect"
                + (queues ? ", queuesQoS0WhileOffline" : "")
        }
    }

    private static let cases = [true, false].flatMap { isConnectedAgain in
        [true, false].flatMap { isMixed in
            [true, false].map { Case(isConnectedAgain: isConnectedAgain, isMixed: isMixed, queues: $0) }
        }
    }

    @Test(arguments: cases)
    private func
        `when the connection ends, the QoS 0 messages that were not sent fail, however soon there is another one`(
            situation: Case
        ) async throws
    {
        let bench = try await Bench()
        let observer = try await bench.connected()
        let seen = try await observer.subscribe(to: "t/#", qos: .atLeastOnce)
        let client = try await bench.connected {
            $0.maximumOutboxBytes = 10_000
            $0.queuesQoS0WhileOffline = situation.queues
        }
        // Nothing leaves the client.
        bench.damage(client) { $0.capacity = 0 }
        let executor = HeldExecutor()
        let count = 1_000
        let publishing = Task(executorPreference: executor) {
            let payload = [UInt8](repeating: 0, count: 100)
            var messages = (0..<count).map { MQTTOutgoingMessage(payload, to: "t/\($0)", qos: .atMostOnce) }
            if situation.isMixed {
                messages.append(MQTTOutgoingMessage(payload, to: "t/last", qos: .atLeastOnce))
            }
            return errorCodes(await client.publish(messages))
        }
        await executor.run()
        if !situation.isConnectedAgain { bench.setNetwork(up: false) }
        client.core.link.dropConnection()
        #expect(await eventually { !client.state.isConnected || client.counters.connections == 2 })
        if !situation.isConnectedAgain { await executor.run() }
        bench.setNetwork(up: true)
        #expect(await eventually { client.state.isConnected && client.counters.connections == 2 })
        var codes = await executor.run(until: publishing)
        if situation.isMixed { #expect(codes.removeLast() == nil) }
        let sent = codes.prefix { $0 == nil }.count
        #expect(sent > 0)
        #expect(codes.dropFirst(sent).allSatisfy { $0 == .notConnected })
        #expect(situation.queues ? sent == count : sent < count)
        // Those that failed are not published later.
        try await client.publish("end", to: "t/end", qos: .atLeastOnce)
        var last = -1
        for try await message in seen {
            if message.topic == "t/end" { break }
            if message.topic != "t/last" { last = try #require(Int(message.topic.dropFirst(2))) }
        }
        #expect(situation.queues ? last == count - 1 : last < sent)
        await client.disconnect()
        await observer.disconnect()
        await bench.stop()
    }

    @Test(arguments: [true, false])
    func `the QoS 0 messages of an array that begins without a connection all fail`(isMixed: Bool) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        bench.setNetwork(up: false)
        await bench.cut()
        #expect(await eventually { !client.state.isConnected })
        let executor = HeldExecutor()
        let publishing = Task(executorPreference: executor) {
            // More than may be in flight come first.
            var messages = (0..<(isMixed ? 2_000 : 0)).map {
                MQTTOutgoingMessage([], to: "t/\($0)", qos: .atLeastOnce)
            }
            messages += (0..<100).map { MQTTOutgoingMessage([], to: "t/\($0)", qos: .atMostOnce) }
            return errorCodes(await client.publish(messages))
        }
        await executor.run()
        bench.setNetwork(up: true)
        #expect(await eventually { client.state.isConnected })
        let codes = await executor.run(until: publishing)
        #expect(
            codes == Array(repeating: nil, count: isMixed ? 2_000 : 0) + Array(repeating: .notConnected, count: 100))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `what exceeds the window leaves as acknowledgements arrive, while the task waits once`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumInFlight = 10 }
        let executor = HeldExecutor()
        let count = 1_000
        let publishing = Task(executorPreference: executor) {
            let messages = (0..<count).map {
                MQTTOutgoingMessage([], to: "t/\($0)", qos: $0 % 2 == 0 ? .atLeastOnce : .atMostOnce)
            }
            return errorCodes(await client.publish(messages))
        }
        await executor.run()
        // The task is not run meanwhile.
        #expect(await eventually { client.counters.messagesSent == count && client.backlog.messagesInFlight == 0 })
        #expect(await executor.run(until: publishing) == Array(repeating: nil, count: count))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a message that is refused after the window was full has its own result`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumInFlight = 10 }
        let messages = (0..<100).map {
            MQTTOutgoingMessage([], to: $0 % 30 == 29 ? "a/+" : "t/\($0)", qos: .atLeastOnce)
        }
        #expect(errorCodes(await client.publish(messages)) == (0..<100).map { $0 % 30 == 29 ? .invalidRequest : nil })
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a cancelled array sends nothing more when acknowledgements arrive`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumInFlight = 10 }
        // Acknowledgements come later.
        bench.damage(client) { $0.capacity = 0 }
        let executor = HeldExecutor()
        let publishing = Task(executorPreference: executor) {
            let messages = (0..<100).map { MQTTOutgoingMessage([], to: "t/\($0)", qos: .atLeastOnce) }
            return errorCodes(await client.publish(messages))
        }
        await executor.run()
        publishing.cancel()
        bench.damage(client) { $0.capacity = .max }
        #expect(await eventually { client.backlog.messagesInFlight == 0 })
        // Acknowledgements that have arrived count.
        #expect(await executor.run(until: publishing) == (0..<100).map { $0 < 10 ? nil : .cancelled })
        #expect(client.counters.messagesSent == 10)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `refused messages hold the lock for a bounded number of them`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let batch = MQTTSendBatch(
            (0..<250).map { _ in MQTTOutgoingMessage([], to: "a/+", qos: .atLeastOnce) })
        var refused: [Int] = []
        for next in [100, 200, 250] {
            let unsent = client.core.link.perform { machine in
                var unsent: [MQTTMachine.Unsent] = []
                var dropped = MQTTEndedPublishers()
                _ = machine.feed(batch, client.core.settings, upTo: .max, &unsent, &dropped)
                return unsent
            }
            #expect(batch.next == next && unsent.allSatisfy { $0.error?.code == .invalidTopic })
            refused += unsent.map(\.place)
        }
        #expect(refused == Array(0..<250))
        client.core.link.perform { $0.publishers.batches.remove(batch, failing: nil) }
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce])
    func `of very many messages each has its own result`(qos: QoS) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let count = 10_000
        let messages = (0..<count).map { number in
            MQTTOutgoingMessage([], to: number % 1_000 == 0 ? "a" : "a/+", qos: qos)
        }
        let codes = errorCodes(await client.publish(messages))
        #expect(codes == (0..<count).map { $0 % 1_000 == 0 ? nil : .invalidRequest })
        await client.disconnect()
        await bench.stop()
    }
}

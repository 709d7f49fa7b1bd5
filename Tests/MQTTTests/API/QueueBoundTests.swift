import MQTTCore
import MessagingShell
import TestSupport
import Testing

@testable import MQTT

/// What happens at the bounds of the queue and the outbox.
@Suite("Client: bounds of the queue", .turns)
struct QueueBoundTests {
    private let small = MQTTOutgoingMessage([UInt8](repeating: 1, count: 100), to: "t")
    private let large = MQTTOutgoingMessage([UInt8](repeating: 2, count: 2_000), to: "t")

    private func isTooLarge(_ error: any Error) -> Bool {
        guard let error = error as? MQTTError else { return false }
        return error.code == .queueFull && error.message.contains("maximumQueuedBytes")
            && (error.underlying as? MQTTUsageError)?.code == .largerThanQueue
    }

    @Test(arguments: [MQTTConfiguration.QueueOverflow.reject, .dropOldest, .newestPerTopic, .wait])
    func `a message that is larger than the whole queue is refused, and nothing is dropped for it`(
        overflow: MQTTConfiguration.QueueOverflow
    ) async throws {
        let bench = try await Bench()
        bench.setNetwork(up: false)
        let client = bench.client {
            $0.maximumQueuedBytes = 1_000
            $0.queueOverflow = overflow
            $0.queuesQoS0WhileOffline = true
        }
        await client.start()
        for _ in 0..<3 { try await client.enqueue(small) }
        for qos in [QoS.atMostOnce, .atLeastOnce] {
            let large = MQTTOutgoingMessage(large.payload, to: "t", qos: qos)
            await #expect { try await client.publish(large) } throws: { isTooLarge($0) }
        }
        await #expect { try await client.enqueue(large) } throws: { isTooLarge($0) }
        #expect(client.backlog.queuedMessages == 3)
        await client.disconnect()
        await bench.stop()
    }

    /// Seed 20261129000729: the connection ended after the message had been refused for want of room.
    @Test func `a message of QoS 0 does not wait for room without a connection`() async throws {
        // Answers nothing, not even CONNECT.
        let server = ScriptedServer { _ in }
        let client = server.client()
        await client.start()
        try await client.core.sender.roomForAtMostOnce()
        await client.disconnect()
    }

    /// The client stopped between the refusal of a message and the wait for room. Enqueued messages fill the queue, and stay.
    @Test func `a publisher does not wait for room at a client that has stopped`() async throws {
        let bench = try await Bench()
        let client = bench.client {
            $0.maximumQueuedMessages = 1
            $0.queueOverflow = .wait
        }
        try await client.enqueue(small)
        try await withTimeout(.patience, "room at a client that has stopped") {
            try await client.core.sender.waitForQueue()
        }
        let enqueuing = Task { try await client.enqueue(small) }
        // That one is for a later connection.
        try await client.connect()
        _ = try await enqueuing.value(within: .patience, "what was enqueued")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `where messages are stored first, one that is larger than the whole queue does not block the others`()
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.maximumQueuedBytes = 1_000
            $0.queueOverflow = .wait
            $0.sessionStore = MemorySessionStore()
        }
        await #expect { try await client.publish(large) } throws: { isTooLarge($0) }
        let results = await client.publish([small, large, small])
        #expect(results.count == 3)
        #expect((try? results[0].get()) != nil && (try? results[2].get()) != nil)
        #expect { _ = try results[1].get() } throws: { isTooLarge($0) }
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTConfiguration.QueueOverflow.reject, .dropOldest, .newestPerTopic, .wait])
    func `an array that is larger than the queue waits without a connection, and nothing is dropped for it`(
        overflow: MQTTConfiguration.QueueOverflow
    ) async throws {
        let bench = try await Bench()
        bench.setNetwork(up: false)
        let client = bench.client {
            $0.maximumQueuedMessages = 2
            $0.queueOverflow = overflow
        }
        await client.start()
        try await client.enqueue(small)
        let small = small
        let publishing = Task { await client.publish([small, small, small]) }
        #expect(await eventually { client.backlog.queuedMessages == 2 })
        bench.setNetwork(up: true)
        let results = await publishing.value
        try results.check()
        #expect(client.counters.messagesSent == 4)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `an outbox without room for a byte takes one message at a time`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumOutboxBytes = 0 }
        let messages = try await client.subscribe(to: "t", qos: .atLeastOnce)
        try await client.publish("a", to: "t")
        try await client.publish("b", to: "t", qos: .atLeastOnce)
        try await client.publish([MQTTOutgoingMessage("c", to: "t", qos: .atMostOnce)]).check()
        #expect(try await messages.first(3).map(\.text) == ["a", "b", "c"])
        await client.disconnect()
        await bench.stop()
    }
}

import Foundation
import MQTT
import MessagingShell
import Synchronization
import TestSupport
import Testing
import Transport

/// One at a time: each client whose `withExecutor` is under way is told when the thread is held.
@Suite("Client: executor and counters", .serialized, .turns)
struct ExecutorTests {
    @Test func `tasks on the client's executor run on the loop, and wait for answers there`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: .exactlyOnce)
        try await client.withExecutor {
            #expect(EventLoop.shared.isCurrent)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        try await client.publish(
                            "\(number)", to: "a", qos: number % 2 == 0 ? .exactlyOnce : .atLeastOnce)
                        #expect(EventLoop.shared.isCurrent)
                    }
                }
                try await group.waitForAll()
            }
            // A plain QoS 0 flood from the loop itself must not wait for the loop.
            for _ in 0..<5_000 { try await client.publish("x", to: "b") }
        }
        #expect(!EventLoop.shared.isCurrent)
        #expect(Set(try await messages.first(50).compactMap(\.text)).count == 50)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a piece of a task that holds the executor is reported, and one that waits is not`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let events = client.events
        try await client.withExecutor {
            try await Task.sleep(for: .milliseconds(150))
            // As a program does that computes or blocks.
            usleep(150_000)
        }
        await client.disconnect()
        var holds: [Duration] = []
        for await event in events {
            if case .executorHeld(let time) = event { holds.append(time) }
            if case .stateChanged(.disconnected) = event { break }
        }
        // A busy machine may bring others.
        #expect(holds.contains { $0 >= .milliseconds(150) })
        await bench.stop()
    }

    @Test func `a task on the executor that reads the report of a hold continues at once`() async throws {
        let bench = try await Bench()
        // No deadline wakes the loop.
        let client = bench.client { $0.keepAlive = .zero }
        try await client.connect()
        let events = client.events
        let hasRead = Atomic(false)
        let reading = Task(executorPreference: client.executor) {
            for await event in events {
                guard case .executorHeld = event else { continue }
                return hasRead.store(true, ordering: .relaxed)
            }
        }
        // As a program does that computes or blocks.
        await client.withExecutor { _ = usleep(150_000) }
        // Looking does not wake the loop.
        #expect(await eventually { hasRead.load(ordering: .relaxed) })
        await client.disconnect()
        await reading.value
        await bench.stop()
    }

    @Test func `counters tell what crossed the transport`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        // They are brought up to date when what was under way is done.
        #expect(await eventually { client.counters.bytesReceived == 4 && client.counters.bytesSent > 0 })
        let before = client.counters
        #expect(before.connections == 1)
        try await client.publish([UInt8](repeating: 1, count: 1_000), to: "a", qos: .atLeastOnce)
        #expect(await eventually { client.counters.bytesReceived == before.bytesReceived + 4 })
        // Fixed header of 3, topic of 3, identifier of 2.
        #expect(await eventually { client.counters.bytesSent == before.bytesSent + 1_008 })
        let after = client.counters
        #expect(after.messagesSent == before.messagesSent + 1)
        #expect(after.writes > before.writes && after.reads > before.reads)
        await client.disconnect()
        await bench.stop()
    }
}

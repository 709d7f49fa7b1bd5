import Foundation
import STOMP
import TestSupport
import Testing

/// One at a time: each client whose `withExecutor` is under way is told when the thread is held.
@Suite("Client: executor", .serialized, .turns)
struct ExecutorTests {
    @Test func `a piece of a task that holds the executor is reported, and one that waits is not`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
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
        }
    }
}

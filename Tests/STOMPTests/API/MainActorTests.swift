import STOMP
import TestSupport
import Testing

/// What a caller on the main actor costs: resuming a task that waited may take one job on no actor; leaving the main
/// actor and coming back would take another with each call.
@Suite("Client: callers on the main actor", .turns)
struct MainActorTests {
    @Test func `a caller on the main actor does not leave it to connect, to send or to receive`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let executor = CountingExecutor()
            try await withTaskExecutorPreference(executor) { try await Self.call(client, executor) }
            await client.disconnect()
        }
    }

    @MainActor private static func call(_ client: STOMPClient, _ executor: CountingExecutor) async throws {
        let calls = 50
        var messages = try await client.subscribe(to: "/topic/a").makeAsyncIterator()

        // Connected already.
        var jobs = executor.jobs
        for _ in 0..<calls { try await client.connect() }
        #expect(executor.jobs - jobs <= calls)

        jobs = executor.jobs
        var slow = 0
        for _ in 0..<calls {
            let start = ContinuousClock.now
            try await client.sendAndConfirm("1", to: "/topic/b")
            // It waited once more, with a cancellation handler.
            if ContinuousClock.now - start >= .milliseconds(50) { slow += 1 }
        }
        #expect(executor.jobs - jobs <= calls + slow)

        // An answer that is there at once costs no job, unless the loop has the link's lock just then.
        jobs = executor.jobs
        for _ in 0..<calls { _ = try? await client.sendAndConfirm("1", to: "") }
        #expect(executor.jobs - jobs <= calls / 2)

        jobs = executor.jobs
        for _ in 0..<calls { try await client.sendForReceipt(STOMPOutgoingMessage([2], to: "/topic/b")).confirmed() }
        #expect(executor.jobs - jobs <= calls)

        jobs = executor.jobs
        for _ in 0..<calls {
            // Sending suspends only while the outbox is full.
            try await client.send([3], to: "/topic/a")
            #expect(try await messages.next()?.bytes.count == 1)
        }
        #expect(executor.jobs - jobs <= calls)
    }
}

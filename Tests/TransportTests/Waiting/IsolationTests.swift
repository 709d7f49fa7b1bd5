import TestSupport
import Testing

@testable import Transport

@Suite("Waiters: the caller's actor")
struct IsolationTests {
    /// Answers that are there at once, because how a task is resumed is the executor's affair: leaving the actor would
    /// cost a job with each call all the same.
    @Test func `a caller on the main actor does not leave it to wait`() async {
        let executor = CountingExecutor()
        let jobs = await withTaskExecutorPreference(executor) { await Self.wait(executor) }
        #expect(jobs == 0)
    }

    @MainActor private static func wait(_ executor: CountingExecutor) async -> Int {
        let before = executor.jobs
        for number in 0..<50 {
            let call = PendingCall<Int>()
            call.end(number)
            #expect(await call.answer(onCancel: {}) == number)
            #expect(await answered(number) == number)
        }
        return executor.jobs - before
    }

    private nonisolated(nonsending) static func answered(_ number: Int) async -> Int {
        await waiting { waiter in
            waiter.resume(returning: number)
        } onCancel: {
        }
    }
}

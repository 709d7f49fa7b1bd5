import MessagingWire
import Synchronization
import TestSupport
import Testing

@testable import Transport

@Suite("Waiters")
struct WaiterTests {
    @Test func `a waiter that is moved through a lock is resumed with its answer`() async {
        let place = Lock<Waiter<Int>?>(nil)
        let waiting = Task {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Int, Never>) in
                let waiter = Waiter(continuation)
                var carried: Waiter<Int>? = waiter
                place.withLock { $0 = carried.take() }
            }
        }
        var waiter: Waiter<Int>?
        while waiter == nil {
            await Task.yield()
            waiter = place.withLock { $0.take() }
        }
        waiter.take()?.resume(returning: 7)
        #expect(await waiting.value == 7)
    }

    @Test func `a waiter that is dropped is reported`() async {
        #if DEBUG
            // A debug build stops where it happens.
            await #expect(processExitsWith: .failure) {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                    _ = Waiter(continuation)
                    continuation.resume()
                }
            }
        #else
            await #expect(processExitsWith: .success) {
                await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                    _ = Waiter(continuation)
                    continuation.resume()
                }
                precondition(DroppedWaiters.count == 1)
            }
        #endif
    }
}

@Suite("Pending calls")
struct PendingCallTests {
    @Test func `an answer that comes before the caller waits is the answer`() async {
        let call = PendingCall<Int>()
        #expect(call.end(1))
        #expect(!call.end(2))
        #expect(await call.answer() == 1)
    }

    @Test func `of an answer and a cancellation at the same time one ends the call`() async {
        for _ in 0..<200 {
            let call = PendingCall<Int>()
            let waiting = Task {
                await call.answer {
                } onCancel: {
                    call.end(-1)
                }
            }
            async let answered = call.end(1)
            waiting.cancel()
            let answer = await waiting.value
            #expect(await answered == (answer == 1))
        }
    }

    @Test func `a call of a cancelled task does not begin`() async {
        let begun = Atomic(false)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let call = PendingCall<Int>()
            return await call.answer {
                begun.store(true, ordering: .relaxed)
            } onCancel: {
                call.end(-1)
            }
        }
        #expect(await task.value == -1)
        let hasBegun = begun.load(ordering: .relaxed)
        #expect(!hasBegun)
    }

    @Test func `a job's result comes back from the loop`() async {
        #expect(await EventLoop.shared.result { EventLoop.shared.isCurrent })
    }
}

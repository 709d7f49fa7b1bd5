import Synchronization
import TestSupport
import Testing
import Wire

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

    @Test func `slots hand each waiter out once, and an old token finds nothing`() async {
        let room = Room()
        let first = room.slots.withLock { $0.reserve() }
        let wait = Task { await room.wait(at: first) }
        while room.slots.withLock({ $0.count }) == 0 { await Task.yield() }
        room.slots.withLock { $0.take(first) }?.resume(returning: 1)
        #expect(await wait.value == 1)
        #expect(room.slots.withLock { $0.take(first) == nil })
        let second = room.slots.withLock { $0.reserve() }
        #expect(second != first)
        room.slots.withLock { $0.release(second) }
        #expect(room.slots.withLock { $0.take(second) == nil })
    }

    @Test func `taking all waiters hands out those first that have waited longest`() async {
        let room = Room()
        let tokens = room.slots.withLock { slots in (0..<4).map { _ in slots.reserve() } }
        var waits: [Task<Int, Never>] = []
        // Not in the order of their slots.
        for (number, token) in tokens.reversed().enumerated() {
            waits.append(Task { await room.wait(at: token) })
            while room.slots.withLock({ $0.count }) <= number { await Task.yield() }
        }
        var taken = room.slots.withLock { $0.takeAll() }
        #expect(taken.count == 4)
        var place = 0
        taken.drain { waiter in
            waiter.resume(returning: place)
            place += 1
        }
        for (number, wait) in waits.enumerated() { #expect(await wait.value == number) }
    }

    private final class Room: Sendable {
        let slots = Lock(WaiterSlots<Int>())

        func wait(at token: WaiterSlots<Int>.Token) async -> Int {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Int, Never>) in
                var waiter: Waiter<Int>? = Waiter(continuation)
                slots.withLock { slots in
                    if let waiter = waiter.take() { slots.add(waiter, at: token) }
                }
            }
        }
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

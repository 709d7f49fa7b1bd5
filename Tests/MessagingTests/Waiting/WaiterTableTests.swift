import Messaging
import Synchronization
import TestSupport
import Testing

@Suite(.turns) struct WaiterTableTests {
    /// A table behind a lock, as in a link, with callers that wait in it.
    private final class Desk: Sendable {
        let table = Mutex(WaiterTable<Int>())
        let tokens = Mutex<[UInt64: UInt64]>([:])

        func wait(_ callerID: UInt64) async -> Int {
            let answer = await withTaskCancellationHandler {
                await withUnsafeContinuation { waiter in
                    let token = table.withLock { table -> UInt64? in
                        table.wasCancelledEarly(callerID) ? nil : table.add(waiter, callerID: callerID)
                    }
                    guard let token else { return waiter.resume(returning: -1) }
                    tokens.withLock { $0[callerID] = token }
                }
            } onCancel: {
                table.withLock { $0.cancel(callerID) }?.resume(returning: -2)
            }
            table.withLock { $0.forget(callerID) }
            return answer
        }

        func token(_ callerID: UInt64) async -> UInt64 {
            _ = await eventually { self.tokens.withLock { $0[callerID] != nil } }
            return tokens.withLock { $0[callerID] ?? .max }
        }

        func answer(_ token: UInt64, _ answer: Int) -> Bool {
            let waiter = table.withLock { $0.take(token) }
            waiter?.resume(returning: answer)
            return waiter != nil
        }
    }

    @Test func `each caller gets the answer to its own token, in any order`() async {
        let desk = Desk()
        let callers = (1...50).map { id in Task { await desk.wait(UInt64(id)) } }
        for id in (1...50).shuffled() { #expect(desk.answer(await desk.token(UInt64(id)), id * 10)) }
        for (index, caller) in callers.enumerated() { #expect(await caller.value == (index + 1) * 10) }
    }

    @Test func `a token of an earlier use of its slot is recognised`() async {
        let desk = Desk()
        let first = Task { await desk.wait(1) }
        let old = await desk.token(1)
        #expect(desk.answer(old, 1))
        let second = Task { await desk.wait(2) }
        let new = await desk.token(2)
        #expect(new != old)
        #expect(!desk.answer(old, 99))
        #expect(!desk.answer(.max, 99))
        #expect(desk.answer(new, 2))
        #expect(!desk.answer(new, 99))
        #expect(await first.value == 1)
        #expect(await second.value == 2)
    }

    @Test func `a caller that is cancelled leaves its token taken until the answer comes`() async {
        let desk = Desk()
        let caller = Task { await desk.wait(1) }
        let token = await desk.token(1)
        caller.cancel()
        #expect(await caller.value == -2)
        let other = Task { await desk.wait(2) }
        #expect(await desk.token(2) != token)
        #expect(!desk.answer(token, 5))
        #expect(desk.answer(await desk.token(2), 7))
        #expect(await other.value == 7)
    }

    @Test func `a caller that is cancelled before it waits does not wait`() async {
        let desk = Desk()
        for id in 1...100 {
            let caller = Task { () -> Int in
                while !Task.isCancelled { await Task.yield() }
                return await desk.wait(UInt64(id))
            }
            caller.cancel()
            #expect(await caller.value == -1)
        }
    }

    @Test func `a cancellation that comes too late leaves nothing behind`() {
        var table = WaiterTable<Int>()
        let found = [table.cancel(7), table.cancel(8)]
        #expect(found.allSatisfy { $0 == nil })
        table.forget(7)
        let wasCancelled = [7, 8, 8].map { table.wasCancelledEarly($0) }
        #expect(wasCancelled == [false, true, false])
    }

    @Test func `answers and cancellations that race resume everybody once`() async {
        let desk = Desk()
        for round in 0..<Campaign.rounds(20_000, least: 300) {
            let id = UInt64(round + 1)
            let caller = Task { await desk.wait(id) }
            let canceller = Task { caller.cancel() }
            if let token = desk.tokens.withLock({ $0[id] }) { _ = desk.answer(token, 1) }
            let answerer = Task {
                while caller.isCancelled == false { await Task.yield() }
                if let token = desk.tokens.withLock({ $0[id] }) { _ = desk.answer(token, 1) }
            }
            #expect([1, -1, -2].contains(await caller.value))
            await canceller.value
            await answerer.value
        }
    }

    @Test func `everybody can be taken at once`() async {
        let desk = Desk()
        let callers = (1...20).map { id in Task { await desk.wait(UInt64(id)) } }
        for id in 1...20 { _ = await desk.token(UInt64(id)) }
        let token = await desk.token(3)
        for waiter in desk.table.withLock({ $0.takeAll() }) { waiter.resume(returning: 0) }
        for caller in callers { #expect(await caller.value == 0) }
        #expect(!desk.answer(token, 1))
    }
}

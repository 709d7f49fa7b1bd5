import MessagingWire
import Synchronization
import TestSupport
import Testing

@testable import Transport

@Suite("Waiters: many under one lock", .turns) struct WaitersTests {
    /// A table behind a lock, as in a link, with callers that wait in it.
    private final class Desk: Sendable {
        let table = Lock(Waiters<Int>())
        /// Of callers that have begun to wait.
        let tokens = Mutex<[Int: UInt64]>([:])

        /// Returns the answer, or -1 when cancelled.
        func wait(_ caller: Int) async -> Int {
            let token = Atomic(Waiters<Int>.noToken)
            return await waiting { waiter in
                var waiter: Waiter<Int>? = waiter
                table.withLock { table in
                    guard !Task.isCancelled, let waiter = waiter.take() else { return }
                    let added = table.add(waiter)
                    token.store(added, ordering: .relaxed)
                    tokens.withLock { $0[caller] = added }
                }
                waiter.take()?.resume(returning: -1)
            } onCancel: {
                table.withLock { $0.take(token.load(ordering: .relaxed)) }?.resume(returning: -1)
            }
        }

        /// Begins to wait, and returns once the caller is in the table.
        func begin(_ caller: Int) async -> (Task<Int, Never>, UInt64) {
            let task = Task { await self.wait(caller) }
            return (task, await token(caller))
        }

        func token(_ caller: Int) async -> UInt64 {
            _ = await eventually { self.tokens.withLock { $0[caller] != nil } }
            return tokens.withLock { $0[caller] ?? .max }
        }

        /// Returns whether a caller waited.
        @discardableResult
        func answer(_ token: UInt64, _ answer: Int) -> Bool {
            let waiter = table.withLock { $0.take(token) }
            guard let waiter else { return false }
            waiter.resume(returning: answer)
            return true
        }

        func contains(_ token: UInt64) -> Bool { table.withLock { $0.contains(token) } }
        var slotCount: Int { table.withLock { $0.slotCount } }
        var count: Int { table.withLock { $0.count } }
    }

    @Test func `each caller gets the answer to its own token, in any order`() async {
        let desk = Desk()
        let callers = (1...50).map { number in Task { await desk.wait(number) } }
        for number in (1...50).shuffled() { #expect(desk.answer(await desk.token(number), number)) }
        for (index, caller) in callers.enumerated() { #expect(await caller.value == index + 1) }
        #expect(desk.count == 0)
    }

    @Test func `the token of an earlier use of a slot finds nothing`() async {
        let desk = Desk()
        let (first, old) = await desk.begin(1)
        #expect(desk.answer(old, 1))
        let (second, new) = await desk.begin(2)
        #expect(desk.slotCount == 1, "one slot serves both")
        #expect(!desk.contains(old) && desk.contains(new))
        #expect(!desk.answer(old, 99) && !desk.answer(Waiters<Int>.noToken, 99))
        #expect(desk.answer(new, 2))
        #expect(!desk.answer(new, 99))
        #expect(await first.value == 1)
        #expect(await second.value == 2)
    }

    @Test func `the three highest bits of a token are zero`() async {
        let desk = Desk()
        desk.table.withLock { $0.lastNumber = .max - 1 }
        let (last, high) = await desk.begin(1)
        let (next, low) = await desk.begin(2)
        #expect(high < 1 << 61)
        var all = desk.table.withLock { $0.takeAll() }
        var place = 0
        all.drain { waiter in
            waiter.resume(returning: place)
            place += 1
        }
        #expect(await last.value == 0, "numbers that begin again do not change the order")
        #expect(await next.value == 1)
        #expect(low < high)
    }

    @Test func `a caller that is cancelled returns at once, and its answer reaches no other caller`() async {
        let desk = Desk()
        for number in 1...100 {
            let (caller, token) = await desk.begin(number)
            caller.cancel()
            #expect(await caller.value == -1)
            let (other, otherToken) = await desk.begin(-number)
            #expect(!desk.answer(token, 5))
            #expect(desk.answer(otherToken, 7))
            #expect(await other.value == 7)
        }
        #expect(desk.slotCount == 1)
    }

    @Test func `a caller whose task is cancelled before it waits is not added`() async {
        let desk = Desk()
        let caller = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await desk.wait(1)
        }
        #expect(await caller.value == -1)
        #expect(desk.slotCount == 0)
    }

    @Test func `slots of many callers are given up when they are gone, and their tokens find nothing`() async {
        let desk = Desk()
        let count = 3_000
        let callers = (0..<count).map { number in Task { await desk.wait(number) } }
        var tokens: [UInt64] = []
        for number in 0..<count { tokens.append(await desk.token(number)) }
        #expect(desk.slotCount == count)
        // One of the first stays: the table keeps what is in front of it.
        let stays = tokens.firstIndex { $0 & 0x1FFF_FFFF == 10 } ?? 0
        for number in (0..<count).reversed() where number != stays { desk.answer(tokens[number], 1) }
        // Some more come and go, as on a connection in use.
        for number in count..<(2 * count) {
            let (caller, token) = await desk.begin(number)
            #expect(desk.answer(token, 1))
            _ = await caller.value
            if desk.slotCount < 1_024 { break }
        }
        #expect(desk.slotCount < 1_024)
        for token in tokens where token != tokens[stays] { #expect(!desk.contains(token)) }
        let new = (0..<count).map { number in Task { await desk.wait(10_000 + number) } }
        for number in 0..<count { #expect(!tokens.contains(await desk.token(10_000 + number))) }
        for number in 0..<count { desk.answer(await desk.token(10_000 + number), 2) }
        desk.answer(tokens[stays], 3)
        #expect(desk.slotCount == 0, "all are gone")
        for caller in callers { _ = await caller.value }
        for caller in new { #expect(await caller.value == 2) }
    }

    @Test func `answers and cancellations that race resume each caller once`() async {
        let desk = Desk()
        for number in 0..<Campaign.rounds(20_000, least: 300) {
            let (caller, token) = await desk.begin(number)
            let canceller = Task { caller.cancel() }
            let answerer = Task { desk.answer(token, 1) }
            let answer = await caller.value
            await canceller.value
            #expect(await answerer.value == (answer == 1))
        }
        #expect(desk.slotCount == 1, "one slot served all of them")
    }

    @Test func `taking all callers hands out those first that have waited longest`() async {
        let desk = Desk()
        var callers: [Task<Int, Never>] = []
        var tokens: [UInt64] = []
        for number in 0..<20 {
            let (caller, token) = await desk.begin(number)
            callers.append(caller)
            tokens.append(token)
        }
        // The slots of these are used again by the youngest.
        for number in [3, 11, 7] { desk.answer(tokens[number], number) }
        for number in 20..<23 { callers.append(await desk.begin(number).0) }
        var taken = desk.table.withLock { $0.takeAll() }
        #expect(taken.count == 20)
        var order = (0..<23).filter { ![3, 11, 7].contains($0) }[...]
        taken.drain { $0.resume(returning: order.removeFirst()) }
        for (number, caller) in callers.enumerated() { #expect(await caller.value == number) }
        #expect(desk.count == 0)
        let (caller, token) = await desk.begin(23)
        #expect(desk.answer(token, 23))
        #expect(await caller.value == 23)
    }
}

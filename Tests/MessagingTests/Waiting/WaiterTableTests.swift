import Messaging
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@Suite(.turns) struct WaiterTableTests {
    /// A table behind a lock, as in a link, with callers that wait in it.
    private final class Desk: Sendable {
        let table = Mutex(WaiterTable<Int>())
        let tokens = Mutex<[Int: UInt64]>([:])

        /// Returns the answer, 1,000 and the code of a quick success, or -1 when cancelled.
        func wait(_ caller: Int, at now: Int64 = 0) async -> Int {
            let first = await withUnsafeContinuation { waiter in
                let token = table.withLock { $0.add(Waiter(waiter), at: now) }
                tokens.withLock { $0[caller] = token }
            }
            guard let call = first.call else { return 1000 + Int(first.code) }
            return await call.answer(ifCancelled: -1)
        }

        func token(_ caller: Int) async -> UInt64 {
            _ = await eventually { self.tokens.withLock { $0[caller] != nil } }
            return tokens.withLock { $0[caller] ?? .max }
        }

        func answer(_ token: UInt64, _ answer: Int) {
            var resumptions = Resumptions<Int>()
            table.withLock { $0.answer(token, answer, into: &resumptions) }
            resumptions.resume()
        }

        func succeed(_ token: UInt64, _ code: UInt8) -> Bool {
            let waiter = table.withLock { $0.succeed(token) }
            guard let waiter else { return false }
            waiter.resume(returning: .success(code))
            return true
        }

        /// Returns how many callers were moved to the second stage.
        func look(at now: Int64) -> Int {
            var resumptions = Resumptions<Int>()
            table.withLock { $0.look(at: now, into: &resumptions) }
            let count = resumptions.quick.count
            resumptions.resume()
            return count
        }

        /// Returns how many callers a look visited.
        func visits(at now: Int64) -> Int {
            let before = table.withLock { $0.visits }
            _ = look(at: now)
            return Int(table.withLock { $0.visits } - before)
        }

        var slotCount: Int { table.withLock { $0.slotCount } }

        /// Moves all callers to the second stage.
        func turnWhole() {
            _ = look(at: 1 << 40)
            _ = look(at: 1 << 41)
        }

        func isAwaited(_ token: UInt64) -> Bool { table.withLock { $0.isAwaited(token) } }

        var nextLook: Int64 { table.withLock { $0.nextLook } }
    }

    @Test func `each caller gets the answer to its own token, quick or whole, in any order`() async {
        let desk = Desk()
        let callers = (1...50).map { number in Task { await desk.wait(number) } }
        for number in (1...50).shuffled() {
            let token = await desk.token(number)
            if number % 2 == 0 { #expect(desk.succeed(token, UInt8(number))) } else { desk.answer(token, number) }
        }
        for (index, caller) in callers.enumerated() {
            let number = index + 1
            #expect(await caller.value == (number % 2 == 0 ? 1000 + number : number))
        }
    }

    @Test func `a token of an earlier use of its slot is recognised`() async {
        let desk = Desk()
        let first = Task { await desk.wait(1) }
        let old = await desk.token(1)
        #expect(desk.succeed(old, 1))
        let second = Task { await desk.wait(2) }
        let new = await desk.token(2)
        #expect(new != old)
        #expect(!desk.succeed(old, 99) && !desk.succeed(.max, 99))
        desk.answer(old, 99)
        desk.answer(.max, 99)
        #expect(desk.succeed(new, 2))
        #expect(!desk.succeed(new, 99))
        #expect(await first.value == 1001)
        #expect(await second.value == 1002)
    }

    @Test
    func
        `a caller that waits long moves to the second stage at the second look, and no look is due when no caller waits`()
        async
    {
        let desk = Desk()
        let patience = WaiterTable<Int>.patience
        #expect(desk.nextLook == .max)
        let early = Task { await desk.wait(1, at: 100) }
        let first = await desk.token(1)
        #expect(desk.nextLook == 100 + patience)
        #expect(desk.look(at: 99 + patience) == 0)
        #expect(desk.look(at: 100 + patience) == 0, "it may have come a moment ago")
        let late = Task { await desk.wait(2, at: 101 + patience) }
        let second = await desk.token(2)
        #expect(desk.look(at: 100 + 2 * patience) == 1)
        #expect(!desk.succeed(first, 1), "it is in the second stage")
        desk.answer(first, 5)
        #expect(desk.succeed(second, 2))
        #expect(await early.value == 5)
        #expect(await late.value == 1002)
        #expect(desk.look(at: 100 + 3 * patience) == 0)
        #expect(desk.nextLook == .max)
    }

    @Test func `a caller that is cancelled leaves its token taken until the answer comes`() async {
        let desk = Desk()
        let caller = Task { await desk.wait(1) }
        let token = await desk.token(1)
        desk.turnWhole()
        caller.cancel()
        #expect(await caller.value == -1)
        let other = Task { await desk.wait(2) }
        let otherToken = await desk.token(2)
        #expect(UInt32(truncatingIfNeeded: otherToken) != UInt32(truncatingIfNeeded: token), "another slot")
        desk.answer(token, 5)
        #expect(desk.succeed(otherToken, 7))
        #expect(await other.value == 1007)
        let third = Task { await desk.wait(3) }
        let fourth = Task { await desk.wait(4) }
        let slots = Set([await desk.token(3), await desk.token(4)].map { UInt32(truncatingIfNeeded: $0) })
        #expect(slots == [0, 1], "both slots are free again")
        desk.answer(await desk.token(3), 0)
        desk.answer(await desk.token(4), 0)
        _ = (await third.value, await fourth.value)
    }

    @Test func `a caller that was cancelled in the first stage returns when it moves to the second`() async {
        let desk = Desk()
        for number in 1...100 {
            let caller = Task { await desk.wait(number) }
            let token = await desk.token(number)
            caller.cancel()
            desk.turnWhole()
            #expect(await caller.value == -1)
            desk.answer(token, 5)
        }
        #expect(await desk.token(100) & 0xFFFF_FFFF == 0, "one slot served all of them")
    }

    @Test func `an answer that comes before its caller waits reaches the caller, cancelled or not`() async {
        let desk = Desk()
        let caller = Task {
            let first = await withUnsafeContinuation { waiter in
                var ended: Resumption<QuickAnswer<Int>>?
                let token = desk.table.withLock { table in
                    let token = table.add(Waiter(waiter), at: 0)
                    ended = table.answerAtOnce(token, 8)
                    return token
                }
                desk.tokens.withLock { $0[1] = token }
                ended.take()?.resume()
            }
            withUnsafeCurrentTask { $0?.cancel() }
            return await first.call?.answer(ifCancelled: -1)
        }
        #expect(await caller.value == 8)
        let isAwaited = await desk.isAwaited(desk.token(1))
        #expect(!isAwaited, "its slot is free")
    }

    @Test func `a caller in the second stage returns at once when it is cancelled, without another look`() async {
        let desk = Desk()
        let callers = (1...20).map { number in Task { await desk.wait(number) } }
        for number in 1...20 { _ = await desk.token(number) }
        desk.turnWhole()
        for caller in callers { caller.cancel() }
        for caller in callers { #expect(await caller.value == -1) }
        for number in 1...20 {
            let token = await desk.token(number)
            #expect(!desk.isAwaited(token))
            desk.answer(token, 5)
        }
        #expect(desk.nextLook == .max)
    }

    @Test func `slots of many callers are given up when they are gone, and their tokens stay unknown`() async {
        let desk = Desk()
        let count = 3_000
        let callers = (0..<count).map { number in Task { await desk.wait(number) } }
        var tokens: [UInt64] = []
        for number in 0..<count { tokens.append(await desk.token(number)) }
        #expect(desk.slotCount == count)
        // One of the first stays: the table keeps what is in front of it.
        let stays = tokens.firstIndex { $0 & 0xFFFF_FFFF == 10 } ?? 0
        for number in (0..<count).reversed() where number != stays { desk.answer(tokens[number], 1) }
        // Some more come and go, as on a connection in use.
        for number in count..<(2 * count) {
            let caller = Task { await desk.wait(number) }
            #expect(desk.succeed(await desk.token(number), 1))
            _ = await caller.value
            if desk.slotCount < 1_024 { break }
        }
        #expect(desk.slotCount < 1_024)
        for token in tokens where token != tokens[stays] { #expect(!desk.isAwaited(token)) }
        let new = (0..<count).map { number in Task { await desk.wait(10_000 + number) } }
        for number in 0..<count { #expect(!tokens.contains(await desk.token(10_000 + number))) }
        for number in 0..<count { desk.answer(await desk.token(10_000 + number), 2) }
        desk.answer(tokens[stays], 3)
        #expect(desk.slotCount == 0, "all are gone")
        for caller in callers { _ = await caller.value }
        for caller in new { #expect(await caller.value == 2) }
    }

    @Test func `a look visits the callers in the first stage, and none of those that wait long`() async {
        let desk = Desk()
        let callers = (0..<500).map { number in Task { await desk.wait(number) } }
        for number in 0..<500 { _ = await desk.token(number) }
        desk.turnWhole()
        let late = Task { await desk.wait(500, at: 1 << 41) }
        let token = await desk.token(500)
        #expect(desk.visits(at: 1 << 42) == 1)
        #expect(desk.visits(at: 1 << 43) == 1)
        #expect(desk.visits(at: 1 << 44) == 0)
        desk.answer(token, 1)
        for number in 0..<500 { desk.answer(await desk.token(number), 1) }
        for caller in callers + [late] { #expect(await caller.value == 1) }
    }

    @Test func `answers and cancellations that race resume each caller once`() async {
        let desk = Desk()
        for number in 0..<Campaign.rounds(20_000, least: 300) {
            let caller = Task { await desk.wait(number) }
            let canceller = Task { caller.cancel() }
            let looker = Task { desk.turnWhole() }
            let answerer = Task {
                let token = await desk.token(number)
                if number % 2 == 0 || !desk.succeed(token, 1) { desk.answer(token, 1) }
            }
            #expect([1, -1, 1001].contains(await caller.value))
            await canceller.value
            await looker.value
            await answerer.value
        }
        // Whatever happened, no slot is lost.
        let callers = (0..<3).map { number in Task { await desk.wait(-1 - number) } }
        for number in 0..<3 {
            let token = await desk.token(-1 - number)
            #expect(token & 0xFFFF_FFFF < 3)
            desk.answer(token, 0)
        }
        for caller in callers { _ = await caller.value }
    }

    @Test func `all callers can be answered at once`() async {
        let desk = Desk()
        let callers = (1...20).map { number in Task { await desk.wait(number) } }
        for number in 1...20 { _ = await desk.token(number) }
        desk.turnWhole()
        let quick = (21...40).map { number in Task { await desk.wait(number) } }
        for number in 21...40 { _ = await desk.token(number) }
        var resumptions = Resumptions<Int>()
        desk.table.withLock { $0.answerAll(4, into: &resumptions) }
        resumptions.resume()
        for caller in callers + quick { #expect(await caller.value == 4) }
    }
}

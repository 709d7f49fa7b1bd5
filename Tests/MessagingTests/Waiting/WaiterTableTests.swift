import Messaging
import Synchronization
import TestSupport
import Testing
import Wire
import Transport

@Suite(.turns) struct WaiterTableTests {
    /// A table behind a lock, as in a link, with callers that wait in it.
    private final class Desk: AnswerDesk {
        typealias Answer = Int
        let table = Mutex(WaiterTable<Int>())
        let tokens = Mutex<[Int: UInt64]>([:])
        let cancelledAnswer = -1

        func withWaiters<Result: ~Copyable>(_ body: (inout WaiterTable<Int>) -> Result) -> Result {
            table.withLock { (table) -> Result in body(&table) }
        }

        /// Returns the answer, or 1,000 and the code of a quick success.
        func wait(_ caller: Int, at now: Int64 = 0) async -> Int {
            let word = await withUnsafeContinuation { waiter in
                let token = table.withLock { $0.add(Waiter(waiter), at: now) }
                tokens.withLock { $0[caller] = token }
            }
            guard let token = word.token else { return 1000 + Int(word.code) }
            return await answer(to: token)
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

        /// Returns how many were told to go on.
        func look(at now: Int64) -> Int {
            var resumptions = Resumptions<Int>()
            table.withLock { $0.look(at: now, into: &resumptions) }
            let count = resumptions.quick.count
            resumptions.resume()
            return count
        }

        /// Has everybody wait for the whole answer.
        func turnWhole() {
            _ = look(at: 1 << 40)
            _ = look(at: 1 << 41)
        }

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

    @Test func `who waits long is told to go on at the second look, and nobody is looked for when nobody waits`() async
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
        #expect(!desk.succeed(first, 1), "it waits for the whole answer now")
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

    @Test func `a caller that was cancelled while it waited for the quick answer hears of it when told to go on`() async
    {
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

    @Test func `an answer that is there before a caller comes for it waits for the caller, cancelled or not`() async {
        let desk = Desk()
        let token: UInt64 = await withCheckedContinuation { made in
            Task {
                let word = await withUnsafeContinuation { waiter in
                    var ended: Resumption<QuickAnswer>?
                    let token = desk.table.withLock { table in
                        let token = table.add(Waiter(waiter), at: 0)
                        ended = table.answerAtOnce(token, 8)
                        return token
                    }
                    made.resume(returning: token)
                    ended.take()?.resume()
                }
                #expect(word.token != nil)
            }
        }
        let isAnswered = desk.table.withLock { $0.cancel(token) == nil }
        #expect(isAnswered)
        #expect(await desk.answer(to: token) == 8)
        #expect(await desk.answer(to: token) == -1, "it is gone")
    }

    @Test func `answers and cancellations that race resume everybody once`() async {
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

    @Test func `everybody can be answered at once`() async {
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

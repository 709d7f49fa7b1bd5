import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingShell

@Suite(.turns) struct DeliveryQueueTests {
    private struct Failure: Error, Equatable { let name: String }
    private typealias Queue = DeliveryQueue<NumberBatch, Failure>

    private final class Counter: Sendable {
        private let number = Atomic(0)
        var value: Int { number.load(ordering: .relaxed) }
        func add() { number.add(1, ordering: .relaxed) }
    }

    private func queue(
        messages: Int = 100, bytes: Int = 1 << 20, _ overflow: BufferPolicy.Overflow = .dropOldest,
        drained: @escaping @Sendable () -> Void = {}
    ) -> Queue {
        Queue(
            policy: BufferPolicy(messages: messages, bytes: bytes, overflow: overflow),
            unread: UnreadBytes(maximum: .max, drained: drained))
    }

    /// What a receiver gets.
    private enum Next: Sendable {
        case batch(NumberBatch)
        case finished
        case failed(Failure)
    }

    /// Nil if the receiver is cancelled.
    private func next(of queue: Queue) async -> Next? {
        do throws(Failure) {
            return try await queue.next(
                .max, lease: 0, cancelled: Failure(name: "cancelled"), replaced: Failure(name: "replaced")
            ).map { .batch($0.batch) } ?? .finished
        } catch {
            return error.name == "cancelled" ? nil : .failed(error)
        }
    }

    private func batch(of queue: Queue) -> NumberBatch? {
        var lease: UInt32 = 0
        guard case .handOut(let batch, _) = queue.step(.max, &lease) else { return nil }
        return batch as? NumberBatch
    }

    private func batch(_ next: Next?) -> NumberBatch? {
        if case .batch(let batch) = next { batch } else { nil }
    }

    @Test func `delivers batches in their order, then the end, again and again`() async {
        let queue = queue()
        for start in [0, 10, 20] { #expect(queue.push(NumberBatch(start..<(start + 3))) == .stored) }
        queue.finish(.failed(Failure(name: "over")))
        queue.finish(.finished)
        #expect(queue.push(NumberBatch(0..<1)) == .refused)
        for start in [0, 10, 20] { #expect(batch(await next(of: queue))?.numbers == Array(start..<(start + 3))) }
        for _ in 0..<2 {
            guard case .failed(let failure) = await next(of: queue) else {
                Issue.record("the end is missing")
                return
            }
            #expect(failure.name == "over")
        }
    }

    @Test func `what waits in all queues counts together, until it is taken, dropped or over`() async {
        let drained = Counter()
        let unread = UnreadBytes(maximum: 100) { drained.add() }
        func queue(messages: Int = 100) -> Queue {
            Queue(policy: BufferPolicy(messages: messages), unread: unread)
        }
        let (one, two, few) = (queue(), queue(), queue(messages: 3))
        _ = one.push(NumberBatch(0..<5))
        #expect(!one.connectionIsFull)
        _ = two.push(NumberBatch(0..<5))
        #expect(one.connectionIsFull && two.connectionIsFull && few.connectionIsFull)
        // Half of it is not free yet.
        _ = two.push(NumberBatch(0..<2))
        _ = batch(of: one)
        #expect(one.connectionIsFull && drained.value == 0)
        _ = await next(of: two)
        #expect(!one.connectionIsFull && drained.value == 1)
        // 20 are left; what gives way to others does not count.
        for start in 0..<20 { _ = few.push(NumberBatch(start..<(start + 1))) }
        #expect(!one.connectionIsFull)
        _ = one.push(NumberBatch(0..<5))
        #expect(one.connectionIsFull)
        one.finish()
        #expect(!one.connectionIsFull && drained.value == 2)
        #expect(batch(of: one)?.count == 5)
        // The end of a queue has taken them out already.
        _ = two.push(NumberBatch(0..<5))
        #expect(two.connectionIsFull)
        // A full queue that ends reports that it has room, whether or not all of them together have.
        few.finish()
        #expect(two.connectionIsFull && drained.value == 3)
        two.finish()
        #expect(!two.connectionIsFull && drained.value == 4)
        do {
            let released = queue()
            _ = released.push(NumberBatch(0..<10))
            #expect(one.connectionIsFull)
        }
        #expect(!one.connectionIsFull && drained.value == 5)
    }

    @Test func `a full queue that ends is drained, for it holds nobody up`() {
        let drained = Counter()
        let queue = queue(messages: 2, .pauseReading) { drained.add() }
        #expect(queue.push(NumberBatch(0..<2)) == .full)
        queue.finish()
        #expect(!queue.isFull && drained.value == 1)
        #expect(batch(of: queue)?.count == 2)
        #expect(drained.value == 1)
    }

    @Test func `hands over to a receiver that waits`() async {
        let queue = queue()
        let receiver = Task { () -> [Int] in
            var numbers: [Int] = []
            while case .batch(let batch) = await next(of: queue) { numbers += batch.numbers }
            return numbers
        }
        for number in 0..<200 {
            #expect(queue.push(NumberBatch(number..<(number + 1))) != .refused)
            if number.isMultiple(of: 10) { await Task.yield() }
            // Within the bound: nothing may be lost.
            while queue.isFull { await Task.yield() }
        }
        queue.finish()
        #expect(await receiver.value == Array(0..<200))
    }

    @Test func `drops the oldest messages and says how many before the next one`() {
        let queue = queue(messages: 10)
        #expect(queue.push(NumberBatch(0..<4)) == .stored)
        #expect(queue.push(NumberBatch(4..<8)) == .stored)
        #expect(queue.push(NumberBatch(8..<14)) == .full)
        let first = batch(of: queue)
        #expect(first?.numbers == [4, 5, 6, 7])
        #expect(first?.gap == 4)
        #expect(batch(of: queue)?.gap == 0)
        #expect(queue.droppedCount == 4)
    }

    @Test func `one batch beyond the bound keeps its newest messages`() {
        let queue = queue(messages: 3)
        #expect(queue.push(NumberBatch(0..<10)) == .full)
        let only = batch(of: queue)
        #expect(only?.numbers == [7, 8, 9])
        #expect(only?.gap == 7)
    }

    @Test func `bytes come free with whole batches, but the newest stays`() {
        let queue = queue(bytes: 250)
        for start in 0..<10 { _ = queue.push(NumberBatch((start * 10)..<(start * 10 + 10))) }
        let first = batch(of: queue)
        #expect(first?.numbers.first == 80)
        #expect(first?.gap == 80)
        // A bound that is smaller than a batch.
        let small = self.queue(bytes: 5)
        _ = small.push(NumberBatch(0..<10))
        _ = small.push(NumberBatch(10..<20))
        let last = batch(of: small)
        #expect(last?.numbers == Array(10..<20))
        #expect(last?.gap == 10)
    }

    @Test func `promised messages are never dropped`() {
        let queue = queue(messages: 5)
        for number in 0..<20 {
            _ = queue.push(NumberBatch([.init(number: number, isPromised: number.isMultiple(of: 2))]))
        }
        var numbers: [Int] = []
        var gaps = 0
        while let next = batch(of: queue) {
            numbers += next.numbers
            gaps += next.gap
        }
        #expect(numbers.filter { $0.isMultiple(of: 2) } == Array(stride(from: 0, to: 20, by: 2)))
        #expect(numbers.count + gaps <= 20)
        #expect(numbers.count + queue.droppedCount == 20)
    }

    @Test func `with reading paused nothing is dropped, and half empty it asks for more`() {
        let drained = Counter()
        let queue = queue(messages: 10, .pauseReading) { drained.add() }
        for start in stride(from: 0, to: 12, by: 2) { _ = queue.push(NumberBatch(start..<(start + 2))) }
        #expect(queue.isFull)
        var taken: [Int] = []
        while taken.count < 6, let next = batch(of: queue) { taken += next.numbers }
        #expect(drained.value == 0)
        #expect(queue.isFull)
        taken += batch(of: queue)?.numbers ?? []
        #expect(drained.value == 1)
        #expect(!queue.isFull)
        while let next = batch(of: queue) { taken += next.numbers }
        #expect(taken == Array(0..<12))
        #expect(queue.droppedCount == 0)
        #expect(drained.value == 1)
    }

    @Test func `bytes are given back for messages that were dropped from a batch`() {
        let drained = Counter()
        let queue = queue(messages: 4, bytes: 1000) { drained.add() }
        for round in 0..<1000 {
            // Each round drops from a batch that stays.
            _ = queue.push(NumberBatch(0..<3))
            _ = queue.push(NumberBatch(3..<6))
            while batch(of: queue) != nil {}
            #expect(!queue.isFull, "round \(round)")
            if queue.isFull { return }
        }
        #expect(drained.value == 1000)
    }

    @Test func `every message is delivered or counted in the gap before a later one`() async {
        for round in 0..<Campaign.rounds(20_000, least: 300) {
            let seed = Campaign.seed &+ UInt64(round)
            var random = SeededGenerator(seed: seed)
            let drained = Counter()
            let queue = queue(
                messages: Int.random(in: 1...30, using: &random), bytes: Int.random(in: 1...600, using: &random)
            ) { drained.add() }
            var next = 0
            var delivered = 0
            var isInOrder = true
            var last = -1
            var bound = 0
            func take() {
                guard let batch = batch(of: queue) else { return }
                delivered += batch.gap
                for number in batch.numbers {
                    isInOrder = isInOrder && number > last
                    last = number
                }
                delivered += batch.numbers.count
                bound = max(bound, batch.numbers.count)
            }
            for _ in 0..<Int.random(in: 1...60, using: &random) {
                if Int.random(in: 0..<3, using: &random) == 0 {
                    take()
                } else {
                    let count = Int.random(in: 1...12, using: &random)
                    _ = queue.push(
                        NumberBatch(next..<(next + count), overhead: Int.random(in: 0...50, using: &random)))
                    next += count
                }
            }
            // One more that comes through, so that there is a message that follows the last gap.
            while batch(of: queue).map({ delivered += $0.gap + $0.count }) != nil {}
            _ = queue.push(NumberBatch(next..<(next + 1)))
            next += 1
            while batch(of: queue).map({ delivered += $0.gap + $0.count }) != nil {}
            #expect(delivered == next, "seed \(seed)")
            #expect(isInOrder, "seed \(seed)")
            #expect(bound <= queue.policy.messages, "seed \(seed)")
            #expect(!queue.isFull, "seed \(seed)")
        }
    }

    @Test func `every batch reaches a receiver while others are cancelled`() async {
        var random = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(20_000, least: 100) {
            let queue = queue(messages: 10, .pauseReading)
            let pushing = Task {
                for number in 0..<20 {
                    _ = queue.push(NumberBatch(number..<(number + 1)))
                    if number % 3 == 0 { await Task.yield() }
                }
                queue.finish()
            }
            var numbers: [Int] = []
            var isOver = false
            while !isOver {
                let receiver = Task { () -> (numbers: [Int], isOver: Bool) in
                    var numbers: [Int] = []
                    while true {
                        switch await next(of: queue) {
                        case .batch(let batch): numbers += batch.numbers
                        case nil: return (numbers, false)
                        default: return (numbers, true)
                        }
                    }
                }
                for _ in 0..<Int.random(in: 0..<6, using: &random) { await Task.yield() }
                receiver.cancel()
                let received = await receiver.value
                numbers += received.numbers
                isOver = received.isOver
            }
            await pushing.value
            #expect(numbers == Array(0..<20))
        }
    }

    @Test func `what was stored before the end is delivered before it, whenever the receiver looks`() async {
        let queues = (0..<20_000).map { _ in queue() }
        let visited = Counter()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for (index, queue) in queues.enumerated() {
                    // The receiver comes to the same queue at nearly the same moment, now earlier and now later.
                    while visited.value <= index { await Task.yield() }
                    for _ in 0..<(index % 64) { _ = queue.droppedCount }
                    #expect(queue.push(NumberBatch(index..<(index + 1))) == .stored)
                    queue.finish()
                }
            }
            for (index, queue) in queues.enumerated() {
                visited.add()
                for _ in 0..<(index / 64 % 16) { _ = queue.droppedCount }
                #expect(batch(await next(of: queue))?.numbers == [index])
            }
        }
    }

    @Test func `a cancelled receiver returns, whenever it is cancelled`() async throws {
        let queue = queue()
        for delay in [0, 1, 5] {
            let receiver = Task { if case nil = await next(of: queue) { true } else { false } }
            try await Task.sleep(for: .milliseconds(delay))
            receiver.cancel()
            #expect(await receiver.value)
        }
        // Nothing of that stands in the way of the next one.
        let receiver = Task { self.batch(await next(of: queue))?.numbers }
        try await Task.sleep(for: .milliseconds(5))
        _ = queue.push(NumberBatch(0..<2))
        #expect(await receiver.value == [0, 1])
    }

    @Test func `a receiver that another one replaces reports that, and the other one continues`() async {
        let queue = queue()
        let receivers = (0..<2).map { _ in Task { await next(of: queue) } }
        // Whichever came first has returned by then, without a batch.
        let first = await withTaskGroup(of: (Int, Next?).self) { group in
            for (index, receiver) in receivers.enumerated() { group.addTask { (index, await receiver.value) } }
            let first = await group.next()
            #expect(queue.push(NumberBatch(0..<2)) == .stored)
            await group.waitForAll()
            return first
        }
        guard let first, case .failed(let failure) = first.1 else {
            Issue.record("the first receiver got \(first as Any)")
            return
        }
        #expect(failure.name == "replaced")
        #expect(batch(await receivers[1 - first.0].value)?.numbers == [0, 1])
    }

    @Test func `what the receiver has taken is not kept`() {
        let queue = queue()
        weak var kept: NumberBatch?
        do {
            let batch = NumberBatch(0..<2)
            kept = batch
            _ = queue.push(batch)
        }
        for _ in 0..<10 { _ = queue.push(NumberBatch(0..<1)) }
        _ = batch(of: queue)
        #expect(kept == nil)
    }
}

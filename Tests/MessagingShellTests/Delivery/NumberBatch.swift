import MessagingShell
import Synchronization

/// A batch of numbers, some of which were promised to arrive; its memory shrinks with what is dropped.
final class NumberBatch: DeliveryBatch, @unchecked Sendable {
    // Sendable because it changes only under its queue's lock.
    struct Entry {
        let number: Int
        let isPromised: Bool
    }

    private(set) var entries: [Entry]
    var gap = 0
    private let leased = Atomic(DeliveryPlace())
    private let overhead: Int
    /// Runs after the place was read and before it is moved, as another thread may.
    var beforeMove: (() -> Void)?

    init(_ entries: [Entry], overhead: Int = 0) {
        self.entries = entries
        self.overhead = overhead
    }

    convenience init(_ numbers: some Sequence<Int>, overhead: Int = 0) {
        self.init(numbers.map { Entry(number: $0, isPromised: false) }, overhead: overhead)
    }

    var count: Int { entries.count }
    var byteCount: Int { overhead + 10 * entries.count }
    var numbers: [Int] { entries.map(\.number) }
    subscript(index: Int) -> Int { entries[index].number }

    var place: DeliveryPlace { leased.load(ordering: .relaxed) }

    func move(from old: DeliveryPlace, to new: DeliveryPlace) -> Bool {
        let act = beforeMove
        beforeMove = nil
        act?()
        return leased.compareExchange(expected: old, desired: new, ordering: .relaxed).exchanged
    }

    func dropOldest(_ count: Int) -> Int {
        var left = count
        let before = entries.count
        entries.removeAll { entry in
            guard left > 0, !entry.isPromised else { return false }
            left -= 1
            return true
        }
        return before - entries.count
    }
}

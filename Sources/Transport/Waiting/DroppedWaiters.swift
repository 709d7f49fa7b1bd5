import Synchronization

/// Counts waiters that were dropped without an answer. A debug build stops at the first one.
@usableFromInline
package enum DroppedWaiters {
    private static let number = Atomic(0)

    package static var count: Int { number.load(ordering: .relaxed) }

    @usableFromInline
    static func add() {
        number.add(1, ordering: .relaxed)
        assertionFailure("A waiting task was dropped without an answer. Resume each waiter before it is released.")
    }
}

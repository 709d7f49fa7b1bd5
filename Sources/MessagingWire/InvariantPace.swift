/// How often a value checks its invariants: after each input while it has few elements, and after every second, fourth,
/// eighth … one while it has more, so that an input never costs more than a look at 64 of them, however many there are.
///
/// Counts in debug builds only: a check is the condition of an `assert`.
package struct InvariantPace: Sendable {
    private var inputs: UInt32 = 0

    package init() {}

    /// An input has come to its end.
    package mutating func count() { inputs &+= 1 }

    /// Whether a check that visits so many elements is due after this input.
    package func isDue(for elements: Int) -> Bool {
        guard elements > 64 else { return true }
        let most = UInt32(truncatingIfNeeded: (elements - 1) / 64)
        return inputs & (.max >> UInt32(most.leadingZeroBitCount)) == 0
    }
}

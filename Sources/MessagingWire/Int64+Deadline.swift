/// A deadline is a moment of a monotonic clock in nanoseconds, or `.max` for never.
extension Int64 {
    /// This moment and a span of nanoseconds later, limited to what 64 bits hold: `.max` is never.
    @inlinable
    package func advanced(byNanoseconds span: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(span)
        if overflow { return span < 0 ? .min : .max }
        return sum
    }

    /// A sleep of the system from which on a connection may be dead and the network another, in nanoseconds. Phones and small
    /// devices sleep for seconds all the time.
    package static var longSleep: Int64 { 30_000_000_000 }
}

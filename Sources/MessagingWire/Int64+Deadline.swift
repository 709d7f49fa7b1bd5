/// A deadline is a moment of a monotonic clock in nanoseconds, or `.max` for never.
extension Int64 {
    /// This moment and a span of nanoseconds later, limited to what 64 bits hold: `.max` is never.
    @inlinable
    package func advanced(byNanoseconds span: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(span)
        if overflow { return span < 0 ? .min : .max }
        return sum
    }
}

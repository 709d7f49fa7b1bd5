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

extension Duration {
    /// The duration in whole nanoseconds, limited to what 64 bits hold (292 years).
    package var inNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }
}

/// The clock that all deadlines are measured on.
package enum MonotonicClock {
    /// Nanoseconds since some moment in the past; never goes back.
    package static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to what 64 bits hold (292 years).
    package var inNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }
}

extension Int64 {
    /// This moment plus a duration in nanoseconds; `.max` ("never") when it would overflow.
    package func advanced(byNanoseconds nanoseconds: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(nanoseconds)
        return overflow ? .max : sum
    }
}

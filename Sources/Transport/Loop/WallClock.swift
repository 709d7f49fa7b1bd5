/// The time of day, for protocols that speak of dates. Deadlines use ``MonotonicClock``.
package enum WallClock {
    /// Milliseconds since 1970 began in UTC.
    package static var milliseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000
    }
}

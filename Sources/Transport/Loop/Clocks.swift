/// The clock that all deadlines are measured on. It continues while the system sleeps.
package enum MonotonicClock {
    /// Nanoseconds since some moment in the past; never goes back.
    package static var now: Int64 {
        // On Linux CLOCK_MONOTONIC stands still while the system sleeps.
        #if os(Linux) || os(Android)
            nanoseconds(of: CLOCK_BOOTTIME)
        #else
            nanoseconds(of: CLOCK_MONOTONIC)
        #endif
    }

    /// For how many nanoseconds the system has slept since it started: how far a clock that continues then is ahead of a
    /// clock that stands still. Setting the time of day changes neither.
    static var timeAsleep: Int64 {
        #if os(Linux) || os(Android)
            nanoseconds(of: CLOCK_BOOTTIME) - nanoseconds(of: CLOCK_MONOTONIC)
        #else
            nanoseconds(of: CLOCK_MONOTONIC_RAW) - nanoseconds(of: CLOCK_UPTIME_RAW)
        #endif
    }

    private static func nanoseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// The time of day by the system's clock, for protocols that speak of dates. Deadlines use ``MonotonicClock``.
package enum WallClock {
    /// Milliseconds since 1970 began in UTC.
    package static var milliseconds: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000
    }
}

extension EventLoop {
    /// Milliseconds since 1970 began in UTC: by the system's clock, in a simulation by that of its device, and with a manual
    /// clock by the time that has passed on it since it was made.
    package var timeOfDay: Int64 { manualTime?.timeOfDay ?? WallClock.milliseconds }
}

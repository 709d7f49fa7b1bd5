import Foundation

/// The processor time of a thread, which other programs on the machine do not lengthen.
public enum ThreadTime {
    /// How long the processor works on `body`.
    public static func measure(_ body: () throws -> Void) rethrows -> Duration {
        let start = now
        try body()
        return now - start
    }

    /// The processor time of the calling thread since it began.
    public static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

import Synchronization

/// A clock whose time passes only when somebody sleeps, and then at once.
final class VirtualClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let state = Mutex(Instant(offset: .seconds(1000)))
    /// Added to each sleep: no real one ends on time.
    private let lateness: Duration

    init(lateness: Duration = .zero) {
        self.lateness = lateness
    }

    var now: Instant { state.withLock { $0 } }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        state.withLock { $0 = max($0, deadline.advanced(by: lateness)) }
        await Task.yield()
    }

    func advance(by duration: Duration) {
        state.withLock { $0 = $0.advanced(by: duration) }
    }
}

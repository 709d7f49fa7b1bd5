/// What a descriptor is watched for, and what it was found ready for.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let read = Readiness(rawValue: 1)
    package static let write = Readiness(rawValue: 2)
    /// An error or a hang-up; reported whether asked for or not.
    package static let hangUp = Readiness(rawValue: 4)
}

/// One descriptor that is ready.
package struct ReadyEvent: Sendable {
    package let token: Int
    package let readiness: Readiness
}

/// Waits for many descriptors at once, level-triggered; used by its loop's thread only, but for `wake()`.
package protocol Selector: AnyObject, Sendable {
    func add(_ descriptor: Int32, token: Int, interest: Readiness)
    func change(_ descriptor: Int32, token: Int, interest: Readiness)
    func remove(_ descriptor: Int32, token: Int)

    /// Fills `events` with what is ready; `timeout` is in nanoseconds, `Int64.max` waits for ever.
    func wait(timeout: Int64, events: inout [ReadyEvent])

    /// Ends a `wait` that is under way or comes next; callable from any thread.
    func wake()
}

/// Rounds up to milliseconds, so that a timer never fires early and spins.
func pollMilliseconds(_ nanoseconds: Int64) -> Int32 {
    guard nanoseconds != .max else { return -1 }
    let milliseconds = nanoseconds <= 0 ? 0 : (nanoseconds - 1) / 1_000_000 + 1
    return Int32(clamping: min(milliseconds, 86_400_000))
}

/// The kinds of selector that a loop can be made with.
package enum SelectorKind: Sendable, CaseIterable {
    /// `epoll` on Linux; everywhere else the same as `poll`.
    case automatic
    /// `poll(2)` with a pipe to wake it: what Darwin uses, testable on Linux.
    case poll

    func make() throws(TransportError) -> any Selector {
        #if os(Linux) || os(Android)
            if self == .automatic { return try EpollSelector() }
        #endif
        return try PollSelector()
    }
}

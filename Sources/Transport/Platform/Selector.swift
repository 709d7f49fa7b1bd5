/// Waits for many descriptors at once, level-triggered; used by its loop's thread only, but for `wake()`.
package protocol Selector: AnyObject, Sendable {
    func add(_ descriptor: Int32, token: Int64, interest: Readiness)
    func change(_ descriptor: Int32, token: Int64, interest: Readiness)
    func remove(_ descriptor: Int32, token: Int64)
    /// The descriptor is about to be closed, which ends the system's watch over it.
    func forget(_ descriptor: Int32, token: Int64)

    /// Fills `events` with what is ready; `timeout` is in nanoseconds, `Int64.max` waits for ever.
    func wait(timeout: Int64, events: inout [ReadyEvent])

    /// Ends a `wait` that is under way or comes next; callable from any thread.
    func wake()
}

extension Selector {
    package func forget(_ descriptor: Int32, token: Int64) {}
}

/// Rounds up to milliseconds, so that a timer never fires early and spins.
func pollMilliseconds(_ nanoseconds: Int64) -> Int32 {
    guard nanoseconds != .max else { return -1 }
    let milliseconds = nanoseconds <= 0 ? 0 : (nanoseconds - 1) / 1_000_000 + 1
    return Int32(clamping: min(milliseconds, 86_400_000))
}

/// - Parameter code: the system's reason.
package func noDescriptorForLoop(_ code: Int32) -> TransportError {
    .shortage("The process cannot open another descriptor, which the event loop needs", code)
}

/// The kinds of selector that a loop can be made with.
package enum SelectorKind: Sendable, CaseIterable {
    /// `epoll` on Linux and Android, `kqueue` on Apple's systems.
    case automatic
    /// `poll(2)` with a pipe to wake it: a second one for tests, which show with it that loops do not rely on what only one
    /// kind of selector does.
    case poll

    package func make() throws(TransportError) -> any Selector {
        #if os(Linux) || os(Android)
            if self == .automatic { return try EpollSelector() }
        #elseif canImport(Darwin)
            if self == .automatic { return try KqueueSelector() }
        #endif
        return try PollSelector()
    }
}

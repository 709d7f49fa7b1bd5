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
    package let token: Int64
    package let readiness: Readiness
}

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
    TransportError(
        .systemLimit,
        "The process cannot open another descriptor, which the event loop needs: \(System.describe(code)). Close some "
            + "files or connections, or raise the limit of open files (ulimit -n).", errno: code)
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

/// `poll(2)`, woken by a pipe: linear in the number of descriptors, of which Darwin allows it OPEN_MAX.
final class PollSelector: Selector, @unchecked Sendable {
    // Sendable because the pipe never changes, `wake()` only writes to it,
    // and all else is called by the loop's thread alone.
    private let wakeReader: Int32
    private let wakeWriter: Int32
    private var descriptors: [pollfd]
    private var tokens: [Int64]

    init() throws(TransportError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else {
            throw noDescriptorForLoop(errno)
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL, 0) | O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        wakeReader = ends[0]
        wakeWriter = ends[1]
        descriptors = [pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)]
        tokens = [-1]
    }

    deinit {
        close(wakeReader)
        close(wakeWriter)
    }

    func add(_ descriptor: Int32, token: Int64, interest: Readiness) {
        descriptors.append(pollfd(fd: descriptor, events: Self.events(interest), revents: 0))
        tokens.append(token)
    }

    func change(_ descriptor: Int32, token: Int64, interest: Readiness) {
        guard let index = tokens.firstIndex(of: token) else { return }
        descriptors[index].events = Self.events(interest)
    }

    func remove(_ descriptor: Int32, token: Int64) {
        guard let index = tokens.firstIndex(of: token) else { return }
        descriptors.swapAt(index, descriptors.count - 1)
        tokens.swapAt(index, tokens.count - 1)
        descriptors.removeLast()
        tokens.removeLast()
    }

    func forget(_ descriptor: Int32, token: Int64) { remove(descriptor, token: token) }

    func wait(timeout: Int64, events: inout [ReadyEvent]) {
        var left = unsafe poll(&descriptors, nfds_t(descriptors.count), pollMilliseconds(timeout))
        var index = 0
        while left > 0, index < descriptors.count {
            let flags = Int32(descriptors[index].revents)
            if flags != 0 {
                left -= 1
                if index == 0 {
                    drainWakePipe()
                } else {
                    var readiness: Readiness = []
                    if flags & Int32(POLLIN) != 0 { readiness.insert(.read) }
                    if flags & Int32(POLLOUT) != 0 { readiness.insert(.write) }
                    if flags & Int32(POLLERR | POLLHUP | POLLNVAL) != 0 { readiness.insert(.hangUp) }
                    events.append(ReadyEvent(token: tokens[index], readiness: readiness))
                }
            }
            index += 1
        }
    }

    func wake() {
        var byte: UInt8 = 1
        _ = unsafe write(wakeWriter, &byte, 1)
    }

    private func drainWakePipe() {
        unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            while unsafe read(wakeReader, buffer.baseAddress, buffer.count) == buffer.count {}
        }
    }

    private static func events(_ interest: Readiness) -> Int16 {
        var events: Int32 = 0
        if interest.contains(.read) { events |= Int32(POLLIN) }
        if interest.contains(.write) { events |= Int32(POLLOUT) }
        return Int16(events)
    }
}

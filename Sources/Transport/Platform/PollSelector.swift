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

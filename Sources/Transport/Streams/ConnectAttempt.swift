import Wire

/// One non-blocking `connect(2)` under way.
final class ConnectAttempt: LoopHandler, @unchecked Sendable {
    // Sendable because all is touched on the loop's thread only.
    private let address: SocketAddress
    private let race: ConnectRace
    private var descriptor: Int32 = -1
    private(set) var isOver = false

    init(_ address: SocketAddress, race: ConnectRace, loop: EventLoop) {
        self.address = address
        self.race = race
        super.init(loop: loop)
    }

    /// Returns false when it failed at once; the race goes on to the next by itself then.
    func start() -> Bool {
        descriptor = System.makeStreamSocket(family: address.family)
        let code = descriptor < 0 ? errno : begin()
        guard code != 0 else { return true }
        close()
        race.failedAtOnce(code)
        return false
    }

    /// Returns 0 when the connection is under way, or why not.
    private func begin() -> Int32 {
        let result = address.withPointer { connect(descriptor, $0, $1) }
        let code = result == 0 ? 0 : errno
        switch code {
        case 0, EINPROGRESS, EINTR:
            loop.register(self, descriptor: descriptor, interest: .write)
            return 0
        case EAGAIN where address.family == AF_UNIX:
            // The listener's queue is full, and nothing reports when it no longer is.
            loop.setDeadline(self, to: MonotonicClock.now.advanced(byNanoseconds: 10_000_000))
            return 0
        default:
            return code
        }
    }

    override func deadlineReached(at now: Int64) {
        guard !isOver else { return }
        let code = begin()
        guard code != 0 else { return }
        close()
        race.failed(code)
    }

    override func ready(_ readiness: Readiness, at now: Int64) {
        guard !isOver else { return }
        let code = System.takeSocketError(descriptor)
        loop.unregister(self, descriptor: descriptor)
        isOver = true
        if code == 0 {
            let isTCP = address.family == AF_INET || address.family == AF_INET6
            let stream = SocketStream(descriptor: descriptor, peerName: race.peerName, isTCP: isTCP)
            descriptor = -1
            race.succeeded(stream)
        } else {
            close()
            race.failed(code)
        }
    }

    func abandon() {
        guard !isOver else { return }
        loop.unregister(self, descriptor: descriptor)
        loop.setDeadline(self, to: .max)
        close()
    }

    private func close() {
        isOver = true
        if descriptor >= 0 { _ = closeDescriptor(descriptor) }
        descriptor = -1
    }
}

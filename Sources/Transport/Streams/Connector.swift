import Synchronization
import Wire

/// Opens TCP and Unix-domain connections without blocking any thread.
package enum Connector {
    /// Connects to the first address of `endpoint` that answers, in the manner of RFC 8305: families alternate, and
    /// the next address is tried as well when one has not answered within 250 ms.
    ///
    /// - Parameters:
    ///   - peerName: what the stream calls its other end; the endpoint if it is nil.
    ///   - timeout: nanoseconds for all of it, the name's look-up included.
    package static func connect(
        to endpoint: Endpoint, peerName: String? = nil, timeout: Int64, loop: EventLoop
    ) async throws(TransportError) -> SocketStream {
        let deadline = MonotonicClock.now.advanced(byNanoseconds: timeout)
        let race = ConnectRace(endpoint: endpoint, peerName: peerName ?? "\(endpoint)", deadline: deadline, loop: loop)
        let result = await race.call.answer {
            race.start()
        } onCancel: {
            race.cancel()
        }
        return try result.get()
    }

    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        let preferred = addresses.filter { $0.family == first.family }
        let others = addresses.filter { $0.family != first.family }
        var result: [SocketAddress] = []
        for index in 0..<max(preferred.count, others.count) {
            if index < preferred.count { result.append(preferred[index]) }
            if index < others.count { result.append(others[index]) }
        }
        return result
    }
}

/// The attempts on all addresses of one endpoint; the first that succeeds wins, and the rest are dropped.
private final class ConnectRace: LoopHandler, @unchecked Sendable {
    // Sendable because all but the constants is touched on the loop's thread only.
    private let endpoint: Endpoint
    fileprivate let peerName: String
    private let overall: Int64
    /// Ended on the loop's thread only.
    fileprivate let call = PendingCall<Result<SocketStream, TransportError>>()
    private var waiting: [SocketAddress] = []
    private var attempts: [ConnectAttempt] = []
    private var lastFailure: TransportError?

    private static let attemptDelay: Int64 = 250_000_000

    init(endpoint: Endpoint, peerName: String, deadline: Int64, loop: EventLoop) {
        self.endpoint = endpoint
        self.peerName = peerName
        overall = deadline
        super.init(loop: loop)
    }

    func start() {
        loop.execute {
            if !self.call.isOver { self.loop.setDeadline(self, to: self.overall) }
        }
        Task {
            let result: Result<[SocketAddress], TransportError>
            do throws(TransportError) {
                result = .success(try await Resolver.resolve(endpoint))
            } catch {
                result = .failure(error)
            }
            loop.execute { self.resolved(result) }
        }
    }

    func cancel() {
        loop.execute { self.finish(.failure(self.cancelled)) }
    }

    private var cancelled: TransportError {
        TransportError(.cancelled, "connecting to \(endpoint) was cancelled")
    }

    private func resolved(_ result: Result<[SocketAddress], TransportError>) {
        guard !call.isOver else { return }
        switch result {
        case .success(let addresses):
            waiting = Connector.interleaved(addresses).reversed()
            startNext(at: MonotonicClock.now)
        case .failure(let error):
            finish(.failure(error))
        }
    }

    private func startNext(at now: Int64) {
        guard !call.isOver else { return }
        while let address = waiting.popLast() {
            let attempt = ConnectAttempt(address, race: self, loop: loop)
            attempts.append(attempt)
            if attempt.start() {
                let next = waiting.isEmpty ? overall : min(overall, now.advanced(byNanoseconds: Self.attemptDelay))
                loop.setDeadline(self, to: next)
                return
            }
            if call.isOver { return }
        }
        if attempts.allSatisfy(\.isOver) {
            finish(.failure(lastFailure ?? timedOut))
        } else {
            // The timer may just have fired for the address that failed at once: those under way need it still.
            loop.setDeadline(self, to: overall)
        }
    }

    override func deadlineReached(at now: Int64) {
        if now >= overall {
            finish(.failure(timedOut))
        } else if waiting.isEmpty {
            loop.setDeadline(self, to: overall)
        } else {
            startNext(at: now)
        }
    }

    private var timedOut: TransportError {
        TransportError(
            .timedOut, "\(endpoint) did not answer in time; check the address, or allow more time to connect")
    }

    func succeeded(_ stream: SocketStream) {
        finish(.success(stream))
    }

    func failed(_ code: Int32) {
        failedAtOnce(code)
        startNext(at: MonotonicClock.now)
    }

    /// Notes why an attempt failed, without starting another.
    func failedAtOnce(_ code: Int32) {
        let words = System.describe(code)
        switch code {
        case ECONNREFUSED:
            lastFailure = TransportError(
                .connectionRefused, "\(endpoint) refused the connection: nothing listens there", errno: code)
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN:
            lastFailure = TransportError(.unreachable, "\(endpoint) cannot be reached: \(words)", errno: code)
        case ETIMEDOUT:
            lastFailure = timedOut
        case EMFILE, ENFILE:
            lastFailure = TransportError(
                .systemLimit, "cannot connect to \(endpoint): too many open files; raise the limit (ulimit -n)",
                errno: code)
        default:
            lastFailure = TransportError(.unreachable, "cannot connect to \(endpoint): \(words)", errno: code)
        }
    }

    private func finish(_ result: Result<SocketStream, TransportError>) {
        guard !call.isOver else { return }
        waiting.removeAll()
        for attempt in attempts { attempt.abandon() }
        attempts.removeAll()
        loop.setDeadline(self, to: .max)
        call.end(result)
    }
}

/// One non-blocking `connect(2)` under way.
private final class ConnectAttempt: LoopHandler, @unchecked Sendable {
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

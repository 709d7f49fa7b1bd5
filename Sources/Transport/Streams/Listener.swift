import MessagingWire

/// Accepts connections on a TCP port of the loopback interface or on a Unix-domain socket.
package final class Listener: LoopHandler, @unchecked Sendable {
    // Sendable because the descriptor and the closure never change, and the rest is touched on the loop's thread only.
    private let descriptor: Int32
    private let accepted: @Sendable (SocketStream) -> Void
    private let socketFile: SocketFile?
    private var isOpen = true
    /// The port that is listened on, 0 for a Unix-domain socket.
    package let port: UInt16

    /// Starts to listen; `accepted` is called on the loop's thread with each connection.
    ///
    /// - Parameter endpoint: a literal address (port 0 takes a free one), or the path of a socket to be made. An
    ///   existing socket that no program listens on is replaced.
    package static func listen(
        on endpoint: Endpoint, loop: EventLoop, accepted: @escaping @Sendable (SocketStream) -> Void
    ) async throws(TransportError) -> Listener {
        let address = try await Resolver.shared.resolve(endpoint)[0]
        let descriptor = System.makeStreamSocket(family: address.family)
        guard descriptor >= 0 else { throw failure(endpoint, errno) }
        if case .unix(let path) = endpoint {
            SocketFile.removeStale(path, address)
        } else {
            // A restarted server takes its port back although old connections still linger there.
            System.setOption(descriptor, level: SOL_SOCKET, name: SO_REUSEADDR, to: 1)
        }
        guard unsafe address.withPointer({ unsafe bind(descriptor, $0, $1) }) == 0,
            startListening(descriptor, 1024) == 0
        else {
            let code = errno
            _ = closeDescriptor(descriptor)
            throw failure(endpoint, code)
        }
        let file: SocketFile? = if case .unix(let path) = endpoint { SocketFile(path) } else { nil }
        let port = SocketAddress.local(of: descriptor)?.port ?? 0
        let listener = Listener(descriptor, port: port, socketFile: file, loop: loop, accepted: accepted)
        loop.execute { loop.register(listener, descriptor: descriptor, interest: .read) }
        return listener
    }

    private static func failure(_ endpoint: Endpoint, _ code: Int32) -> TransportError {
        if case .unix(let path) = endpoint, code == EADDRINUSE {
            let words = SocketFile(path) == nil ? "the file there is not a socket" : "another program listens there"
            return TransportError(
                .cannotListen, "Cannot listen on \(endpoint): \(words). Use another path.", errno: code)
        }
        return TransportError(.cannotListen, "Cannot listen on \(endpoint): \(System.describe(code)).", errno: code)
    }

    private init(
        _ descriptor: Int32, port: UInt16, socketFile: SocketFile?, loop: EventLoop,
        accepted: @escaping @Sendable (SocketStream) -> Void
    ) {
        self.descriptor = descriptor
        self.port = port
        self.socketFile = socketFile
        self.accepted = accepted
        super.init(loop: loop)
    }

    deinit {
        if isOpen { shut() }
    }

    private func shut() {
        // A child process has a copy of the descriptor between its fork and its exec, which `close` leaves listening.
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        _ = closeDescriptor(descriptor)
        socketFile?.remove()
    }

    override package func ready(_ readiness: Readiness, at now: Int64) {
        // A bounded number at once, so that a flood of connections does not starve those that are there.
        for _ in 0..<64 {
            let connection = System.acceptConnection(descriptor)
            guard connection >= 0 else {
                // Out of descriptors or memory: look again in a while instead of spinning on the same readiness.
                if errno != EAGAIN && errno != EWOULDBLOCK { pause(at: now) }
                return
            }
            accepted(SocketStream(descriptor: connection, peerName: "a client", isTCP: socketFile == nil))
        }
    }

    override package func deadlineReached(at now: Int64) {
        if isOpen { loop.change(self, descriptor: descriptor, interest: .read) }
    }

    private func pause(at now: Int64) {
        loop.change(self, descriptor: descriptor, interest: [])
        loop.setDeadline(self, to: now.advanced(byNanoseconds: 100_000_000))
    }

    /// Stops listening; connections that were accepted stay. The port is free when this returns.
    package func close() async {
        await loop.result { [self] in
            guard isOpen else { return }
            loop.setDeadline(self, to: .max)
            loop.unregister(self, descriptor: descriptor)
            shut()
            isOpen = false
        }
    }
}

private func startListening(_ descriptor: Int32, _ backlog: Int32) -> Int32 {
    listen(descriptor, backlog)
}

/// The socket that listening on a path made, distinguished from one that another program puts there later.
struct SocketFile: Equatable {
    private let path: String
    #if os(macOS) || os(Linux) || os(Android)
        private let device: dev_t
        private let number: ino_t

        /// Nil if the path is not a socket.
        init?(_ path: String) {
            var status = stat()
            guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
            self.path = path
            device = status.st_dev
            number = status.st_ino
        }
    #else
        /// An app that calls `lstat` needs a reason for it in its privacy manifest. Without it, the path stands for the
        /// file: only this app writes into its container, and connecting to a file that is not a socket fails with
        /// ENOTSOCK, so that `removeStale` leaves it alone.
        init?(_ path: String) { self.path = path }
    #endif

    /// Removes it, unless it is not there any more.
    func remove() {
        if SocketFile(path) == self { unsafe unlink(path) }
    }

    /// Removes the socket that a killed process left behind: one that refuses connections, because no program listens.
    static func removeStale(_ path: String, _ address: SocketAddress) {
        guard let file = SocketFile(path) else { return }
        let descriptor = System.makeStreamSocket(family: address.family)
        guard descriptor >= 0 else { return }
        defer { _ = closeDescriptor(descriptor) }
        // Does not wait, so a listener whose queue is full answers too, with EAGAIN.
        let isRefused = unsafe address.withPointer { unsafe connect(descriptor, $0, $1) } != 0 && errno == ECONNREFUSED
        if isRefused { file.remove() }
    }
}

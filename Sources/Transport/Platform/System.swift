/// The result of one attempt to move bytes without blocking.
package enum IOResult: Equatable, Sendable {
    case bytes(Int)
    case wouldBlock
    case endOfStream
    case failed(Int32)
}

/// The system calls that need care: `EINTR` is retried, no call raises `SIGPIPE`, no descriptor leaks into children.
package enum System {
    package static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        while true {
            let count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .endOfStream }
            if errno == EINTR { continue }
            return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed(errno)
        }
    }

    package static func write(_ descriptor: Int32, from buffer: UnsafeRawBufferPointer) -> IOResult {
        guard let start = buffer.baseAddress else { return .bytes(0) }
        while true {
            let count = unsafe send(descriptor, start, buffer.count, Int32(MSG_NOSIGNAL))
            if count >= 0 { return .bytes(count) }
            if errno == EINTR { continue }
            return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed(errno)
        }
    }

    /// Makes a non-blocking, close-on-exec stream socket.
    package static func makeStreamSocket(family: Int32) -> Int32 {
        #if canImport(Darwin)
            let descriptor = socket(family, SOCK_STREAM, 0)
            guard descriptor >= 0, prepare(descriptor) != 0 else { return descriptor }
            return closing(descriptor)
        #else
            return socket(family, LibC.streamSocketType | nonBlockingCloseOnExec, 0)
        #endif
    }

    /// Accepts one connection, non-blocking and close-on-exec; -1 with `errno` if no connection waits.
    package static func acceptConnection(_ listener: Int32) -> Int32 {
        #if canImport(Darwin)
            acceptConnection(by: { accept(listener, nil, nil) }, preparing: prepare)
        #else
            acceptConnection(by: { accept4(listener, nil, nil, nonBlockingCloseOnExec) }, preparing: { _ in 0 })
        #endif
    }

    /// - Parameter prepare: makes the connection what this module needs; returns -1 with `errno` if that fails.
    package static func acceptConnection(by accept: () -> Int32, preparing prepare: (Int32) -> Int32) -> Int32 {
        while true {
            var descriptor = accept()
            if descriptor >= 0 {
                if prepare(descriptor) == 0 { return descriptor }
                descriptor = closing(descriptor)
                // Darwin refuses to set anything of a connection whose peer has gone meanwhile.
                if errno == EINVAL { continue }
            }
            // ECONNABORTED: the peer left the queue before we came; the next one may be waiting.
            if errno != EINTR && errno != ECONNABORTED { return descriptor }
        }
    }

    /// Closes a descriptor and returns -1, with the `errno` of the call before.
    private static func closing(_ descriptor: Int32) -> Int32 {
        let code = errno
        _ = closeDescriptor(descriptor)
        errno = code
        return -1
    }

    /// Ends a TCP connection both ways without the rest of what was written; the peer's system is notified by a reset.
    static func reset(_ descriptor: Int32) {
        #if canImport(Darwin)
            // The reset follows when the descriptor is closed.
            var value = linger(l_onoff: 1, l_linger: 0)
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
        #else
            var address = sockaddr()
            address.sa_family = sa_family_t(AF_UNSPEC)
            _ = unsafe connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
        #endif
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Returns -1 with `errno` if the system refuses.
    @discardableResult
    package static func setOption(_ descriptor: Int32, level: Int32, name: Int32, to value: Int32) -> Int32 {
        var value = value
        return unsafe setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Turns Nagle's algorithm off: the outbox coalesces by itself, and latency counts.
    package static func disableNagle(_ descriptor: Int32) {
        setOption(descriptor, level: Int32(IPPROTO_TCP), name: TCP_NODELAY, to: 1)
    }

    /// Lets the system ask the peer's for a sign of life after `time` nanoseconds without traffic, and end the connection after
    /// two and a half times as long.
    static func keepAlive(_ descriptor: Int32, after time: Int64) {
        let times = KeepAlive(after: time)
        #if canImport(Darwin)
            let idle = TCP_KEEPALIVE
        #else
            let idle = TCP_KEEPIDLE
        #endif
        setOption(descriptor, level: SOL_SOCKET, name: SO_KEEPALIVE, to: 1)
        setOption(descriptor, level: Int32(IPPROTO_TCP), name: idle, to: times.idle)
        setOption(descriptor, level: Int32(IPPROTO_TCP), name: TCP_KEEPINTVL, to: times.interval)
        setOption(descriptor, level: Int32(IPPROTO_TCP), name: TCP_KEEPCNT, to: times.count)
    }

    /// Bytes that were written to a socket and that the peer's system has not acknowledged. On Linux those of a
    /// Unix-domain socket count as the memory that they take until the peer reads them, which is more.
    package static func unacknowledged(_ descriptor: Int32) -> Int {
        var count: Int32 = 0
        #if canImport(Darwin)
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_NWRITE, &count, &size) == 0 else { return .max }
        #else
            // SIOCOUTQ has the number of TIOCOUTQ.
            guard unsafe ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 else { return .max }
        #endif
        return Int(count)
    }

    /// Whether a non-blocking connect has succeeded.
    package static func isConnected(_ descriptor: Int32) -> Bool {
        var address = sockaddr()
        var size = socklen_t(MemoryLayout<sockaddr>.size)
        return unsafe getpeername(descriptor, &address, &size) == 0
    }

    /// Whether a connection to `address` has both its ends in this socket.
    ///
    /// The port of a server that is not running may be among those that the system chooses from for connections. A
    /// connection that leaves from that same port connects to itself (RFC 9293 3.5, simultaneous connection attempts).
    static func isConnectedToItself(_ descriptor: Int32, _ address: SocketAddress) -> Bool {
        // The ports first: they are hardly ever equal.
        guard address.port != 0, let local = SocketAddress.local(of: descriptor), local.port == address.port else {
            return false
        }
        return local == SocketAddress.remote(of: descriptor)
    }

    /// The pending error of a socket, or 0: how a non-blocking connect ended.
    package static func takeSocketError(_ descriptor: Int32) -> Int32 {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return errno }
        return code
    }

    /// A variable of the environment; nil if it is not there, or not UTF-8.
    package static func environment(_ name: String) -> String? {
        unsafe getenv(name).flatMap { unsafe String(validatingCString: $0) }
    }

    package static func describe(_ code: Int32) -> String {
        unsafe String(cString: strerror(code))
    }

    private static let shortages = [EMFILE, ENFILE, ENOMEM]

    /// Whether a file or socket cannot be opened only until others are closed, or memory is freed.
    static func isShortage(_ code: Int32) -> Bool { shortages.contains(code) }

    /// The shortage for which a library has failed that reports its errors as text: the one that the text names, or the one
    /// that keeps this process from opening a file now. Nil if there is neither.
    static func shortage(in text: String) -> Int32? {
        // The text first: another thread may have closed a file since.
        if let code = shortages.first(where: { text.contains(describe($0)) }) { return code }
        let file = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard file < 0 else {
            _ = closeDescriptor(file)
            return nil
        }
        let code = errno
        return isShortage(code) ? code : nil
    }

    #if canImport(Glibc)
        private static let nonBlockingCloseOnExec = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    #elseif canImport(Musl) || canImport(Android)
        private static let nonBlockingCloseOnExec = SOCK_NONBLOCK | SOCK_CLOEXEC
    #endif

    #if canImport(Darwin)
        /// Makes a socket non-blocking and close-on-exec; returns -1 with `errno` if the system refuses.
        private static func prepare(_ descriptor: Int32) -> Int32 {
            guard fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK) != -1,
                fcntl(descriptor, F_SETFD, FD_CLOEXEC) != -1
            else { return -1 }
            // Beside MSG_NOSIGNAL, for whatever else writes to the socket.
            return setOption(descriptor, level: SOL_SOCKET, name: SO_NOSIGPIPE, to: 1)
        }
    #endif
}

extension System {
    /// Marks the packets of a socket that is not connected yet.
    ///
    /// Darwin has one option for it. Linux has the priority in this machine's queues and the field in the packets (RFC
    /// 4594: class selector 1 for low priority, AF21 for low latency); IPv6's field has another name, and a socket of
    /// the other family refuses it.
    static func setServiceClass(_ descriptor: Int32, _ serviceClass: ServiceClass) {
        #if canImport(Darwin)
            switch serviceClass.kind {
            case .standard: break
            case .background:
                setOption(descriptor, level: SOL_SOCKET, name: SO_NET_SERVICE_TYPE, to: NET_SERVICE_TYPE_BK)
            case .responsive:
                setOption(descriptor, level: SOL_SOCKET, name: SO_NET_SERVICE_TYPE, to: NET_SERVICE_TYPE_RD)
            }
        #else
            func mark(field: Int32, priority: Int32) {
                setOption(descriptor, level: Int32(IPPROTO_IP), name: IP_TOS, to: field)
                setOption(descriptor, level: Int32(IPPROTO_IPV6), name: IPV6_TCLASS, to: field)
                // After the field, which sets a priority as well.
                setOption(descriptor, level: SOL_SOCKET, name: SO_PRIORITY, to: priority)
            }
            // TC_PRIO_BULK and TC_PRIO_INTERACTIVE of linux/pkt_sched.h.
            switch serviceClass.kind {
            case .standard: break
            case .background: mark(field: 0x20, priority: 2)
            case .responsive: mark(field: 0x48, priority: 6)
            }
        #endif
    }

    /// Tells the system how urgent the calling thread is.
    ///
    /// Linux lets a thread lower its own priority (nice 10), but not raise it.
    static func setThreadQuality(_ quality: ServiceClass) {
        #if canImport(Darwin)
            // QOS_CLASS_BACKGROUND and QOS_CLASS_USER_INITIATED, whose type depends on how their header is read.
            switch quality.kind {
            case .standard: break
            case .background: _ = pthread_set_qos_class_self_np(.init(0x09), 0)
            case .responsive: _ = pthread_set_qos_class_self_np(.init(0x19), 0)
            }
        #else
            if quality == .background { _ = setpriority(LibC.priorityOfThread, 0, 10) }
        #endif
    }
}

/// The numbers of TCP keep-alive, in whole seconds.
struct KeepAlive {
    /// Without traffic, before the first probe.
    let idle: Int32
    /// Between probes.
    let interval: Int32
    /// Unanswered probes that end the connection.
    let count: Int32 = 3

    /// - Parameter time: in nanoseconds.
    init(after time: Int64) {
        // Linux accepts at most 32,767.
        idle = Int32(max(1, min(time / 1_000_000_000, 32_767)))
        interval = max(1, idle / 2)
    }
}

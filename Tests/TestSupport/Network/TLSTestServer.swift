import Foundation
import Synchronization
import Transport

/// A TLS server on a loopback port that sends each line back reversed. It is made of OpenSSL's calls alone, none of which
/// go through the clients' own TLS, and has a thread for each connection.
public final class TLSTestServer: Sendable {
    public enum Version: Int, Sendable {
        case tls11 = 0x0302
        case tls12 = 0x0303
    }

    public struct Options: Sendable {
        /// The only version that it speaks; nil for 1.2 and 1.3.
        public var version: Version?
        /// What it chooses from by ALPN, in its order of preference; a client that offers none of them is refused.
        public var applicationProtocols: [String] = []
        /// A PEM file of the authority that must have signed the certificate of each client.
        public var clientAuthority: String?
        /// The one key that it shares with clients, and the client's name; without the certificate then.
        public var preSharedKey: (identity: String, key: [UInt8])?
        /// Sent once after the first bytes of the client, instead of lines.
        public var reply: [UInt8]?
    }

    public let port: UInt16
    private let connections: TLSTestConnections

    /// Listens on a free port; ends with the last reference.
    ///
    /// - Throws: what OpenSSL reports about the files, or a system call's error.
    public static func start(
        _ pair: Certificates.Pair, _ configure: (inout Options) -> Void = { _ in }
    ) throws -> TLSTestServer {
        var options = Options()
        configure(&options)
        return try TLSTestServer(TLSTestContext(pair, options))
    }

    private init(_ context: TLSTestContext) throws {
        port = UInt16(FreePort.next())
        connections = TLSTestConnections(context)
        let address = SocketAddress.loopback(port)
        let listener = address.makeSocket()
        guard address.withPointer({ bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
            let code = errno
            close(listener)
            throw SystemCallError("listening on \(port)", code)
        }
        // A connection may end between poll and accept.
        _ = fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK)
        Thread.detachNewThread { [connections] in
            connections.accept(from: listener)
            close(listener)
        }
    }

    deinit { connections.stop() }

    /// Stops listening and ends every connection, as the end of the process would: without any message of TLS.
    public func kill() { connections.stop() }
}

/// The threads of a server, one for each connection, and what ends them.
private final class TLSTestConnections: Sendable {
    private let context: TLSTestContext
    private let open = Mutex<Set<Int32>?>([])
    /// Its reading end becomes ready when the server stops.
    private let pipe: (reading: Int32, writing: Int32)

    init(_ context: TLSTestContext) {
        self.context = context
        var ends: [Int32] = [-1, -1]
        _ = Foundation.pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        pipe = (ends[0], ends[1])
    }

    deinit { close(pipe.reading) }

    func accept(from listener: Int32) {
        while true {
            var entries = [
                pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
                pollfd(fd: pipe.reading, events: Int16(POLLIN), revents: 0),
            ]
            _ = poll(&entries, 2, -1)
            guard entries[1].revents == 0 else { return }
            let descriptor = Foundation.accept(listener, nil, nil)
            guard descriptor >= 0 else { continue }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
            guard open.withLock({ $0?.insert(descriptor) }) != nil else {
                close(descriptor)
                return
            }
            Thread.detachNewThread { [self] in
                context.serve(descriptor)
                // Under the lock, so that `stop` touches no descriptor that has another owner by then.
                open.withLock { open in
                    _ = open?.remove(descriptor)
                    close(descriptor)
                }
            }
        }
    }

    func stop() {
        open.withLock { open in
            guard let all = open else { return }
            close(pipe.writing)
            for descriptor in all {
                // Wakes the thread, which closes the descriptor. For writing too, since OpenSSL sends an alert otherwise.
                shutdown(descriptor, Int32(SHUT_RDWR))
            }
            open = nil
        }
    }
}

/// OpenSSL's context of a server.
private final class TLSTestContext: @unchecked Sendable {
    // Sendable because an SSL_CTX may be used by many threads once it is set up.
    private typealias Pointer = OpaquePointer
    private let library: OpenSSLLibrary
    private let context: Pointer
    /// The protocols as ALPN writes them.
    fileprivate let protocols: [UInt8]
    fileprivate let preSharedKey: (identity: String, key: [UInt8])?
    private let reply: [UInt8]?
    fileprivate let selectProtocol:
        @convention(c) (
            UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?, UnsafePointer<UInt8>?, UInt32,
            UnsafePointer<UInt8>?, UInt32
        ) -> Int32

    init(_ pair: Certificates.Pair, _ options: TLSTestServer.Options) throws {
        library = try OpenSSLLibrary.open(OpenSSLLibrary.usualNames)
        selectProtocol = try library.function("SSL_select_next_proto")
        preSharedKey = options.preSharedKey
        reply = options.reply
        protocols = options.applicationProtocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        let method: @convention(c) () -> Pointer? = try library.function("TLS_server_method")
        let new: @convention(c) (Pointer?) -> Pointer? = try library.function("SSL_CTX_new")
        guard let context = new(method()) else { throw TLSTestFailure(description: "no context") }
        self.context = context
        if preSharedKey == nil { try use(pair) }
        try set(options)
        try setUpKey()
    }

    deinit {
        let free: (@convention(c) (Pointer?) -> Void)? = try? library.function("SSL_CTX_free")
        free?(context)
    }

    private func use(_ pair: Certificates.Pair) throws {
        let useCertificate: @convention(c) (Pointer?, UnsafePointer<CChar>?) -> Int32 =
            try library.function("SSL_CTX_use_certificate_chain_file")
        let useKey: @convention(c) (Pointer?, UnsafePointer<CChar>?, Int32) -> Int32 =
            try library.function("SSL_CTX_use_PrivateKey_file")
        let pem: Int32 = 1
        guard useCertificate(context, pair.certificate) == 1, useKey(context, pair.key, pem) == 1 else {
            throw TLSTestFailure(description: "\(pair.certificate) or its key cannot be used")
        }
    }

    private func set(_ options: TLSTestServer.Options) throws {
        let control: @convention(c) (Pointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int =
            try library.function("SSL_CTX_ctrl")
        let (minimumVersion, maximumVersion) = (Int32(123), Int32(124))
        if let version = options.version {
            _ = control(context, minimumVersion, version.rawValue, nil)
            _ = control(context, maximumVersion, version.rawValue, nil)
        }
        if options.version == .tls11 {
            // Its signatures are too weak for OpenSSL's default level.
            let setCiphers: @convention(c) (Pointer?, UnsafePointer<CChar>?) -> Int32 =
                try library.function("SSL_CTX_set_cipher_list")
            _ = setCiphers(context, "DEFAULT@SECLEVEL=0")
        }
        if let authority = options.clientAuthority {
            let load: @convention(c) (Pointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Int32 =
                try library.function("SSL_CTX_load_verify_locations")
            guard load(context, authority, nil) == 1 else {
                throw TLSTestFailure(description: "\(authority) cannot be used")
            }
            let setVerify: @convention(c) (Pointer?, Int32, Pointer?) -> Void =
                try library.function("SSL_CTX_set_verify")
            let (verifyPeer, failIfNoCertificate) = (Int32(1), Int32(2))
            setVerify(context, verifyPeer | failIfNoCertificate, nil)
        }
        let setSessionID: @convention(c) (Pointer?, UnsafePointer<UInt8>?, UInt32) -> Int32 =
            try library.function("SSL_CTX_set_session_id_context")
        _ = setSessionID(context, [1], 1)
        if !protocols.isEmpty {
            let setSelector: @convention(c) (Pointer?, ProtocolSelector?, UnsafeMutableRawPointer?) -> Void =
                try library.function("SSL_CTX_set_alpn_select_cb")
            // This object outlives its context.
            setSelector(context, selectProtocolOfContext, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    private func setUpKey() throws {
        // This object outlives its context.
        let this = Unmanaged.passUnretained(self).toOpaque()
        if preSharedKey != nil {
            let setData: @convention(c) (Pointer?, Int32, UnsafeMutableRawPointer?) -> Int32 =
                try library.function("SSL_CTX_set_ex_data")
            let setCallback: @convention(c) (Pointer?, PreSharedKeyFinder?) -> Void =
                try library.function("SSL_CTX_set_psk_server_callback")
            _ = setData(context, 0, this)
            setCallback(context, findPreSharedKey)
        }
    }

    /// Handshake and lines, until the client ends the connection or its descriptor is shut down.
    func serve(_ descriptor: Int32) {
        // OpenSSL writes without MSG_NOSIGNAL; the signal of a broken pipe is this thread's.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        do { try exchange(descriptor) } catch { FileHandle.standardError.write(Data("\(error)\n".utf8)) }
        // What is unread would turn the end into a reset, which may overtake our last alert.
        shutdown(descriptor, Int32(SHUT_WR))
        var rest = [UInt8](repeating: 0, count: 4096)
        while recv(descriptor, &rest, rest.count, 0) > 0 {}
    }

    private func exchange(_ descriptor: Int32) throws {
        let new: @convention(c) (Pointer?) -> Pointer? = try library.function("SSL_new")
        let free: @convention(c) (Pointer?) -> Void = try library.function("SSL_free")
        let setDescriptor: @convention(c) (Pointer?, Int32) -> Int32 = try library.function("SSL_set_fd")
        let handshake: @convention(c) (Pointer?) -> Int32 = try library.function("SSL_accept")
        let read: @convention(c) (Pointer?, UnsafeMutableRawPointer?, Int32) -> Int32 = try library.function("SSL_read")
        let write: @convention(c) (Pointer?, UnsafeRawPointer?, Int32) -> Int32 = try library.function("SSL_write")
        let clearErrors: @convention(c) () -> Void = try library.function("ERR_clear_error")
        let end: @convention(c) (Pointer?) -> Int32 = try library.function("SSL_shutdown")
        let connection = new(context)
        defer { free(connection) }
        guard setDescriptor(connection, descriptor) == 1, handshake(connection) == 1 else { return clearErrors() }
        var (line, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 16 * 1024))
        var reply = reply
        while true {
            let count = read(connection, &chunk, Int32(chunk.count))
            guard count > 0 else {
                // 0 is the client's closing message, which ours answers.
                if count == 0 { _ = end(connection) }
                return clearErrors()
            }
            if let bytes = reply.take() { _ = write(connection, bytes, Int32(bytes.count)) }
            guard self.reply == nil else { continue }
            for byte in chunk[..<Int(count)] {
                guard byte == UInt8(ascii: "\n") else {
                    line.append(byte)
                    continue
                }
                let reply = Array(line.reversed()) + [byte]
                _ = write(connection, reply, Int32(reply.count))
                line = []
            }
        }
    }
}

private typealias ProtocolSelector =
    @convention(c) (
        OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
        UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
    ) -> Int32

private let selectProtocolOfContext: ProtocolSelector = { _, chosen, length, offered, count, context in
    let context = Unmanaged<TLSTestContext>.fromOpaque(context!).takeUnretainedValue()
    let (isChosen, accept, refuse) = (Int32(1), Int32(0), Int32(2))
    return context.protocols.withUnsafeBufferPointer { own in
        // What is chosen lies in the client's offer or in our list, which lives as long as the context.
        context.selectProtocol(chosen, length, own.baseAddress, UInt32(own.count), offered, count) == isChosen
            ? accept : refuse
    }
}

private typealias PreSharedKeyFinder =
    @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<UInt8>?, UInt32) -> UInt32

/// The size of the key, or 0 for a client that is not known.
private let findPreSharedKey: PreSharedKeyFinder = { connection, identity, key, _ in
    guard let library = try? OpenSSLLibrary.open(OpenSSLLibrary.usualNames),
        let context: @convention(c) (OpaquePointer?) -> OpaquePointer? = try? library.function("SSL_get_SSL_CTX"),
        let data: @convention(c) (OpaquePointer?, Int32) -> UnsafeMutableRawPointer? =
            try? library.function("SSL_CTX_get_ex_data"),
        let owner = data(context(connection), 0),
        let own = Unmanaged<TLSTestContext>.fromOpaque(owner).takeUnretainedValue().preSharedKey,
        identity.map({ String(cString: $0) }) == own.identity
    else { return 0 }
    key?.update(from: own.key, count: own.key.count)
    return UInt32(own.key.count)
}

/// What keeps a server from starting.
private struct TLSTestFailure: Error, CustomStringConvertible {
    let description: String
}

import MessagingWire

/// One TLS connection without any input or output of its own: encrypted bytes in and out, plaintext in and out.
///
/// It knows OpenSSL and nothing about what its errors mean to people; `TLSLayer` does. All calls come from one thread
/// at a time, which OpenSSL's queue of errors needs.
// Every `unsafe` in this class passes OpenSSL the connection or one of its BIOs, which `init` makes and `deinit` frees,
// or a buffer with its length, which OpenSSL uses during the call only.
@safe
final class TLSSession {
    enum Step {
        /// Nothing more can be done before the peer sends more.
        case needsInput
        /// The handshake is over, and the peer is verified.
        case established
        /// The peer has sent close_notify.
        case closed
        case failed(code: UInt, text: String)
    }

    let context: TLSContext
    private let connection: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    /// What errors call the peer.
    let peerName: String
    /// What is verified; empty on the server's side.
    private(set) var serverName = ""
    /// Set by a check of the peer that fails.
    var rejection: TransportError?
    /// Set when the server asks for a certificate.
    var certificateWasRequested = false
    /// Whether it asked in vain.
    var lacksCertificate: Bool { certificateWasRequested && !context.hasIdentity }

    private var openSSL: OpenSSL { context.openSSL }

    /// - Throws: `tlsFailed` without memory.
    init(_ context: TLSContext, peerName: String) throws(TransportError) {
        let openSSL = context.openSSL
        guard let connection = unsafe openSSL.new(context.pointer),
            let input = unsafe openSSL.bioNew(openSSL.bioMemory()),
            let output = unsafe openSSL.bioNew(openSSL.bioMemory())
        else {
            throw TransportError(.tlsFailed, "OpenSSL could not prepare a TLS connection: \(openSSL.takeError().text).")
        }
        self.context = context
        self.peerName = peerName
        unsafe self.connection = connection
        unsafe self.input = input
        unsafe self.output = output
        // The connection owns both from here on.
        unsafe openSSL.setBIO(connection, input, output)
        _ = unsafe openSSL.setExtraData(connection, 0, Unmanaged.passUnretained(self).toOpaque())
        unsafe context.register(connection)
        if context.isServer { unsafe openSSL.setAccept(connection) } else { unsafe openSSL.setConnect(connection) }
    }

    deinit {
        // OpenSSL spoils the session of a connection that ends without a good-bye; RFC 5246 no longer asks for that.
        let (sent, received) = (Int32(1), Int32(2))
        unsafe openSSL.setShutdown(connection, sent | received)
        unsafe context.unregister(connection)
        unsafe openSSL.free(connection)
    }

    // MARK: Before the handshake

    /// Says which server is wanted and, unless the options say otherwise, verifies that it is that.
    ///
    /// - Throws: `tlsConfiguration` for a name that cannot be verified.
    func setServer(_ name: ServerName) throws(TransportError) {
        serverName = name.text
        guard name.isAddress else {
            // RFC 6066 section 3: names only.
            let (hostName, kind) = (Int32(55), 0)
            let isSet = unsafe name.text.withCString {
                unsafe openSSL.control(connection, hostName, kind, UnsafeMutableRawPointer(mutating: $0))
            }
            guard isSet == 1 else { throw ServerName.unusable(name.text) }
            guard context.verifiesName else { return }
            // Wildcards stand for one whole label; the common name is nothing to go by (RFC 9525).
            let (noPartialWildcards, neverCheckSubject) = (UInt32(0x4), UInt32(0x20))
            unsafe openSSL.setHostFlags(connection, noPartialWildcards | neverCheckSubject)
            guard unsafe openSSL.setHost(connection, name.text) == 1 else { throw ServerName.unusable(name.text) }
            return
        }
        guard context.verifiesName else { return }
        guard unsafe openSSL.parametersSetAddress(openSSL.parameters(connection), name.text) == 1 else {
            throw ServerName.unusable(name.text)
        }
    }

    /// Offers protocols by ALPN.
    func offer(_ protocols: [String]) throws(TransportError) {
        guard !protocols.isEmpty else { return }
        var list: [UInt8] = []
        for name in protocols {
            guard (1...255).contains(name.utf8.count) else {
                throw TransportError(
                    .tlsConfiguration, "'\(name)' is not the name of an application protocol. Use 1 to 255 bytes.")
            }
            list.append(UInt8(name.utf8.count))
            list.append(contentsOf: name.utf8)
        }
        // Unlike the rest of OpenSSL, this returns 0 for success.
        guard unsafe openSSL.setProtocols(connection, list, UInt32(list.count)) == 0 else {
            throw TransportError(
                .tlsConfiguration, "The list of application protocols is too long. Use fewer or shorter names.")
        }
    }

    func resume(_ session: TLSSessionCache.Entry) {
        _ = unsafe openSSL.setSession(connection, session.pointer)
    }

    // MARK: Moving bytes

    func feed(_ bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { bytes in
            // Memory BIOs take everything at once; what is given is at most one read of the loop.
            if unsafe !bytes.isEmpty { _ = unsafe openSSL.bioWrite(input, bytes.baseAddress, Int32(bytes.count)) }
        }
    }

    func handshake() -> Step {
        openSSL.errorClear()
        let result = unsafe openSSL.handshake(connection)
        return result == 1 ? .established : step(result)
    }

    /// Decrypts everything that is there.
    func read(into plain: inout [UInt8]) -> Step {
        unsafe withUnsafeTemporaryAllocation(byteCount: Self.recordSize, alignment: 16) { record in
            while true {
                openSSL.errorClear()
                let count = unsafe openSSL.read(connection, record.baseAddress, Int32(record.count))
                guard count > 0 else { return step(count) }
                unsafe plain.append(contentsOf: record[..<Int(count)])
            }
        }
    }

    /// Encrypts all of `plain`, in pieces that keep OpenSSL's own buffer small.
    func write(_ plain: RawSpan, into wire: inout [UInt8]) -> Step {
        unsafe plain.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                let count = min(bytes.count - offset, 4 * Self.recordSize)
                openSSL.errorClear()
                let written = unsafe openSSL.write(connection, bytes.baseAddress! + offset, Int32(count))
                drain(into: &wire)
                guard written > 0 else { return step(written) }
                offset += Int(written)
            }
            return .established
        }
    }

    /// Writes close_notify.
    func close() {
        openSSL.errorClear()
        _ = unsafe openSSL.shutdown(connection)
        openSSL.errorClear()
    }

    /// Moves what OpenSSL wants to send to `wire`.
    func drain(into wire: inout [UInt8]) {
        while true {
            let count = unsafe openSSL.bioPending(output)
            guard count > 0 else { return }
            let start = wire.count
            wire.append(contentsOf: repeatElement(0, count: count))
            let read = unsafe wire.withUnsafeMutableBytes {
                unsafe openSSL.bioRead(output, $0.baseAddress! + start, Int32(clamping: count))
            }
            wire.removeLast(count - Int(max(0, read)))
            guard read > 0 else { return }
        }
    }

    private func step(_ result: Int32) -> Step {
        switch unsafe openSSL.getError(connection, result) {
        case 2, 3: return .needsInput
        case 6: return .closed
        default:
            let (code, text) = openSSL.takeError()
            return .failed(code: code, text: text)
        }
    }

    private static let recordSize = 16 * 1024

    // MARK: After the handshake

    /// Such as `TLSv1.3`.
    var version: String { unsafe openSSL.version(connection).map { unsafe String(cString: $0) } ?? "?" }
    var wasResumed: Bool { unsafe openSSL.wasResumed(connection) == 1 }
    /// Whether what the handshake verified is in order; `X509_V_OK` is 0.
    var isVerified: Bool { unsafe openSSL.verifyResult(connection) == 0 }

    /// What the server chose by ALPN.
    var applicationProtocol: String? {
        var (start, count): (UnsafePointer<UInt8>?, UInt32) = (nil, 0)
        unsafe openSSL.selectedProtocol(connection, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The session, if it can be resumed; in TLS 1.3 only once a ticket has come.
    func resumableSession() -> TLSSessionCache.Entry? {
        guard let session = unsafe openSSL.takeSession(connection) else { return nil }
        let entry = unsafe TLSSessionCache.Entry(session, openSSL)
        return unsafe openSSL.sessionIsResumable(session) == 1 ? entry : nil
    }
}

/// The name or address that a server's certificate has to be for.
struct ServerName: Sendable {
    /// Without brackets, zone and final dot.
    let text: String
    let isAddress: Bool

    /// - Throws: `tlsConfiguration` for a name that OpenSSL would take for "do not verify", or cut.
    init(_ host: String) throws(TransportError) {
        var bytes = Array(host.utf8)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if bytes.contains(UInt8(ascii: ":")), let zone = bytes.firstIndex(of: UInt8(ascii: "%")) {
            bytes.removeSubrange(zone...)
        }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        text = String(decoding: bytes, as: UTF8.self)
        guard !bytes.isEmpty, bytes.count <= 253, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            bytes.first != UInt8(ascii: ".")
        else { throw Self.unusable(host) }
        var address = in6_addr()
        isAddress = unsafe inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1
    }

    static func unusable(_ name: String) -> TransportError {
        TransportError(
            .tlsConfiguration,
            "A certificate cannot name '\(name)'. Use a DNS name in ASCII, or an address.\(Punycode.advice(on: name))")
    }
}

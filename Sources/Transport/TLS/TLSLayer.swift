import Synchronization

/// TLS between a stream and what lies above it.
///
/// The layer is open when the handshake is done and the peer verified, so that nothing from above leaves before.
package final class TLSLayer: ByteLayer {
    private enum Phase { case handshaking, open, closed, failed }

    private let session: TLSSession
    /// Where its session is kept, under which key; nil when sessions are not resumed.
    private let cache: (sessions: TLSSessionCache, key: String)?
    private var offeredSession = false
    private var phase = Phase.handshaking
    private var hasReceived = false
    /// Whether the peer has said anything to the layers above.
    private var hasDelivered = false
    private var storedSession = false

    /// The client's side of a connection.
    ///
    /// - Parameters:
    ///   - host: what the URL names; the options may name another to verify.
    ///   - protocols: offered by ALPN unless the options say otherwise.
    /// - Throws: `tlsUnavailable`, `tlsConfiguration`.
    package convenience init(
        client contexts: TLSContexts, host: String, port: UInt16, protocols: [String] = []
    ) throws(TransportError) {
        let use = try contexts.context()
        let options = use.context.options ?? TLSOptions()
        let name = try ServerName(options.serverName ?? host)
        // Servers that want certificates and do not name their sessions end the connection when one is resumed.
        // A session does not include the checks that are made on each connection.
        let resumes = options.resumesSessions && !options.checksEachConnection
        try self.init(
            use.context, peerName: "\(Endpoint.host(host, port: port))",
            cache: resumes ? (use.sessions, "\(name.text) \(host) \(port)") : nil)
        try session.setServer(name)
        try session.offer(options.applicationProtocols ?? protocols)
        if let cache, let earlier = cache.sessions.take(cache.key) {
            session.resume(earlier)
            offeredSession = true
        }
    }

    /// The server's side of a connection.
    ///
    /// - Throws: `tlsUnavailable`, `tlsConfiguration`.
    package convenience init(server contexts: TLSContexts) throws(TransportError) {
        try self.init(try contexts.context().context, peerName: "a client", cache: nil)
    }

    private init(
        _ context: TLSContext, peerName: String, cache: (sessions: TLSSessionCache, key: String)?
    ) throws(TransportError) {
        session = try TLSSession(context, peerName: peerName)
        self.cache = cache
    }

    private var peerName: String { session.peerName }
    package var isOpen: Bool { phase == .open }
    package var isFinished: Bool { phase == .closed }
    /// Such as `TLSv1.3`; after the handshake.
    package var version: String { session.version }
    package var wasResumed: Bool { session.wasResumed }
    /// What the server chose among the protocols that were offered.
    package var applicationProtocol: String? { session.applicationProtocol }

    package func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError) {
        defer { session.drain(into: &wire) }
        try continueHandshake()
    }

    package func receive(
        _ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]
    ) throws(TransportError) {
        guard phase == .handshaking || phase == .open else { return }
        defer { session.drain(into: &wire) }
        hasReceived = true
        session.feed(bytes)
        if phase == .handshaking { try continueHandshake() }
        guard phase == .open else { return }
        let count = plain.count
        defer { if plain.count > count { hasDelivered = true } }
        switch session.read(into: &plain) {
        case .needsInput, .established:
            break
        case .closed:
            phase = .closed
            session.close()
        case .failed(let code, let text):
            throw failure(code, text)
        }
        storeSession()
    }

    package func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        guard phase == .open else { return }
        switch session.write(plain, into: &wire) {
        case .established, .closed:
            break
        case .needsInput:
            // The bytes are not encrypted, and would be missing in the stream.
            phase = .failed
            throw TransportError(
                .tlsFailed,
                "Nothing can be sent to \(peerName) before it has answered another handshake of TLS, which no connection needs. Connect again."
            )
        case .failed(let code, let text):
            throw failure(code, text)
        }
    }

    package func close(wire: inout [UInt8]) {
        guard phase == .open else { return }
        session.close()
        session.drain(into: &wire)
    }

    package func endReceived() throws(TransportError) {
        switch phase {
        case .closed, .failed: return
        case .open:
            // In TLS 1.3 the refusal comes after our handshake, and what we sent meanwhile may have destroyed it.
            if !hasDelivered && session.lacksCertificate { throw TLSFailure.clientCertificateMissing(peerName) }
            throw TransportError(
                .tlsTruncated,
                "\(peerName) ended the connection without the closing message of TLS. It may have stopped, or the network cut the connection: connect again."
            )
        case .handshaking:
            noteHandshake(succeeded: false)
            throw endedInHandshake
        }
    }

    private func continueHandshake() throws(TransportError) {
        switch session.handshake() {
        case .needsInput:
            break
        case .established:
            // Otherwise the handshake has failed already; this catches a mistake in the callbacks.
            guard session.isVerified || !session.context.verifiesChain else {
                phase = .failed
                throw TransportError(
                    .certificateInvalid, "The certificate of \(peerName) was not verified. Connect again.")
            }
            phase = .open
            noteHandshake(succeeded: true)
        case .closed:
            phase = .failed
            noteHandshake(succeeded: false)
            throw endedInHandshake
        case .failed(let code, let text):
            noteHandshake(succeeded: false)
            throw failure(code, text)
        }
    }

    private func storeSession() {
        guard let cache, !storedSession, phase == .open, let entry = session.resumableSession() else { return }
        storedSession = true
        cache.sessions.store(entry, for: cache.key)
    }

    private func noteHandshake(succeeded: Bool) {
        guard let cache else { return }
        if !offeredSession {
            cache.sessions.noteHandshakeWithoutSession(cache.key, succeeded: succeeded)
        } else if !succeeded {
            cache.sessions.refuse(cache.key)
        }
    }

    private var endedInHandshake: TransportError {
        if session.lacksCertificate {
            return TLSFailure.clientCertificateMissing(peerName)
        }
        return TransportError(
            hasReceived ? .tlsFailed : .notTLS,
            hasReceived
                ? "\(peerName) ended the connection during the TLS handshake. See the server's log for the reason."
                : "\(peerName) ended the connection instead of beginning TLS. Use its port for TLS, or a URL without TLS."
        )
    }

    /// OpenSSL has reported an error, after which the session cannot be used.
    private func failure(_ code: UInt, _ text: String) -> TransportError {
        let wasOpen = phase == .open
        phase = .failed
        if let rejection = session.rejection { return rejection }
        return TLSFailure.failed(
            code, text, peer: peerName, wasOpen: wasOpen, asked: session.certificateWasRequested,
            hasIdentity: session.context.hasIdentity, preSharedKey: session.context.options?.preSharedKey)
    }
}

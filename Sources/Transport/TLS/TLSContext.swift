import Synchronization

/// What all TLS connections of one configuration share: authorities, identity, and sessions to be resumed.
// Every `unsafe` in this class passes OpenSSL the context, which `init` makes and `deinit` frees, or certificates and
// keys that PEMReader has returned and that are freed after OpenSSL has taken a reference of its own.
@safe
final class TLSContext: @unchecked Sendable {
    // Sendable because an SSL_CTX may be used by many threads once it is set up, and the sessions are locked.
    enum Kind: Hashable {
        case client(TLSOptions)
        case server(TLSServerOptions)
    }

    let openSSL: OpenSSL
    let pointer: OpaquePointer
    let kind: Kind
    let sessions = Lock(TLSSessionCache())

    /// Reads all files that the options name.
    ///
    /// - Throws: `tlsUnavailable`, `tlsConfiguration`.
    init(_ kind: Kind) throws(TransportError) {
        if case .client(let options) = kind { try options.checkDemands(on: .openSSL) }
        let path =
            switch kind {
            case .client(let options): options.libraryPath
            case .server(let options): options.libraryPath
            }
        openSSL = try OpenSSL.load(path: path)
        openSSL.errorClear()
        guard let pointer = unsafe openSSL.contextNew(openSSL.method()) else {
            throw TransportError(.tlsFailed, "OpenSSL could not prepare TLS: \(openSSL.takeError().text).")
        }
        unsafe self.pointer = pointer
        self.kind = kind
        try setUp()
        switch kind {
        case .client(let options):
            if let identity = options.identity { try use(identity) }
            try setUpVerification(options)
            try setUpSecrets(options)
        case .server(let options):
            try use(options.identity)
            if let authorities = options.clientAuthorities {
                try add(authorities)
                verify(mode: 1 | 2)
            }
        }
    }

    deinit {
        unsafe openSSL.contextFree(pointer)
    }

    private func setUp() throws(TransportError) {
        let minimumVersion: Int32 = 123
        let version = options?.minimumVersion ?? .tls12
        guard unsafe openSSL.contextControl(pointer, minimumVersion, Int(version.number), nil) == 1 else {
            throw TransportError(
                .tlsFailed, "OpenSSL on this machine does not allow TLS \(version) as the lowest version.")
        }
        let (noCompression, noRenegotiation) = (UInt64(1) << 17, UInt64(1) << 30)
        _ = unsafe openSSL.contextSetOptions(pointer, noCompression | noRenegotiation)
        // Idle connections give their record buffers back.
        let (mode, releaseBuffers) = (Int32(33), 0x10)
        _ = unsafe openSSL.contextControl(pointer, mode, releaseBuffers, nil)
        // Not for clients, whose sessions of pre-shared keys have none.
        guard isServer else { return }
        let sessionContext = Array("swift-messaging".utf8)
        _ = unsafe openSSL.contextSetSessionID(pointer, sessionContext, UInt32(sessionContext.count))
    }

    private func setUpVerification(_ options: TLSOptions) throws(TransportError) {
        // Called when the server asks for a certificate, which no error tells afterwards.
        unsafe openSSL.contextSetCertificateCallback(pointer, noteRequest, Unmanaged.passUnretained(self).toOpaque())
        guard options.verification.level != .none, options.preSharedKey == nil else {
            // The callback judges what nothing has verified, or refuses every certificate.
            if options.judgesChain || options.preSharedKey != nil { return verify(mode: 1) }
            return unsafe openSSL.contextSetVerify(pointer, 0, nil)
        }
        if options.trust.usesSystem { _ = unsafe openSSL.contextSystemPaths(pointer) }
        try add(options.trust.authorities)
        verify(mode: 1)
        if options.revocation != .unchecked { try askForStatus() }
    }

    /// The callback gets this object as that of the verification does.
    private func askForStatus() throws(TransportError) {
        _ = try StapledStatus(openSSL)
        let setCallback: @convention(c) (OpaquePointer?, Int32, OpenSSL.Callback?) -> Int =
            try unsafe openSSL.library.function("SSL_CTX_callback_ctrl")
        let (callback, argument, type) = (Int32(63), Int32(64), Int32(65))
        let ocsp = 1
        _ = unsafe setCallback(pointer, callback, checkStapledStatus)
        _ = unsafe openSSL.contextControl(pointer, argument, 0, Unmanaged.passUnretained(self).toOpaque())
        _ = unsafe openSSL.contextControl(pointer, type, ocsp, nil)
    }

    /// The callback gets this object without a reference: it outlives its connections, which hold one.
    private func verify(mode: Int32) {
        unsafe openSSL.contextSetVerify(pointer, mode, nil)
        unsafe openSSL.contextSetVerifier(pointer, verifyPeer, Unmanaged.passUnretained(self).toOpaque())
    }

    private func add(_ authorities: [PEMSource]) throws(TransportError) {
        let store = unsafe openSSL.contextStore(pointer)
        for source in authorities {
            let certificates = try unsafe PEMReader(openSSL: openSSL).certificates(source, "trusted authorities")
            for index in unsafe certificates.indices {
                // Adding one twice is no error.
                _ = unsafe openSSL.storeAdd(store, certificates[index])
            }
            unsafe openSSL.free(certificates)
        }
        // Whom the user names is trusted, whether it is a root or not.
        let partialChain: UInt = 0x80000
        if !authorities.isEmpty {
            _ = unsafe openSSL.parametersSetFlags(openSSL.contextParameters(pointer), partialChain)
        }
    }

    private func use(_ identity: TLSIdentity) throws(TransportError) {
        let reader = PEMReader(openSSL: openSSL)
        let (key, certificates) = try unsafe reader.identity(identity)
        defer {
            unsafe openSSL.keyFree(key)
            unsafe openSSL.free(certificates)
        }
        openSSL.errorClear()
        guard unsafe openSSL.contextUseCertificate(pointer, certificates[0]) == 1 else {
            throw TransportError(.tlsConfiguration, "\(identity) cannot be used: \(openSSL.takeError().text).")
        }
        let (chainCertificate, addsReference) = (Int32(89), 1)
        for index in unsafe certificates.indices.dropFirst() {
            _ = unsafe openSSL.contextControl(
                pointer, chainCertificate, addsReference, UnsafeMutableRawPointer(certificates[index]))
        }
        guard unsafe openSSL.contextUseKey(pointer, key) == 1, unsafe openSSL.contextCheckKey(pointer) == 1 else {
            let reason = openSSL.takeError().text
            throw TransportError(
                .tlsConfiguration,
                "The key of \(identity) does not belong to its certificate (\(reason)). Give the key for it.")
        }
    }
}

extension TLSContext {
    var options: TLSOptions? { if case .client(let options) = kind { options } else { nil } }
    var isServer: Bool { options == nil }
    var hasIdentity: Bool { options.map { $0.identity != nil } ?? true }
    var verifiesName: Bool { options.map { $0.verification == .full } ?? false }
    var verifiesChain: Bool { options.map { $0.verification.level != .none } ?? false }

    fileprivate func session(_ connection: OpaquePointer?) -> TLSSession? {
        unsafe openSSL.extraData(connection, 0).map {
            unsafe Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue()
        }
    }

    fileprivate func verify(_ storeContext: OpaquePointer?) -> Int32 {
        let connection = unsafe openSSL.storeContextExtraData(storeContext, openSSL.storeContextIndex())
        guard let session = unsafe session(connection.map { OpaquePointer($0) }) else { return 0 }
        if options?.preSharedKey != nil {
            session.rejection = TLSFailure.ignoredPreSharedKey(session.peerName)
        } else if verifiesChain || isServer, unsafe openSSL.verifyCertificate(storeContext) != 1 {
            session.rejection = TLSFailure.rejected(
                unsafe CertificateRejection(openSSL, storeContext: storeContext), by: session.peerName, self)
            return 0
        } else if let options, options.judgesChain {
            let chain =
                unsafe verifiesChain
                ? openSSL.storeContextChain(storeContext) : openSSL.storeContextSent(storeContext)
            session.rejection = options.rejection(
                of: unsafe openSSL.der(ofAll: chain), name: session.serverName, peerName: session.peerName,
                sha256: openSSL.digest(of:))
        }
        guard session.rejection != nil else { return 1 }
        let applicationVerification: Int32 = 50
        unsafe openSSL.storeContextSetError(storeContext, applicationVerification)
        return 0
    }

    /// Whether the status that the server has stapled, or not, is acceptable; after the chain was verified.
    fileprivate func checkStatus(_ connection: OpaquePointer?) -> Int32 {
        guard let session = unsafe session(connection), let options else { return 0 }
        do throws(TransportError) {
            session.rejection = try unsafe StapledStatus(openSSL).rejection(
                connection, isRequired: options.revocation == .required, peerName: session.peerName)
        } catch {
            session.rejection = error
        }
        return session.rejection == nil ? 1 : 0
    }
}

private let verifyPeer: OpenSSL.Callback = { storeContext, context in
    guard let context = unsafe context else { return 0 }
    return unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().verify(storeContext)
}

private let checkStapledStatus: OpenSSL.Callback = { connection, context in
    guard let context = unsafe context else { return 0 }
    return unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().checkStatus(connection)
}

private let noteRequest: OpenSSL.Callback = { connection, context in
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().session(connection)?
        .certificateWasRequested = true
    return 1
}

/// One configuration of TLS for all connections that a client or server makes with it. Files are read with the first
/// connection, and again after `reload(after:)`.
package final class TLSContexts: Sendable {
    private let kind: TLSContext.Kind
    private let current = Lock(Known<TLSContext>())
    #if canImport(Network)
        private let currentOfSystem = Lock(Known<NetworkTLS>())
    #endif
    /// The files are being read.
    private let reading = Lock<Task<Result<Void, TransportError>, Never>?>(nil)

    /// What was made of the files when they were last read.
    private struct Known<Context: Sendable>: Sendable {
        var context: Context?
        /// Whether the next connection reads them anew.
        var isStale = true
        /// Why they could not be read anew, so that `context` is of before.
        var failure: TransportError?
    }

    package init(client options: TLSOptions) {
        kind = .client(options)
    }

    package init(server options: TLSServerOptions) {
        kind = .server(options)
    }

    /// - Throws: `tlsUnavailable`, `tlsConfiguration`, `systemLimit`.
    func context() throws(TransportError) -> TLSContext {
        try Self.read(current) { () throws(TransportError) in try TLSContext(kind) }
    }

    /// What is known, if it is not stale; otherwise what is made anew, or what is known if that fails: files that could be
    /// read before may be missing for a moment, or half replaced.
    private static func read<Context: Sendable>(
        _ known: borrowing Lock<Known<Context>>, _ make: () throws(TransportError) -> Context
    ) throws(TransportError) -> Context {
        let earlier = known.withLock { $0 }
        if let context = earlier.context, !earlier.isStale { return context }
        do throws(TransportError) {
            // Outside the lock: this reads files.
            let made = try make()
            known.withLock { $0 = Known(context: made, isStale: false) }
            return made
        } catch {
            guard let context = earlier.context else { throw error }
            known.withLock { $0 = Known(context: context, isStale: false, failure: error) }
            return context
        }
    }

    /// Whether the files have been read.
    package var isPrepared: Bool {
        #if canImport(Network)
            current.withLock { !$0.isStale } || currentOfSystem.withLock { !$0.isStale }
        #else
            current.withLock { !$0.isStale }
        #endif
    }

    /// Reads the files for the next connection, unless that has been done: not on the caller's thread, which may be the
    /// loop's.
    ///
    /// - Throws: `tlsUnavailable`, `tlsConfiguration`.
    package func prepare() async throws(TransportError) {
        if isPrepared { return }
        // Whoever comes while files are read waits for that: reading that hangs holds one thread, however often it is tried.
        let task = reading.withLock { reading in
            if let reading { return reading }
            let task = Task.detached {
                defer { self.reading.withLock { $0 = nil } }
                return self.readFiles()
            }
            reading = task
            return task
        }
        try await task.value.get()
    }

    private func readFiles() -> Result<Void, TransportError> {
        do throws(TransportError) {
            #if canImport(Network)
                if try usesSystem() {
                    _ = try networkTLS()
                    return .success(())
                }
            #endif
            _ = try context()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// A connection has failed, perhaps due to certificates that were replaced since they were read: the next one reads
    /// the files anew.
    ///
    /// - Returns: the error, with a sentence about files that this connection could not read anew.
    package func reload(after error: TransportError) -> TransportError {
        var failure = current.withLock { known in
            known.isStale = true
            return known.failure
        }
        #if canImport(Network)
            let failureOfSystem = currentOfSystem.withLock { known in
                known.isStale = true
                return known.failure
            }
            failure = failure ?? failureOfSystem
        #endif
        return failure.map {
            error.adding("What the TLS files held before was used, because they cannot be read now: \($0.message)")
        } ?? error
    }

    /// Whether the system's Network.framework does the TLS, so that it comes with the stream and not as a layer.
    ///
    /// - Throws: `tlsUnavailable` if the options ask for it where it does not exist.
    package func usesSystem() throws(TransportError) -> Bool {
        guard case .client(let options) = kind else { return false }
        #if canImport(Network)
            switch options.implementation.kind {
            case .system: return true
            case .openSSL: return false
            case .automatic: return !options.needsOpenSSL
            }
        #else
            guard options.implementation == .system else { return false }
            throw TransportError(
                .tlsUnavailable,
                "Network.framework exists on Apple's systems only. Choose the implementation .automatic in the TLS "
                    + "options.")
        #endif
    }

    #if canImport(Network)
        /// - Throws: `tlsConfiguration`.
        func networkTLS() throws(TransportError) -> NetworkTLS {
            guard case .client(let options) = kind else {
                throw TransportError(.unsupported, "Network.framework serves clients only here.")
            }
            return try Self.read(currentOfSystem) { () throws(TransportError) in try NetworkTLS(options) }
        }
    #endif
}

/// Sessions that may be resumed, one for each server. Each is used once, as RFC 8446 (appendix C.4) advises.
struct TLSSessionCache {
    /// A reference to an `SSL_SESSION`.
    // Safe to use: it owns a reference to the session, which `deinit` gives back.
    @safe
    final class Entry: @unchecked Sendable {
        // Sendable because a session that no connection changes any more may be read by any thread.
        let pointer: OpaquePointer
        private let openSSL: OpenSSL

        /// Takes the reference over.
        init(_ pointer: OpaquePointer, _ openSSL: OpenSSL) {
            unsafe self.pointer = pointer
            self.openSSL = openSSL
        }

        deinit {
            unsafe openSSL.sessionFree(pointer)
        }
    }

    private var entries: [String: Entry] = [:]
    private var refused: Set<String> = []
    private static let limit = 64

    mutating func take(_ server: String) -> Entry? {
        entries.removeValue(forKey: server)
    }

    mutating func store(_ entry: Entry, for server: String) {
        guard !refused.contains(server) else { return }
        if entries.count >= Self.limit, entries[server] == nil { entries.removeValue(forKey: entries.first!.key) }
        entries[server] = entry
    }

    /// A handshake with an old session failed; some servers cannot do it and end the connection instead of saying so.
    mutating func refuse(_ server: String) {
        if refused.count >= Self.limit { refused.removeAll() }
        refused.insert(server)
        entries[server] = nil
    }
}

import Synchronization

/// What all TLS connections with equal options share: authorities and identity.
// Every `unsafe` in this class passes OpenSSL the context, which `init` makes and `deinit` frees, or certificates and
// keys that PEMReader has returned and that are freed after OpenSSL has taken a reference of its own.
@safe
final class TLSContext: @unchecked Sendable {
    // Sendable because an SSL_CTX may be used by many threads once it is set up.
    enum Kind: Hashable {
        case client(TLSOptions)
        case server(TLSServerOptions)
    }

    let openSSL: OpenSSL
    let pointer: OpaquePointer
    let kind: Kind

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
        if case .client(let options) = kind { SharedMade.openSSL.forget(options) }
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
        if options.trust.usesSystem {
            _ = unsafe openSSL.contextSystemPaths(pointer)
            #if os(Android)
                addAuthorities(inFirstOf: SystemAuthorities.folders)
            #endif
        }
        try add(options.trust.authorities)
        verify(mode: 1)
    }

    /// The callback gets this object without a reference: it outlives its connections, which hold one.
    private func verify(mode: Int32) {
        unsafe openSSL.contextSetVerify(pointer, mode, nil)
        unsafe openSSL.contextSetVerifier(pointer, verifyPeer, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Trusts every authority in the files of the first folder that has any. Files that cannot be read are left out, as
    /// OpenSSL does.
    func addAuthorities(inFirstOf folders: [String]) {
        for file in SystemAuthorities.files(inFirstOf: folders) { try? add(.file(file)) }
    }

    private func add(_ source: PEMSource) throws(TransportError) {
        let store = unsafe openSSL.contextStore(pointer)
        let certificates = try unsafe PEMReader(openSSL: openSSL).certificates(source, "trusted authorities")
        for index in unsafe certificates.indices {
            // Adding one twice is no error.
            _ = unsafe openSSL.storeAdd(store, certificates[index])
        }
        unsafe openSSL.free(certificates)
    }

    private func add(_ authorities: [PEMSource]) throws(TransportError) {
        for source in authorities { try add(source) }
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
}

private let verifyPeer: OpenSSL.Callback = { storeContext, context in
    guard let context = unsafe context else { return 0 }
    return unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().verify(storeContext)
}

private let noteRequest: OpenSSL.Callback = { connection, context in
    guard let context = unsafe context else { return 1 }
    unsafe Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().session(connection)?
        .certificateWasRequested = true
    return 1
}

/// One configuration of TLS for all connections that a client or server makes with it. A client has its files read for each
/// connection, by `prepare()`.
package final class TLSContexts: Sendable {
    private let kind: TLSContext.Kind
    private let current = Lock(Known<TLSUse>())
    #if canImport(Network)
        private let currentOfSystem = Lock(Known<NetworkTLS>())
    #endif
    private let reading = Lock(Reading())

    /// Reads the files of all clients of this process.
    private static let readers = LookUps<TLSReading, TLSReading.Made>(threadName: "messaging-files") { $0.outcome }

    /// The one reading of the files that may be under way, and the attempts to connect that wait for it.
    private struct Reading: ~Copyable, Sendable {
        typealias Outcome = Result<Void, TransportError>

        var isUnderWay = false
        var waiters = Waiters<Outcome>()
    }

    /// What was made of the options and their files.
    private struct Known<Made: Sendable>: Sendable {
        var made: Made?
        /// Whether it may be outdated although the files are the same.
        var isOutdated = false
        /// Why the files could not be read when they were last tried, so that `made` comes from an earlier read.
        var failure: TransportError?

        /// The files could not be read: one may be missing for a moment, or half replaced. Returns whether an earlier
        /// reading is known.
        mutating func note(_ failure: TransportError) -> Bool {
            if made != nil { self.failure = failure }
            return made != nil
        }
    }

    package init(client options: TLSOptions) {
        kind = .client(options)
    }

    package init(server options: TLSServerOptions) {
        kind = .server(options)
    }

    /// Returns the known value, which is made first if there is none.
    ///
    /// - Throws: `tlsUnavailable`, `tlsConfiguration`, `systemLimit`.
    func context() throws(TransportError) -> TLSUse {
        if let known = current.withLock({ $0.made }) { return known }
        return use(try TLSReading(kind).context())
    }

    /// The next connections use this context, with the sessions of the ones before if they have used it too.
    @discardableResult
    private func use(_ context: TLSContext) -> TLSUse {
        current.withLock { known in
            guard let made = known.made, made.context === context else {
                let made = TLSUse(context, after: known.made)
                known = Known(made: made)
                return made
            }
            known.failure = nil
            return made
        }
    }

    /// Whether something is known of the files, as they are or were.
    package var isKnown: Bool {
        #if canImport(Network)
            current.withLock { $0.made != nil } || currentOfSystem.withLock { $0.made != nil }
        #else
            current.withLock { $0.made != nil }
        #endif
    }

    /// Whether there is nothing to read for the next connection.
    package var isPrepared: Bool { isKnown && !kind.namesFiles && !current.withLock { $0.isOutdated } }

    /// Reads the files for the next connection, if there are any: on a thread of its own, since a disk or a token may hang,
    /// and threads of the cooperative pool are few. Falls back to what is known if that fails.
    ///
    /// - Throws: `tlsUnavailable`, `tlsConfiguration`, `systemLimit`; `cancelled` when the task is.
    package func prepare() async throws(TransportError) {
        if isPrepared { return }
        let cancelled = Reading.Outcome.failure(TransportError(.cancelled, "Reading the TLS files was cancelled."))
        let token = Atomic(Waiters<Reading.Outcome>.noToken)
        let outcome: Reading.Outcome = await waiting { waiter in
            var waiter: Waiter<Reading.Outcome>? = waiter
            // Attempts that come while files are read wait for that reading: if it hangs, it holds one thread, however
            // many attempts there are.
            let begins = reading.withLock { reading -> Bool in
                guard !Task.isCancelled, let waiter = waiter.take() else { return false }
                token.store(reading.waiters.add(waiter), ordering: .relaxed)
                defer { reading.isUnderWay = true }
                return !reading.isUnderWay
            }
            waiter.take()?.resume(returning: cancelled)
            if begins { beginReading() }
        } onCancel: {
            reading.withLock { $0.waiters.take(token.load(ordering: .relaxed)) }?.resume(returning: cancelled)
        }
        try outcome.get()
    }

    private func beginReading() {
        do throws(TransportError) {
            let reading = TLSReading(
                kind, isForSystem: try usesSystem(),
                outdated: current.withLock { $0.isOutdated ? $0.made?.context : nil })
            // Options without files need no thread.
            if let known = reading.known { return endReading(.success(known)) }
            Self.readers.start(reading) { self.endReading($0) }
        } catch {
            endReading(.failure(error))
        }
    }

    private func endReading(_ made: TLSReading.Outcome) {
        let outcome = take(made)
        var waiters = reading.withLock { reading in
            reading.isUnderWay = false
            return reading.waiters.takeAll()
        }
        waiters.resume(returning: outcome)
    }

    private func take(_ made: TLSReading.Outcome) -> Reading.Outcome {
        switch made {
        case .success(.openSSL(let context)):
            use(context)
            return .success(())
        #if canImport(Network)
            case .success(.system(let tls)):
                currentOfSystem.withLock { $0 = Known(made: tls) }
                return .success(())
        #endif
        case .failure(let error):
            var isKnown = current.withLock { $0.note(error) }
            #if canImport(Network)
                if currentOfSystem.withLock({ $0.note(error) }) { isKnown = true }
            #endif
            return isKnown ? .success(()) : .failure(error)
        }
    }

    /// A connection could not be opened, perhaps due to what was made of the options.
    ///
    /// - Returns: the error, with a sentence about files that this connection could not read anew.
    package func reload(after error: TransportError) -> TransportError {
        let isOfTLS = error.code.mayBeOfTLS
        let isOutdated = isOfTLS && kind.mayBeOutdated(after: error)
        var failure = current.withLock { known in
            if isOutdated { known.isOutdated = true }
            // Some servers cannot continue a session that another one of them has begun.
            if isOfTLS { known.made = known.made.map { TLSUse($0.context, after: $0) } }
            return known.failure
        }
        #if canImport(Network)
            // The system asks its authorities for each connection, and keeps the sessions.
            failure = failure ?? currentOfSystem.withLock { $0.failure }
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
        /// Returns the known value, which is made first if there is none.
        ///
        /// - Throws: `tlsConfiguration`.
        func networkTLS() throws(TransportError) -> NetworkTLS {
            if let known = currentOfSystem.withLock({ $0.made }) { return known }
            let made = try TLSReading(kind, isForSystem: true).networkTLS()
            currentOfSystem.withLock { $0 = Known(made: made) }
            return made
        }
    #endif
}

/// A context as one client uses it: with the sessions that this client may resume.
struct TLSUse: Sendable {
    let context: TLSContext
    let sessions: TLSSessionCache

    /// - Parameter earlier: what the client has used until now.
    init(_ context: TLSContext, after earlier: TLSUse? = nil) {
        self.context = context
        sessions = TLSSessionCache(after: earlier?.sessions)
    }
}

/// Sessions that may be resumed, one for each server. Each is used once, as RFC 8446 (appendix C.4) advises.
final class TLSSessionCache: Sendable {
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

    private struct State {
        var entries: [String: Entry] = [:]
        /// Servers whose last handshake with a session failed; true once one without a session has succeeded after that.
        var refused: [String: Bool] = [:]
    }

    private let state: Lock<State>
    private static let limit = 64

    /// A cache without sessions; for servers that have refused one in `earlier`, it takes none.
    init(after earlier: TLSSessionCache?) {
        state = Lock(State(refused: earlier?.state.withLock { $0.refused } ?? [:]))
    }

    func take(_ server: String) -> Entry? {
        state.withLock { $0.entries.removeValue(forKey: server) }
    }

    func store(_ entry: Entry, for server: String) {
        state.withLock { state in
            guard state.refused[server] == nil else { return }
            if state.entries.count >= Self.limit, state.entries[server] == nil {
                state.entries.removeValue(forKey: state.entries.first!.key)
            }
            state.entries[server] = entry
        }
    }

    /// A handshake with an old session failed; some servers cannot do it and end the connection instead of saying so.
    func refuse(_ server: String) {
        state.withLock { state in
            if state.refused.count >= Self.limit { state.refused.removeAll() }
            state.refused[server] = false
            state.entries[server] = nil
        }
    }

    /// A handshake without a session ended. If the first one after a refusal fails as well, the session was not the reason: the
    /// server is being restarted, perhaps.
    func noteHandshakeWithoutSession(_ server: String, succeeded: Bool) {
        state.withLock { state in
            guard state.refused[server] == false else { return }
            state.refused[server] = succeeded ? true : nil
        }
    }
}

import Synchronization

/// What all TLS connections of one configuration share: authorities, identity, and sessions to be resumed.
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
        let path =
            switch kind {
            case .client(let options): options.libraryPath
            case .server(let options): options.libraryPath
            }
        openSSL = try OpenSSL.load(path: path)
        openSSL.errorClear()
        guard let pointer = openSSL.contextNew(openSSL.method()) else {
            throw TransportError(.tlsFailed, "OpenSSL cannot set TLS up: \(openSSL.takeError().text)")
        }
        self.pointer = pointer
        self.kind = kind
        try setUp()
        switch kind {
        case .client(let options):
            if let identity = options.identity { try use(identity) }
            try setUpVerification(options)
        case .server(let options):
            try use(options.identity)
            if let authorities = options.clientAuthorities {
                try add(authorities)
                verify(mode: 1 | 2)
            }
        }
    }

    deinit {
        openSSL.contextFree(pointer)
    }

    private func setUp() throws(TransportError) {
        let minimumVersion: Int32 = 123
        let version = options?.minimumVersion ?? .tls12
        guard openSSL.contextControl(pointer, minimumVersion, Int(version.number), nil) == 1 else {
            throw TransportError(
                .tlsFailed, "OpenSSL on this machine does not allow TLS \(version) as the lowest version")
        }
        let (noCompression, noRenegotiation) = (UInt64(1) << 17, UInt64(1) << 30)
        _ = openSSL.contextSetOptions(pointer, noCompression | noRenegotiation)
        // Idle connections give their record buffers back.
        let (mode, releaseBuffers) = (Int32(33), 0x10)
        _ = openSSL.contextControl(pointer, mode, releaseBuffers, nil)
        let sessionContext = Array("swift-messaging".utf8)
        _ = openSSL.contextSetSessionID(pointer, sessionContext, UInt32(sessionContext.count))
    }

    private func setUpVerification(_ options: TLSOptions) throws(TransportError) {
        // Called when the server asks for a certificate, which no error tells afterwards.
        openSSL.contextSetCertificateCallback(pointer, noteRequest, Unmanaged.passUnretained(self).toOpaque())
        guard options.verification.level != .none else { return openSSL.contextSetVerify(pointer, 0, nil) }
        if options.trust.usesSystem { _ = openSSL.contextSystemPaths(pointer) }
        try add(options.trust.authorities)
        verify(mode: 1)
    }

    /// The callback gets this object without a reference: it outlives its connections, which hold one.
    private func verify(mode: Int32) {
        openSSL.contextSetVerify(pointer, mode, nil)
        openSSL.contextSetVerifier(pointer, verifyPeer, Unmanaged.passUnretained(self).toOpaque())
    }

    private func add(_ authorities: [PEMSource]) throws(TransportError) {
        let store = openSSL.contextStore(pointer)
        for source in authorities {
            let certificates = try PEMReader(openSSL: openSSL).certificates(source, "trusted authorities")
            for certificate in certificates {
                // Adding one twice is no error.
                _ = openSSL.storeAdd(store, certificate)
                openSSL.certificateFree(certificate)
            }
        }
        // Whom the user names is trusted, whether it is a root or not.
        let partialChain: UInt = 0x80000
        if !authorities.isEmpty { _ = openSSL.parametersSetFlags(openSSL.contextParameters(pointer), partialChain) }
    }

    private func use(_ identity: TLSIdentity) throws(TransportError) {
        let reader = PEMReader(openSSL: openSSL)
        let (key, certificates) = try reader.identity(identity)
        defer {
            openSSL.keyFree(key)
            for certificate in certificates { openSSL.certificateFree(certificate) }
        }
        openSSL.errorClear()
        guard openSSL.contextUseCertificate(pointer, certificates[0]) == 1 else {
            throw TransportError(.tlsConfiguration, "\(identity) cannot be used: \(openSSL.takeError().text)")
        }
        let (chainCertificate, addsReference) = (Int32(89), 1)
        for certificate in certificates.dropFirst() {
            _ = openSSL.contextControl(
                pointer, chainCertificate, addsReference, UnsafeMutableRawPointer(certificate))
        }
        guard openSSL.contextUseKey(pointer, key) == 1, openSSL.contextCheckKey(pointer) == 1 else {
            let reason = openSSL.takeError().text
            throw TransportError(
                .tlsConfiguration, "the key of \(identity) does not belong to its certificate (\(reason))")
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
        openSSL.extraData(connection, 0).map { Unmanaged<TLSSession>.fromOpaque($0).takeUnretainedValue() }
    }

    fileprivate func verify(_ storeContext: OpaquePointer?) -> Int32 {
        let result = openSSL.verifyCertificate(storeContext)
        guard result != 1 else { return 1 }
        let connection = openSSL.storeContextExtraData(storeContext, openSSL.storeContextIndex())
        session(connection.map { OpaquePointer($0) })?.rejection =
            CertificateRejection(openSSL, storeContext: storeContext)
        return 0
    }
}

private let verifyPeer: OpenSSL.Callback = { storeContext, context in
    guard let context else { return 0 }
    return Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().verify(storeContext)
}

private let noteRequest: OpenSSL.Callback = { connection, context in
    guard let context else { return 1 }
    Unmanaged<TLSContext>.fromOpaque(context).takeUnretainedValue().session(connection)?.certificateWasRequested = true
    return 1
}

#if canImport(Network)
    import CoreFoundation
    import Dispatch
    import Network
    public import Security

    /// One configuration of TLS for connections of Network.framework: what `TLSContext` is for OpenSSL.
    final class NetworkTLS: @unchecked Sendable {
        // Sendable because nothing changes after `init`, and a `sec_identity_t` may be used by many connections.
        private let options: TLSOptions
        /// Own authorities, each in DER.
        private let authorities: [[UInt8]]
        private let identity: sec_identity_t?

        /// Reads all files that the options name.
        ///
        /// - Throws: `tlsConfiguration`, `unsupported`.
        init(_ options: TLSOptions) throws(TransportError) {
            try options.checkDemands(on: .networkFramework)
            self.options = options
            var authorities: [[UInt8]] = []
            for source in options.trust.authorities { authorities += try source.certificates("trusted authorities") }
            for der in authorities where Self.certificate(der) == nil {
                throw TransportError(
                    .tlsConfiguration, "A trusted authority of the TLS options is a damaged certificate.")
            }
            self.authorities = authorities
            identity = try options.identity.map { identity throws(TransportError) in try identity.forNetwork() }
        }

        deinit { SharedMade.system.forget(options) }

        var hasIdentity: Bool { identity != nil }
        var preSharedIdentity: String? { options.preSharedKey?.identity }

        /// Options for one connection.
        ///
        /// - Throws: `tlsConfiguration` for a name that cannot be verified.
        func options(
            host: String, protocols: [String], peerName: String, failures: NetworkFailures
        ) throws(TransportError) -> NWProtocolTLS.Options {
            let name = try ServerName(options.serverName ?? host)
            let made = NWProtocolTLS.Options()
            let security = made.securityProtocolOptions
            // RFC 6066 section 3: names only.
            if !name.isAddress { unsafe sec_protocol_options_set_tls_server_name(security, name.text) }
            sec_protocol_options_set_min_tls_protocol_version(
                security, options.minimumVersion == .tls13 ? .TLSv13 : .TLSv12)
            for name in options.applicationProtocols ?? protocols {
                guard (1...255).contains(name.utf8.count) else {
                    throw TransportError(
                        .tlsConfiguration, "'\(name)' is not the name of an application protocol. Use 1 to 255 bytes.")
                }
                unsafe sec_protocol_options_add_tls_application_protocol(security, name)
            }
            sec_protocol_options_set_tls_resumption_enabled(security, resumesSessions)
            if options.revocation != .unchecked { sec_protocol_options_set_tls_ocsp_enabled(security, true) }
            if let preSharedKey = options.preSharedKey { Self.add(preSharedKey, to: security) }
            // A queue for each connection: evaluating a certificate may wait for the network.
            let queue = DispatchQueue(label: "messaging-tls", qos: .userInitiated)
            sec_protocol_options_set_challenge_block(
                security,
                { [identity] _, complete in
                    failures.noteRequest()
                    complete(identity)
                }, queue)
            sec_protocol_options_set_verify_block(
                security,
                { [self] _, trust, complete in
                    if let rejection = unsafe rejection(
                        of: sec_trust_copy_ref(trust).takeRetainedValue(), name, peerName)
                    {
                        failures.reject(rejection)
                        complete(false)
                    } else {
                        complete(true)
                    }
                }, queue)
            return made
        }

        /// The system verifies nothing when it continues a session, and its sessions may be those of any client of this
        /// process: so they are made and continued by clients alone that would all have accepted the server.
        private var resumesSessions: Bool {
            options.resumesSessions && !options.checksEachConnection && options.verification == .full
                && options.trust == .system && options.serverName == nil
        }

        /// Why the server's certificate is refused; nil if it is accepted.
        private func rejection(of trust: SecTrust, _ name: ServerName, _ peerName: String) -> TransportError? {
            if options.preSharedKey != nil { return TLSFailure.ignoredPreSharedKey(peerName) }
            if options.verification.level != .none {
                guard let demands = policies(name), SecTrustSetPolicies(trust, demands) == errSecSuccess,
                    setAnchors(of: trust)
                else {
                    return TransportError(
                        .tlsFailed, "The certificate of \(peerName) cannot be verified on this system.")
                }
                var error: CFError?
                guard unsafe SecTrustEvaluateWithError(trust, &error) else {
                    let code = error.map { CFErrorGetCode($0) } ?? 0
                    return NetworkRejection(trust, code: OSStatus(truncatingIfNeeded: code), trust: options.trust)
                        .error(peerName)
                }
            }
            guard options.judgesChain else { return nil }
            return options.rejection(
                of: Self.certificates(of: trust).map { Self.bytes(SecCertificateCopyData($0)) }, name: name.text,
                peerName: peerName, sha256: SystemCrypto.sha256)
        }

        /// What the system verifies: one policy, or an array of two.
        private func policies(_ name: ServerName) -> CFTypeRef? {
            let verifiesName = options.verification.level == .full
            let policy =
                verifiesName ? SecPolicyCreateSSL(true, Self.string(name.text)) : SecPolicyCreateBasicX509()
            if options.revocation == .unchecked { return policy }
            let flags = kSecRevocationOCSPMethod | kSecRevocationRequirePositiveResponse
            guard let revocation = SecPolicyCreateRevocation(flags) else { return nil }
            return Self.array([policy, revocation])
        }

        /// TLS 1.2 alone, where Network.framework has such keys, with the suites in which the key proves both
        /// identities; the suite with forward secrecy first.
        private static func add(_ preSharedKey: TLSPreSharedKey, to security: sec_protocol_options_t) {
            sec_protocol_options_set_max_tls_protocol_version(security, .TLSv12)
            let identity = Array(preSharedKey.identity.utf8)
            sec_protocol_options_add_pre_shared_key(
                security,
                unsafe preSharedKey.key.withUnsafeBytes { unsafe DispatchData(bytes: $0) }._bridgeToObjectiveC(),
                unsafe identity.withUnsafeBytes { unsafe DispatchData(bytes: $0) }._bridgeToObjectiveC())
            let (chaChaWithDiffieHellman, aes256, aes128) = (UInt16(0xCCAC), UInt16(0x00A9), UInt16(0x00A8))
            for number in [chaChaWithDiffieHellman, aes256, aes128] {
                guard let suite = tls_ciphersuite_t(rawValue: number) else { continue }
                sec_protocol_options_append_tls_ciphersuite(security, suite)
            }
        }

        /// The chain as the system has evaluated it, or as the server sent it.
        fileprivate static func certificates(of trust: SecTrust) -> [SecCertificate] {
            SecTrustCopyCertificateChain(trust).map { certificates(in: $0) } ?? []
        }

        fileprivate static func certificates(in array: CFArray) -> [SecCertificate] {
            (0..<CFArrayGetCount(array)).compactMap { index in
                unsafe CFArrayGetValueAtIndex(array, index).map {
                    unsafe Unmanaged<SecCertificate>.fromOpaque($0).takeUnretainedValue()
                }
            }
        }

        /// Nil without memory.
        fileprivate static func array(_ items: [AnyObject]) -> CFArray? {
            let made = unsafe withUnsafePointer(to: kCFTypeArrayCallBacks) {
                unsafe CFArrayCreateMutable(kCFAllocatorDefault, 0, $0)
            }
            for item in items { unsafe CFArrayAppendValue(made, Unmanaged.passUnretained(item).toOpaque()) }
            return made
        }

        private func setAnchors(of trust: SecTrust) -> Bool {
            guard !options.trust.usesSystem || !authorities.isEmpty else { return true }
            let anchors = authorities.compactMap(Self.certificate)
            guard anchors.count == authorities.count, let anchors = Self.array(anchors) else { return false }
            return SecTrustSetAnchorCertificates(trust, anchors) == errSecSuccess
                && SecTrustSetAnchorCertificatesOnly(trust, !options.trust.usesSystem) == errSecSuccess
        }

        private static func certificate(_ der: [UInt8]) -> SecCertificate? {
            unsafe CFDataCreate(kCFAllocatorDefault, der, der.count).flatMap {
                SecCertificateCreateWithData(kCFAllocatorDefault, $0)
            }
        }

        static func bytes(_ data: CFData) -> [UInt8] {
            unsafe Array(UnsafeBufferPointer(start: CFDataGetBytePtr(data), count: CFDataGetLength(data)))
        }

        static func string(_ text: String) -> CFString? {
            let bytes = Array(text.utf8)
            return unsafe CFStringCreateWithBytes(
                kCFAllocatorDefault, bytes, bytes.count, CFStringBuiltInEncodings.UTF8.rawValue, false)
        }
    }

    /// Why the system's verification refused a chain.
    struct NetworkRejection {
        private let code: OSStatus
        private let isSelfSigned: Bool
        private let hasAlternativeNames: Bool
        private let subject: String
        private let usesSystemAlone: Bool

        init(_ chain: SecTrust, code: OSStatus, trust: TLSTrust) {
            self.code = code
            usesSystemAlone = trust == .system
            let first = NetworkTLS.certificates(of: chain).first
            isSelfSigned = first.map(Self.isSelfSigned) ?? false
            hasAlternativeNames = first.map(Self.hasAlternativeNames) ?? false
            subject = first.flatMap { SecCertificateCopySubjectSummary($0) }.map(Self.text) ?? "?"
        }

        func error(_ peerName: String) -> TransportError {
            let whose = "The certificate of \(peerName)"
            switch code {
            case errSecCertificateExpired:
                return TransportError(
                    .certificateExpired,
                    "\(whose) ('\(subject)') or one above it has expired. The server needs a new one (or this clock "
                        + "is wrong).")
            case errSecCertificateNotValidYet:
                return TransportError(
                    .certificateNotYetValid,
                    "\(whose) ('\(subject)') or one above it is not valid yet. Is this device's clock right?")
            case errSecHostNameMismatch:
                return TransportError(
                    .certificateNameMismatch,
                    hasAlternativeNames
                        ? "\(whose) is not for this name, but for '\(subject)' and others. Connect to one of its "
                            + "names, or set serverName in the TLS options."
                        : "\(whose) names no host (only subjectAltName counts, not the common name '\(subject)'). The "
                            + "server needs one with its name in it.")
            case errSecNotTrusted, errSecCreateChainFailed:
                if isSelfSigned {
                    return TransportError(
                        .certificateSelfSigned,
                        "\(whose) is self-signed. If you know it, add it to `trust` of the TLS "
                            + "options.")
                }
                let judgement = usesSystemAlone ? "this system does not trust" : "the TLS options do not trust"
                return TransportError(
                    .certificateUntrusted,
                    "\(whose) ('\(subject)') is signed by an authority that \(judgement). Add the authority to `trust` "
                        + "of the TLS options, or have the server send its intermediate certificates.")
            case errSecCertificateRevoked:
                return TLSFailure.revoked(peerName)
            case errSecIncompleteCertRevocationCheck:
                return TLSFailure.statusUnknown(
                    peerName, "neither the server nor the authority has shown a response that is good")
            default:
                return TransportError(.certificateInvalid, "\(whose) ('\(subject)') \(demand).")
            }
        }

        /// What Apple's systems demand of every server's certificate, and this one lacks.
        private var demand: String {
            switch code {
            case errSecCertificateValidityPeriodTooLong:
                "is valid for longer than Apple's systems accept: 825 days, or 398 if an authority that the system trusts "
                    + "has signed it. The server needs one with a shorter life"
            case errSecInvalidExtendedKeyUsage:
                "is not marked as one of a server: Apple's systems demand serverAuth in its extendedKeyUsage. The server "
                    + "needs a new one"
            case errSecUnsupportedKeySize:
                "or one above it has a key that is too short: Apple's systems demand 2,048 bits of RSA. The server needs "
                    + "a new one"
            case errSecInvalidDigestAlgorithm:
                "or one above it has a signature that is too weak: Apple's systems demand SHA-2. The server needs a new one"
            default:
                "cannot be accepted: status \(code)"
            }
        }

        fileprivate static func isSelfSigned(_ certificate: SecCertificate) -> Bool {
            guard let issuer = SecCertificateCopyNormalizedIssuerSequence(certificate),
                let subject = SecCertificateCopyNormalizedSubjectSequence(certificate)
            else { return false }
            return NetworkTLS.bytes(issuer) == NetworkTLS.bytes(subject)
        }

        /// Whether the identifier of subjectAltName (2.5.29.17) is in it.
        private static func hasAlternativeNames(_ certificate: SecCertificate) -> Bool {
            let der = NetworkTLS.bytes(SecCertificateCopyData(certificate))
            let identifier: [UInt8] = [0x06, 0x03, 0x55, 0x1D, 0x11]
            return der.indices.contains { der[$0...].starts(with: identifier) }
        }

        private static func text(_ string: CFString) -> String {
            var buffer = [CChar](repeating: 0, count: 512)
            let fits = unsafe CFStringGetCString(
                string, &buffer, buffer.count, CFStringBuiltInEncodings.UTF8.rawValue)
            guard fits else { return "?" }
            return unsafe buffer.withUnsafeBufferPointer { unsafe String(cString: $0.baseAddress!) }
        }
    }

    /// A `SecIdentity` that may be kept in options, with certificates above its own.
    struct SystemIdentity: @unchecked Sendable, Hashable {
        // Sendable because identities and certificates never change.
        let identity: SecIdentity
        let intermediates: [SecCertificate]

        static func == (one: SystemIdentity, other: SystemIdentity) -> Bool {
            one.identity === other.identity && one.intermediates.elementsEqual(other.intermediates, by: ===)
        }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(identity)) }
    }

    extension TLSIdentity {
        /// An identity of the keychain. On Apple's systems only; OpenSSL cannot use it.
        ///
        /// - Parameters:
        ///   - identity: the certificate and its key.
        ///   - intermediates: the certificates of the authorities between it and the root, its own issuer's first. A server
        ///     that knows the root alone refuses the client without them (RFC 5246 7.4.2). Default: none.
        public static func keychain(_ identity: SecIdentity, intermediates: [SecCertificate] = []) -> TLSIdentity {
            .system(SystemIdentity(identity: identity, intermediates: intermediates))
        }

        /// - Throws: `tlsConfiguration`, for what Network.framework cannot use too.
        func forNetwork() throws(TransportError) -> sec_identity_t {
            switch kind {
            case .system(let identity):
                return try shown(identity.identity, identity.intermediates)
            case .stored:
                throw TransportError(
                    .unsupported,
                    "Network.framework cannot use a key that is stored where OpenSSL finds it. Put it into the keychain and "
                        + "use TLSIdentity.keychain, or on macOS choose the implementation .openSSL in the TLS options."
                )
            case .pkcs12(let source):
                return try imported(try source.read("PKCS #12 container"), passphrase: passphrase)
            case .pem(let certificates, let key):
                let container = PKCS12(
                    key: try PrivateKey(key, passphrase: passphrase),
                    certificates: try certificates.certificates("certificate"), passphrase: PKCS12.randomPassphrase())
                guard let bytes = container.encoded() else { throw unusable("this system cannot encrypt its key") }
                return try imported(bytes, passphrase: container.passphrase)
            }
        }

        /// - Parameter bytes: a PKCS #12 container.
        private func imported(_ bytes: [UInt8], passphrase: String?) throws(TransportError) -> sec_identity_t {
            let options = unsafe withUnsafePointer(to: kCFTypeDictionaryKeyCallBacks) { keys in
                unsafe withUnsafePointer(to: kCFTypeDictionaryValueCallBacks) { values in
                    unsafe CFDictionaryCreateMutable(kCFAllocatorDefault, 0, keys, values)
                }
            }
            guard let options, let data = unsafe CFDataCreate(kCFAllocatorDefault, bytes, bytes.count),
                let secret = NetworkTLS.string(passphrase ?? "")
            else { throw unusable("there is no memory for it") }
            unsafe CFDictionarySetValue(
                options, Unmanaged.passUnretained(kSecImportExportPassphrase).toOpaque(),
                Unmanaged.passUnretained(secret).toOpaque())
            // Otherwise macOS writes the key to the user's keychain.
            unsafe CFDictionarySetValue(
                options, Unmanaged.passUnretained(kSecImportToMemoryOnly).toOpaque(),
                Unmanaged.passUnretained(kCFBooleanTrue).toOpaque())
            var items: CFArray?
            let status = unsafe SecPKCS12Import(data, options, &items)
            if status == errSecAuthFailed || status == errSecPkcs12VerifyFailure {
                throw unusable(
                    passphrase == nil
                        ? "it is encrypted, or was made without a passphrase, which Apple's systems cannot all read. Set the "
                            + "identity's passphrase, or make the container with one"
                        : "the passphrase is wrong, or the container is damaged")
            }
            guard status == errSecSuccess else {
                if case .pem = kind {
                    throw unusable("\(Self.noKey), or one that this system can read (status \(status))")
                }
                throw unusable(
                    "it is not a PKCS #12 container, or is encrypted in a way that this system cannot read (status "
                        + "\(status)). Apple's systems read AES-256 with HMAC-SHA-256, as openssl pkcs12 -export of OpenSSL 3 "
                        + "makes it, or an older one with -keypbe AES-256-CBC -certpbe AES-256-CBC -macalg sha256")
            }
            guard let items, CFArrayGetCount(items) > 0, let first = unsafe CFArrayGetValueAtIndex(items, 0) else {
                throw unusable(Self.noKey)
            }
            let item = unsafe Unmanaged<CFDictionary>.fromOpaque(first).takeUnretainedValue()
            guard
                let found = unsafe CFDictionaryGetValue(
                    item, Unmanaged.passUnretained(kSecImportItemIdentity).toOpaque())
            else { throw unusable(Self.noKey) }
            let identity = unsafe Unmanaged<SecIdentity>.fromOpaque(found).takeUnretainedValue()
            guard mayBelong(identity) else {
                throw TransportError(
                    .tlsConfiguration, "The key of \(self) does not belong to its certificate. Give the key for it.")
            }
            let chain = unsafe CFDictionaryGetValue(item, Unmanaged.passUnretained(kSecImportItemCertChain).toOpaque())
                .map { unsafe Unmanaged<CFArray>.fromOpaque($0).takeUnretainedValue() }
            return try shown(identity, chain.map { NetworkTLS.certificates(in: $0) } ?? [])
        }

        /// The identity with the certificates that a server is sent: the identity's own, which Network.framework adds by
        /// itself, then each that certifies the one before. The root need not be among them, since a server has to know it
        /// (RFC 5246 7.4.2).
        ///
        /// - Parameter chain: may begin with the identity's own, and end with the root.
        private func shown(_ identity: SecIdentity, _ chain: [SecCertificate]) throws(TransportError) -> sec_identity_t
        {
            var certificate: SecCertificate?
            _ = unsafe SecIdentityCopyCertificate(identity, &certificate)
            let own = certificate.map { NetworkTLS.bytes(SecCertificateCopyData($0)) }
            var issuers = chain.filter { NetworkTLS.bytes(SecCertificateCopyData($0)) != own }
            if let last = issuers.last, NetworkRejection.isSelfSigned(last) { issuers.removeLast() }
            let made: sec_identity_t? =
                if issuers.isEmpty { sec_identity_create(identity) } else {
                    NetworkTLS.array(issuers).flatMap { sec_identity_create_with_certificates(identity, $0) }
                }
            guard let made else { throw unusable("it has no key") }
            return made
        }

        /// Whether key and certificate belong together, which the import does not check; true if the system does not tell.
        private func mayBelong(_ identity: SecIdentity) -> Bool {
            var certificate: SecCertificate?
            var key: SecKey?
            guard unsafe SecIdentityCopyCertificate(identity, &certificate) == errSecSuccess,
                unsafe SecIdentityCopyPrivateKey(identity, &key) == errSecSuccess, let certificate, let key,
                let certified = SecCertificateCopyKey(certificate), let own = SecKeyCopyPublicKey(key),
                let one = SecKeyCopyExternalRepresentation(certified, nil),
                let other = SecKeyCopyExternalRepresentation(own, nil)
            else { return true }
            return NetworkTLS.bytes(one) == NetworkTLS.bytes(other)
        }

        private static let noKey = "it contains no private key with its certificate"

        private func unusable(_ reason: String) -> TransportError {
            TransportError(.tlsConfiguration, "\(self) cannot be used: \(reason).")
        }
    }
#endif

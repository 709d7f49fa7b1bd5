#if canImport(Network)
    import CoreFoundation
    public import Security

    /// A `SecIdentity` that may be kept in options.
    struct SystemIdentity: @unchecked Sendable, Hashable {
        // Sendable because an identity never changes.
        let identity: SecIdentity

        static func == (one: SystemIdentity, other: SystemIdentity) -> Bool { one.identity === other.identity }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(identity)) }
    }

    extension TLSIdentity {
        /// An identity of the keychain. On Apple's systems only; OpenSSL cannot use it.
        public static func keychain(_ identity: SecIdentity) -> TLSIdentity {
            .system(SystemIdentity(identity: identity))
        }

        /// - Throws: `tlsConfiguration`, for what Network.framework cannot use too.
        func forNetwork() throws(TransportError) -> sec_identity_t {
            switch kind {
            case .system(let identity):
                guard let made = sec_identity_create(identity.identity) else { throw unusable("it has no key") }
                return made
            case .pkcs12(let source):
                return try imported(source)
            case .pem(let certificates, _):
                throw TransportError(
                    .tlsConfiguration,
                    "Network.framework cannot use a private key in PEM (\(certificates)): give the identity as PKCS "
                        + "#12 (openssl pkcs12 -export) or as a SecIdentity; on macOS OpenSSL can use it as well")
            }
        }

        private func imported(_ source: PEMSource) throws(TransportError) -> sec_identity_t {
            let bytes = try source.read("PKCS #12 container")
            let options = withUnsafePointer(to: kCFTypeDictionaryKeyCallBacks) { keys in
                withUnsafePointer(to: kCFTypeDictionaryValueCallBacks) { values in
                    CFDictionaryCreateMutable(kCFAllocatorDefault, 0, keys, values)
                }
            }
            guard let options, let data = CFDataCreate(kCFAllocatorDefault, bytes, bytes.count),
                let secret = NetworkTLS.string(passphrase ?? "")
            else { throw unusable("no memory") }
            CFDictionarySetValue(
                options, Unmanaged.passUnretained(kSecImportExportPassphrase).toOpaque(),
                Unmanaged.passUnretained(secret).toOpaque())
            var items: CFArray?
            let status = SecPKCS12Import(data, options, &items)
            if status == errSecAuthFailed || status == errSecPkcs12VerifyFailure {
                throw unusable(
                    passphrase == nil
                        ? "is encrypted; set the identity's passphrase"
                        : "the passphrase is wrong, or the container is damaged")
            }
            guard status == errSecSuccess else { throw unusable("it is no PKCS #12 container (status \(status))") }
            guard let items, CFArrayGetCount(items) > 0, let first = CFArrayGetValueAtIndex(items, 0) else {
                throw unusable("it holds no private key with its certificate")
            }
            let item = Unmanaged<CFDictionary>.fromOpaque(first).takeUnretainedValue()
            guard
                let found = CFDictionaryGetValue(
                    item, Unmanaged.passUnretained(kSecImportItemIdentity).toOpaque())
            else { throw unusable("it holds no private key with its certificate") }
            let identity = Unmanaged<SecIdentity>.fromOpaque(found).takeUnretainedValue()
            let chain = CFDictionaryGetValue(item, Unmanaged.passUnretained(kSecImportItemCertChain).toOpaque())
                .map { Unmanaged<CFArray>.fromOpaque($0).takeUnretainedValue() }
            let made =
                chain.map { sec_identity_create_with_certificates(identity, $0) } ?? sec_identity_create(identity)
            guard let made else { throw unusable("it has no key") }
            return made
        }

        private func unusable(_ reason: String) -> TransportError {
            TransportError(.tlsConfiguration, "\(self) cannot be used: \(reason)")
        }
    }
#endif

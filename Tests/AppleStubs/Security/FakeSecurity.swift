// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Glibc
    import Synchronization

    /// What tests see of the system, and change about it.
    package enum FakeSystem {
        /// Keys that were written to the user's keychain since the start of the process.
        package static var storedKeys: Int { keys.load(ordering: .acquiring) }
        fileprivate static let keys = Atomic(0)

        /// Called at the beginning of each evaluation of a server's certificates, with the host's name.
        package static var evaluation: (@Sendable (String?) -> Void)? {
            get { hook.withLock { $0.call } }
            set { hook.withLock { $0.call = newValue } }
        }
        private struct Hook { var call: (@Sendable (String?) -> Void)? }
        private static let hook = Mutex(Hook())
    }

    /// What Security does, done by OpenSSL.
    struct FakeSecurity {
        typealias Pointer = OpaquePointer

        func certificate(_ data: CFData) -> SecCertificate? {
            let der = bytes(data)
            guard let certificate = FakeOpenSSL.certificate(der) else { return nil }
            FakeOpenSSL.certificateFree(certificate)
            return SecCertificate(der: der)
        }

        private func bytes(_ data: CFData) -> [UInt8] {
            Array(UnsafeBufferPointer(start: CFDataGetBytePtr(data), count: CFDataGetLength(data)))
        }

        func name(_ certificate: SecCertificate, ofIssuer: Bool) -> CFData? {
            guard let parsed = FakeOpenSSL.certificate(certificate.der) else { return nil }
            defer { FakeOpenSSL.certificateFree(parsed) }
            let find: @convention(c) (Pointer?) -> Pointer? =
                FakeOpenSSL.function(ofIssuer ? "X509_get_issuer_name" : "X509_get_subject_name")
            let der = FakeOpenSSL.der(find(parsed), "i2d_X509_NAME")
            return CFDataCreate(kCFAllocatorDefault, der, der.count)
        }

        func subjectSummary(_ certificate: SecCertificate) -> CFString? {
            guard let parsed = FakeOpenSSL.certificate(certificate.der) else { return nil }
            defer { FakeOpenSSL.certificateFree(parsed) }
            let subject: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("X509_get_subject_name")
            let textByNumber: @convention(c) (Pointer?, Int32, UnsafeMutablePointer<CChar>?, Int32) -> Int32 =
                FakeOpenSSL.function("X509_NAME_get_text_by_NID")
            let commonName: Int32 = 13
            var text = [CChar](repeating: 0, count: 256)
            let count = textByNumber(subject(parsed), commonName, &text, Int32(text.count))
            return CFString(
                String(decoding: text.prefix(Int(max(0, count))).map(UInt8.init(bitPattern:)), as: UTF8.self))
        }

        func evaluate(_ trust: SecTrust) -> OSStatus {
            FakeSystem.evaluation?(trust.policy.hostName)
            let newStore: @convention(c) () -> Pointer? = FakeOpenSSL.function("X509_STORE_new")
            let freeStore: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("X509_STORE_free")
            let addTo: @convention(c) (Pointer?, Pointer?) -> Int32 = FakeOpenSSL.function("X509_STORE_add_cert")
            let useSystem: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("X509_STORE_set_default_paths")
            let newStack: @convention(c) () -> Pointer? = FakeOpenSSL.function("OPENSSL_sk_new_null")
            let push: @convention(c) (Pointer?, Pointer?) -> Int32 = FakeOpenSSL.function("OPENSSL_sk_push")
            let freeStack: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("OPENSSL_sk_free")
            let newContext: @convention(c) () -> Pointer? = FakeOpenSSL.function("X509_STORE_CTX_new")
            let freeContext: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("X509_STORE_CTX_free")
            let begin: @convention(c) (Pointer?, Pointer?, Pointer?, Pointer?) -> Int32 =
                FakeOpenSSL.function("X509_STORE_CTX_init")
            let parameters: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("X509_STORE_CTX_get0_param")
            let setFlags: @convention(c) (Pointer?, UInt) -> Int32 = FakeOpenSSL.function("X509_VERIFY_PARAM_set_flags")
            let verify: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("X509_verify_cert")
            let reason: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("X509_STORE_CTX_get_error")

            let store = newStore()
            defer { freeStore(store) }
            if !trust.anchorsOnly { _ = useSystem(store) }
            var parsed: [Pointer] = []
            defer { parsed.forEach(FakeOpenSSL.certificateFree) }
            for anchor in trust.anchors {
                guard let certificate = FakeOpenSSL.certificate(anchor.der) else { return errSecDecode }
                parsed.append(certificate)
                _ = addTo(store, certificate)
            }
            let stack = newStack()
            defer { freeStack(stack) }
            let first = parsed.count
            for item in trust.chain {
                guard let certificate = FakeOpenSSL.certificate(item.der) else { return errSecDecode }
                parsed.append(certificate)
                _ = push(stack, certificate)
            }
            guard parsed.count > first else { return errSecCreateChainFailed }
            let context = newContext()
            defer { freeContext(context) }
            guard begin(context, store, parsed[first], stack) == 1 else { return errSecDecode }
            let partialChain: UInt = 0x80000
            if !trust.anchors.isEmpty { _ = setFlags(parameters(context), partialChain) }
            if let name = trust.policy.hostName { setName(name, parameters(context)) }
            guard verify(context) == 1 else { return status(reason(context)) }
            // No responder is there to be asked, and staples are not read.
            if trust.policy.revocationFlags & kSecRevocationRequirePositiveResponse != 0 {
                return errSecIncompleteCertRevocationCheck
            }
            return trust.policy.isForServers ? serverStatus(parsed[first]) : errSecSuccess
        }

        /// What Apple demands of a TLS server's certificate (support.apple.com/103769), as far as tests need it.
        private func serverStatus(_ certificate: Pointer) -> OSStatus {
            typealias Dates = @convention(c) (Pointer?) -> Pointer?
            let notBefore: Dates = FakeOpenSSL.function("X509_get0_notBefore")
            let notAfter: Dates = FakeOpenSSL.function("X509_get0_notAfter")
            let difference:
                @convention(c) (UnsafeMutablePointer<Int32>?, UnsafeMutablePointer<Int32>?, Pointer?, Pointer?) -> Int32 =
                    FakeOpenSSL.function("ASN1_TIME_diff")
            let compare: @convention(c) (Pointer?, Int) -> Int32 = FakeOpenSSL.function("ASN1_TIME_cmp_time_t")
            let usage: @convention(c) (Pointer?) -> UInt32 = FakeOpenSSL.function("X509_get_extended_key_usage")
            let firstOfJuly2019 = 1_561_939_200
            guard compare(notBefore(certificate), firstOfJuly2019) >= 0 else { return errSecSuccess }
            // First, so that tests need no certificate that expires after 825 days.
            let (server, absent) = (UInt32(1), UInt32.max)
            let uses = usage(certificate)
            if uses == absent || uses & server == 0 { return errSecInvalidExtendedKeyUsage }
            var (days, seconds) = (Int32(0), Int32(0))
            guard difference(&days, &seconds, notBefore(certificate), notAfter(certificate)) == 1 else {
                return errSecDecode
            }
            return days > 825 || (days == 825 && seconds > 0) ? errSecCertificateValidityPeriodTooLong : errSecSuccess
        }

        func key(of identity: SecIdentity) -> SecKey? {
            guard let key = FakeOpenSSL.key(identity.key) else { return nil }
            defer { FakeOpenSSL.keyFree(key) }
            return SecKey(publicKey: FakeOpenSSL.der(key, "i2d_PUBKEY"))
        }

        func key(of certificate: SecCertificate) -> SecKey? {
            guard let parsed = FakeOpenSSL.certificate(certificate.der) else { return nil }
            defer { FakeOpenSSL.certificateFree(parsed) }
            let find: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("X509_get0_pubkey")
            return SecKey(publicKey: FakeOpenSSL.der(find(parsed), "i2d_PUBKEY"))
        }

        private func setName(_ name: String, _ parameters: Pointer?) {
            let setHost: @convention(c) (Pointer?, UnsafePointer<CChar>?, Int) -> Int32 =
                FakeOpenSSL.function("X509_VERIFY_PARAM_set1_host")
            let setAddress: @convention(c) (Pointer?, UnsafePointer<CChar>?) -> Int32 =
                FakeOpenSSL.function("X509_VERIFY_PARAM_set1_ip_asc")
            let setFlags: @convention(c) (Pointer?, UInt32) -> Void =
                FakeOpenSSL.function("X509_VERIFY_PARAM_set_hostflags")
            var address = in6_addr()
            if inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 {
                _ = setAddress(parameters, name)
            } else {
                // Apple's systems ignore the common name too.
                let neverCheckSubject: UInt32 = 0x20
                setFlags(parameters, neverCheckSubject)
                _ = setHost(parameters, name, 0)
            }
        }

        private func status(_ reason: Int32) -> OSStatus {
            switch reason {
            case 9: errSecCertificateNotValidYet
            case 10: errSecCertificateExpired
            case 23: errSecCertificateRevoked
            case 62, 64: errSecHostNameMismatch
            default: errSecNotTrusted
            }
        }

        /// Whether Apple's importer knows the algorithms that a container names: of PBES2 only AES-256 in CBC, with PBKDF2 by
        /// HMAC-SHA-256, and otherwise those of RFC 7292.
        private static func readsEncryption(of container: [UInt8]) -> Bool {
            func names(_ identifier: [UInt8]) -> Bool {
                container.indices.contains { container[$0...].starts(with: identifier) }
            }
            let pbes2: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D]
            let aes256: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2A]
            let hmacWithSHA256: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x09]
            return !names(pbes2) || (names(aes256) && names(hmacWithSHA256))
        }

        func importPKCS12(
            _ data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
        ) -> OSStatus {
            let decode: @convention(c) (Pointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int) -> Pointer? =
                FakeOpenSSL.function("d2i_PKCS12")
            let free: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("PKCS12_free")
            let parse:
                @convention(c) (
                    Pointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<Pointer?>?, UnsafeMutablePointer<Pointer?>?,
                    UnsafeMutablePointer<Pointer?>?
                ) -> Int32 = FakeOpenSSL.function("PKCS12_parse")
            let passphrase = CFDictionaryGetValue(
                options, Unmanaged.passUnretained(kSecImportExportPassphrase).toOpaque()
            ).map { Unmanaged<CFString>.fromOpaque($0).takeUnretainedValue().text }
            let bytes = bytes(data)
            let file = bytes.withUnsafeBufferPointer { bytes in
                var start = bytes.baseAddress
                return decode(nil, &start, bytes.count)
            }
            guard let file else { return errSecDecode }
            defer { free(file) }
            guard Self.readsEncryption(of: bytes) else { return errSecDecode }
            // Some of Apple's systems read a container without a passphrase.
            if passphrase?.isEmpty != false { return errSecAuthFailed }
            var (key, certificate, others): (Pointer?, Pointer?, Pointer?) = (nil, nil, nil)
            guard parse(file, passphrase ?? "", &key, &certificate, &others) == 1 else { return errSecAuthFailed }
            // Apple's import goes by localKeyID alone; OpenSSL finds no certificate for a key of another one.
            if certificate == nil, FakeOpenSSL.stackCount(others) > 0 {
                let pop: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("OPENSSL_sk_shift")
                certificate = pop(others)
            }
            guard let key, let certificate else { return errSecDecode }
            defer {
                FakeOpenSSL.keyFree(key)
                FakeOpenSSL.certificateFree(certificate)
            }
            let memoryOnly = CFDictionaryGetValue(
                options, Unmanaged.passUnretained(kSecImportToMemoryOnly).toOpaque())
            // As on macOS, the only system that imports into a keychain.
            if memoryOnly != UnsafeRawPointer(Unmanaged.passUnretained(kCFBooleanTrue!).toOpaque()) {
                FakeSystem.keys.add(1, ordering: .releasing)
            }
            let leaf = SecCertificate(der: FakeOpenSSL.der(certificate: certificate))
            let identity = SecIdentity(certificate: leaf.der, key: FakeOpenSSL.der(key, "i2d_PrivateKey"))
            let chain = CFArrayCreateMutable(kCFAllocatorDefault, 0, nil)
            CFArrayAppendValue(chain, Unmanaged.passUnretained(leaf).toOpaque())
            for index in 0..<max(0, FakeOpenSSL.stackCount(others)) {
                let other = SecCertificate(der: FakeOpenSSL.der(certificate: FakeOpenSSL.stackValue(others, index)))
                CFArrayAppendValue(chain, Unmanaged.passUnretained(other).toOpaque())
            }
            let item = CFDictionaryCreateMutable(kCFAllocatorDefault, 0, nil, nil)
            CFDictionarySetValue(
                item, Unmanaged.passUnretained(kSecImportItemIdentity).toOpaque(),
                Unmanaged.passUnretained(identity).toOpaque())
            CFDictionarySetValue(
                item, Unmanaged.passUnretained(kSecImportItemCertChain).toOpaque(),
                Unmanaged.passUnretained(chain!).toOpaque())
            let result = CFArrayCreateMutable(kCFAllocatorDefault, 0, nil)
            CFArrayAppendValue(result, Unmanaged.passUnretained(item!).toOpaque())
            items.pointee = result
            return errSecSuccess
        }
    }
#endif

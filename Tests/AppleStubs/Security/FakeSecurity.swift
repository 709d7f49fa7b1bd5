// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Glibc

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
            return verify(context) == 1 ? errSecSuccess : status(reason(context))
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
            var (key, certificate, others): (Pointer?, Pointer?, Pointer?) = (nil, nil, nil)
            guard parse(file, passphrase ?? "", &key, &certificate, &others) == 1 else { return errSecAuthFailed }
            guard let key, let certificate else { return errSecDecode }
            defer {
                FakeOpenSSL.keyFree(key)
                FakeOpenSSL.certificateFree(certificate)
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

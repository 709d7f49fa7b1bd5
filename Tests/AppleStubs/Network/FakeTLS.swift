// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Dispatch
    import Glibc
    import Synchronization

    /// TLS for one fake connection: OpenSSL with memory BIOs, and the blocks of its options called on their queues
    /// while OpenSSL waits on the connection's own.
    final class FakeTLS {
        typealias Pointer = OpaquePointer
        enum Step {
            case wantsInput
            case done
            case failed(OSStatus)
        }

        private let options: FakeProtocolOptions
        private let port: UInt16
        private let context: Pointer
        private let connection: Pointer
        private let input: Pointer
        private let output: Pointer
        private var isRejected = false
        private var hasSession = false

        private static let sessions = Mutex<[String: FakeSession]>([:])

        init(_ options: FakeProtocolOptions, port: UInt16) {
            self.options = options
            self.port = port
            let method: @convention(c) () -> Pointer? = FakeOpenSSL.function("TLS_method")
            let newContext: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("SSL_CTX_new")
            let new: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("SSL_new")
            let bioNew: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("BIO_new")
            let memory: @convention(c) () -> Pointer? = FakeOpenSSL.function("BIO_s_mem")
            let setBIO: @convention(c) (Pointer?, Pointer?, Pointer?) -> Void = FakeOpenSSL.function("SSL_set_bio")
            let setConnect: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("SSL_set_connect_state")
            context = newContext(method())!
            connection = new(context)!
            input = bioNew(memory())!
            output = bioNew(memory())!
            setBIO(connection, input, output)
            setConnect(connection)
            setUp()
        }

        deinit {
            let free: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("SSL_free")
            let freeContext: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("SSL_CTX_free")
            let setShutdown: @convention(c) (Pointer?, Int32) -> Void = FakeOpenSSL.function("SSL_set_shutdown")
            setShutdown(connection, 3)
            free(connection)
            freeContext(context)
        }

        private func setUp() {
            let control: @convention(c) (Pointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int =
                FakeOpenSSL.function("SSL_ctrl")
            let setVerifier: @convention(c) (Pointer?, Callback?, UnsafeMutableRawPointer?) -> Void =
                FakeOpenSSL.function("SSL_CTX_set_cert_verify_callback")
            let setVerify: @convention(c) (Pointer?, Int32, Pointer?) -> Void = FakeOpenSSL.function("SSL_set_verify")
            let setCertificate: @convention(c) (Pointer?, Callback?, UnsafeMutableRawPointer?) -> Void =
                FakeOpenSSL.function("SSL_set_cert_cb")
            let (minimum, hostName) = (Int32(123), Int32(55))
            _ = control(connection, minimum, Int(options.minimumVersion.rawValue), nil)
            if let version = options.maximumVersion {
                let maximum: Int32 = 124
                _ = control(connection, maximum, Int(version.rawValue), nil)
            }
            if options.preSharedKey != nil { setUpPreSharedKey() }
            if let name = options.serverName {
                name.withCString { _ = control(connection, hostName, 0, UnsafeMutableRawPointer(mutating: $0)) }
            }
            setVerify(connection, 1, nil)
            setVerifier(context, verifyPeer, Unmanaged.passUnretained(self).toOpaque())
            setCertificate(connection, giveIdentity, Unmanaged.passUnretained(self).toOpaque())
            if !options.applicationProtocols.isEmpty {
                let set: @convention(c) (Pointer?, UnsafePointer<UInt8>?, UInt32) -> Int32 =
                    FakeOpenSSL.function("SSL_set_alpn_protos")
                let list = options.applicationProtocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
                _ = set(connection, list, UInt32(list.count))
            }
            if options.resumes, let session = Self.sessions.withLock({ $0.removeValue(forKey: key) }) {
                let set: @convention(c) (Pointer?, Pointer?) -> Int32 = FakeOpenSSL.function("SSL_set_session")
                _ = set(connection, session.pointer)
            }
        }

        /// With those of the options' suites that OpenSSL has by name.
        private func setUpPreSharedKey() {
            let names: [UInt16: String] = [
                0xCCAC: "ECDHE-PSK-CHACHA20-POLY1305", 0x00A9: "PSK-AES256-GCM-SHA384", 0x00A8: "PSK-AES128-GCM-SHA256",
            ]
            let setCiphers: @convention(c) (Pointer?, UnsafePointer<CChar>?) -> Int32 =
                FakeOpenSSL.function("SSL_set_cipher_list")
            let setCallback: @convention(c) (Pointer?, PreSharedKeyCallback?) -> Void =
                FakeOpenSSL.function("SSL_set_psk_client_callback")
            let setData: @convention(c) (Pointer?, Int32, UnsafeMutableRawPointer?) -> Int32 =
                FakeOpenSSL.function("SSL_set_ex_data")
            _ = setCiphers(connection, options.ciphers.compactMap { names[$0] }.joined(separator: ":"))
            _ = setData(connection, 0, Unmanaged.passUnretained(self).toOpaque())
            setCallback(connection, givePreSharedKey)
        }

        fileprivate func write(
            _ identity: UnsafeMutablePointer<CChar>?, _ key: UnsafeMutablePointer<UInt8>?
        ) -> UInt32 {
            guard let own = options.preSharedKey else { return 0 }
            identity?.update(from: own.identity.map { CChar(bitPattern: $0) } + [0], count: own.identity.count + 1)
            key?.update(from: own.key, count: own.key.count)
            return UInt32(own.key.count)
        }

        private var key: String { "\(options.serverName ?? "") \(port)" }

        func handshake() -> Step {
            clearErrors()
            let run: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("SSL_do_handshake")
            let result = run(connection)
            if result == 1 {
                let reused: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("SSL_session_reused")
                if reused(connection) == 1 { FakeNetwork.count { [port] in $0.resumedSessions[port, default: 0] += 1 } }
                return .done
            }
            return step(result)
        }

        func feed(_ bytes: [UInt8]) {
            let write: @convention(c) (Pointer?, UnsafeRawPointer?, Int32) -> Int32 = FakeOpenSSL.function("BIO_write")
            _ = write(input, bytes, Int32(bytes.count))
        }

        func takeOutput() -> [UInt8] {
            let pending: @convention(c) (Pointer?) -> Int = FakeOpenSSL.function("BIO_ctrl_pending")
            let read: @convention(c) (Pointer?, UnsafeMutableRawPointer?, Int32) -> Int32 =
                FakeOpenSSL.function("BIO_read")
            let count = pending(output)
            guard count > 0 else { return [] }
            return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                initialized = Int(max(0, read(output, buffer.baseAddress, Int32(count))))
            }
        }

        func read(into plain: inout [UInt8]) -> Step {
            let read: @convention(c) (Pointer?, UnsafeMutableRawPointer?, Int32) -> Int32 =
                FakeOpenSSL.function("SSL_read")
            var record = [UInt8](repeating: 0, count: 16 * 1024)
            while true {
                clearErrors()
                let count = read(connection, &record, Int32(record.count))
                guard count > 0 else {
                    keepSession()
                    return step(count)
                }
                plain += record[..<Int(count)]
            }
        }

        func write(_ plain: [UInt8]) -> [UInt8] {
            let write: @convention(c) (Pointer?, UnsafeRawPointer?, Int32) -> Int32 = FakeOpenSSL.function("SSL_write")
            clearErrors()
            _ = write(connection, plain, Int32(plain.count))
            return takeOutput()
        }

        func close() -> [UInt8] {
            let shutdown: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("SSL_shutdown")
            _ = shutdown(connection)
            clearErrors()
            return takeOutput()
        }

        func metadata() -> NWProtocolTLS.Metadata {
            let version: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("SSL_version")
            let metadata = NWProtocolTLS.Metadata()
            (metadata.securityProtocolMetadata as! FakeMetadata).version =
                tls_protocol_version_t(rawValue: UInt16(version(connection))) ?? .TLSv12
            return metadata
        }

        private func clearErrors() {
            let clear: @convention(c) () -> Void = FakeOpenSSL.function("ERR_clear_error")
            clear()
        }

        private func keepSession() {
            guard options.resumes, !hasSession else { return }
            let take: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("SSL_get1_session")
            let resumable: @convention(c) (Pointer?) -> Int32 = FakeOpenSSL.function("SSL_SESSION_is_resumable")
            guard let pointer = take(connection) else { return }
            let session = FakeSession(pointer)
            guard resumable(pointer) == 1 else { return }
            hasSession = true
            Self.sessions.withLock { $0[key] = session }
        }

        private func step(_ result: Int32) -> Step {
            let getError: @convention(c) (Pointer?, Int32) -> Int32 = FakeOpenSSL.function("SSL_get_error")
            let peek: @convention(c) () -> UInt = FakeOpenSSL.function("ERR_get_error")
            switch getError(connection, result) {
            case 2, 3: return .wantsInput
            case 6: return .done
            default:
                if isRejected { return .failed(errSSLBadCert) }
                return .failed(status(Int(peek() & 0x7F_FFFF)))
            }
        }

        /// Alerts of the peer are 1000 plus their number; SecureTransport.h has one status for each.
        private func status(_ reason: Int) -> OSStatus {
            switch reason {
            case 1040: errSSLPeerHandshakeFail
            case 1042: errSSLPeerBadCert
            case 1043: errSSLPeerUnsupportedCert
            case 1044: errSSLPeerCertRevoked
            case 1045: errSSLPeerCertExpired
            case 1046: errSSLPeerCertUnknown
            case 1048: errSSLPeerUnknownCA
            case 1049: errSSLPeerAccessDenied
            case 1020: errSSLPeerBadRecordMac
            case 1047: errSSLIllegalParam
            case 1051: errSSLPeerDecryptError
            case 1115: errSSLUnknownPSKIdentity
            case 258, 396, 1070: errSSLPeerProtocolVersion
            case 1071: errSSLPeerInsufficientSecurity
            case 1112: errSSLUnrecognizedName
            case 199, 1116: errSSLCertificateRequired
            case 294: errSSLClosedNoNotify
            case 267, 156, 155, 443, 198: errSSLProtocol
            default: errSSLFatalAlert
            }
        }

        // MARK: Blocks

        fileprivate func verify(_ store: Pointer?) -> Int32 {
            guard let verify = options.verify else { return 1 }
            let untrusted: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("X509_STORE_CTX_get0_untrusted")
            let leaf: @convention(c) (Pointer?) -> Pointer? = FakeOpenSSL.function("X509_STORE_CTX_get0_cert")
            let stack = untrusted(store)
            var chain = (0..<max(0, FakeOpenSSL.stackCount(stack))).map {
                SecCertificate(der: FakeOpenSSL.der(certificate: FakeOpenSSL.stackValue(stack, $0)))
            }
            if chain.isEmpty { chain = [SecCertificate(der: FakeOpenSSL.der(certificate: leaf(store)))] }
            let reference = FakeTrustReference(SecTrust(chain: chain))
            let isAccepted = wait(on: verify.queue) { complete in
                verify.block(FakeMetadata(), reference) { complete($0) }
            }
            isRejected = !isAccepted
            return isAccepted ? 1 : 0
        }

        fileprivate func identity() -> Int32 {
            guard let challenge = options.challenge else { return 1 }
            let chosen = Mutex<FakeIdentityBox?>(nil)
            _ = wait(on: challenge.queue) { complete in
                challenge.block(FakeMetadata()) { identity in
                    chosen.withLock { $0 = (identity as? FakeIdentity).map(FakeIdentityBox.init) }
                    complete(true)
                }
            }
            guard let identity = chosen.withLock({ $0 })?.identity else { return 1 }
            let use: @convention(c) (Pointer?, Pointer?) -> Int32 = FakeOpenSSL.function("SSL_use_certificate")
            let useKey: @convention(c) (Pointer?, Pointer?) -> Int32 = FakeOpenSSL.function("SSL_use_PrivateKey")
            let certificate = FakeOpenSSL.certificate(identity.identity.certificate)
            let key = FakeOpenSSL.key(identity.identity.key)
            defer {
                FakeOpenSSL.certificateFree(certificate)
                FakeOpenSSL.keyFree(key)
            }
            guard use(connection, certificate) == 1, useKey(connection, key) == 1 else { return 0 }
            // As Network.framework: the identity's own certificate first, then all others as they were given.
            let control: @convention(c) (Pointer?, Int32, Int, Pointer?) -> Int = FakeOpenSSL.function("SSL_ctrl")
            let (chain, copies) = (Int32(89), 1)
            for issuer in identity.chain {
                let parsed = FakeOpenSSL.certificate(issuer.der)
                defer { FakeOpenSSL.certificateFree(parsed) }
                guard control(connection, chain, copies, parsed) == 1 else { return 0 }
            }
            return 1
        }

        /// Lets a block run on its queue and waits for what it completes with.
        private func wait(on queue: DispatchQueue, _ body: @escaping (@escaping (Bool) -> Void) -> Void) -> Bool {
            let answer = FakeAnswer(body)
            queue.async { answer.run() }
            return answer.wait()
        }
    }

    private typealias Callback = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32

    private let verifyPeer: Callback = { store, context in
        Unmanaged<FakeTLS>.fromOpaque(context!).takeUnretainedValue().verify(store)
    }
    private let giveIdentity: Callback = { _, context in
        Unmanaged<FakeTLS>.fromOpaque(context!).takeUnretainedValue().identity()
    }

    private typealias PreSharedKeyCallback =
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, UInt32, UnsafeMutablePointer<UInt8>?,
            UInt32
        ) -> UInt32
    private let givePreSharedKey: PreSharedKeyCallback = { connection, _, identity, _, key, _ in
        let data: @convention(c) (OpaquePointer?, Int32) -> UnsafeMutableRawPointer? =
            FakeOpenSSL.function("SSL_get_ex_data")
        return Unmanaged<FakeTLS>.fromOpaque(data(connection, 0)!).takeUnretainedValue().write(identity, key)
    }

    private struct FakeIdentityBox: @unchecked Sendable {
        let identity: FakeIdentity
    }

    private final class FakeAnswer: @unchecked Sendable {
        // Sendable because the semaphore orders the two threads that touch it.
        private let body: (@escaping (Bool) -> Void) -> Void
        private let semaphore = DispatchSemaphore(value: 0)
        private var result = false

        init(_ body: @escaping (@escaping (Bool) -> Void) -> Void) { self.body = body }

        func run() {
            body { result in
                self.result = result
                self.semaphore.signal()
            }
        }

        func wait() -> Bool {
            semaphore.wait()
            return result
        }
    }

    final class FakeSession: @unchecked Sendable {
        // Sendable because it is used once.
        let pointer: OpaquePointer
        init(_ pointer: OpaquePointer) { self.pointer = pointer }
        deinit {
            let free: @convention(c) (OpaquePointer?) -> Void = FakeOpenSSL.function("SSL_SESSION_free")
            free(pointer)
        }
    }
#endif

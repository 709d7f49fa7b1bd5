#if os(Linux) && canImport(Network)
    import Network
    import Synchronization
    import TestSupport
    import Testing

    @testable import Transport

    /// TLS by Network.framework against OpenSSL: what is accepted, and what is refused with which error.
    @Suite(.turns)
    struct NetworkTLSTests {
        private func connect(
            _ server: TLSTestServer, host: String = "localhost", _ options: TLSOptions
        ) async throws(TransportError) -> any ByteStream {
            var options = options
            options.implementation = .system
            if host != "localhost" { options.serverName = host }
            return try await Connector.connectByNetwork(
                to: .host("127.0.0.1", port: server.port), secure: TLSContexts(client: options.named(host)),
                timeout: 20_000_000_000, loop: .shared)
        }

        private func close(_ stream: any ByteStream) {
            EventLoop.shared.execute { stream.close() }
        }

        /// Connects, exchanges a line, and returns the error that has to come.
        private func refusal(
            _ pair: Certificates.Pair, version: TLSTestServer.Version? = nil, asksForCertificate: Bool = false,
            host: String = "localhost", _ change: (inout TLSOptions) -> Void = { _ in }
        ) async throws -> TransportError {
            let server = try TLSTestServer.start(pair) {
                $0.version = version
                if asksForCertificate { $0.clientAuthority = Certificates().authority.certificate }
            }
            var options = TLSOptions.trusting(Certificates())
            change(&options)
            do throws(TransportError) {
                let stream = try await connect(server, host: host, options)
                // In TLS 1.3 a server refuses the client's certificate after the client's handshake.
                if let error = await endOfConnection(stream, nil) { return error }
            } catch {
                return error
            }
            throw TimeoutError("nothing was refused")
        }

        @Test(arguments: [false, true])
        func `every mistake of the server has its own error`(asWaiting: Bool) async throws {
            FakeNetwork.faults.reportsTLSFailuresAsWaiting = asWaiting
            defer { FakeNetwork.faults.reportsTLSFailuresAsWaiting = false }
            let certificates = Certificates()
            #expect(try await refusal(certificates.expired).code == .certificateExpired)
            #expect(try await refusal(certificates.selfSigned).code == .certificateSelfSigned)
            #expect(try await refusal(certificates.otherServer).code == .certificateUntrusted)
            #expect(try await refusal(certificates.server) { $0.trust = .system }.code == .certificateUntrusted)
            #expect(try await refusal(certificates.wrongHost).code == .certificateNameMismatch)
            #expect(try await refusal(certificates.wrongHost, host: "127.0.0.1").code == .certificateNameMismatch)
            let old = try await refusal(certificates.server, version: .tls11)
            #expect(old.code == .tlsVersion)
            let nameless = try await refusal(certificates.nameless)
            #expect(nameless.code == .certificateNameMismatch)
            #expect(nameless.message.contains("only subjectAltName counts"))
        }

        @Test func `every status of Apple's TLS has its error, which never depends on a server`() async throws {
            let tls = try NetworkTLS(TLSOptions())
            func code(_ status: OSStatus, isOpen: Bool = false, wasAsked: Bool = false) -> TransportError.Code {
                let failures = NetworkFailures(peerName: "the server", tls: tls)
                if wasAsked { failures.noteRequest() }
                return failures.error(.tls(status), isOpen: isOpen).code
            }
            let table: [TransportError.Code: [OSStatus]] = [
                .notTLS: [errSSLProtocol, errSSLUnexpectedRecord, errSSLClosedNoNotify, errSSLClosedAbort],
                .tlsVersion: [errSSLPeerProtocolVersion, errSSLPeerInsufficientSecurity, errSSLNegotiation],
                .clientCertificateRefused: [errSSLCertificateRequired],
                .certificateNameMismatch: [errSSLUnrecognizedName, errSSLHostNameMismatch],
                .certificateExpired: [errSSLCertExpired],
                .certificateNotYetValid: [errSSLCertNotYetValid],
                .certificateUntrusted: [errSSLXCertChainInvalid, errSSLUnknownRootCert, errSSLNoRootCert],
                .certificateInvalid: [errSSLBadCert],
                .tlsFailed: [errSSLPeerHandshakeFail, errSSLPeerBadCert, errSSLFatalAlert, errSSLClosedGraceful],
            ]
            for (expected, statuses) in table {
                for status in statuses { #expect(code(status) == expected, "\(status)") }
            }
            // What a server may reply if it requested a certificate and got none that it accepts.
            let answers = [
                errSSLPeerBadCert, errSSLPeerUnsupportedCert, errSSLPeerCertRevoked, errSSLPeerCertExpired,
                errSSLPeerCertUnknown, errSSLPeerUnknownCA, errSSLPeerAccessDenied, errSSLPeerHandshakeFail,
                errSSLClosedNoNotify, errSSLClosedAbort,
            ]
            for status in answers { #expect(code(status, wasAsked: true) == .clientCertificateRefused, "\(status)") }
            for status in [errSSLClosedNoNotify, errSSLClosedAbort] {
                #expect(code(status, isOpen: true) == .tlsTruncated, "\(status)")
            }
        }

        @Test(arguments: [nil, TLSTestServer.Version.tls12])
        func `a missing client certificate is named`(version: TLSTestServer.Version?) async throws {
            let error = try await refusal(Certificates().server, version: version, asksForCertificate: true)
            #expect(error.code == .clientCertificateRefused)
            #expect(error.message.contains("has none"))
        }

        @Test func `a good certificate is accepted for its name and its addresses`() async throws {
            let certificates = Certificates()
            let server = try TLSTestServer.start(certificates.server)
            for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "::1", "[::1]"] {
                close(try await connect(server, host: host, .trusting(certificates)))
            }
        }

        @Test func `authorities may be PEM or DER, in files and in memory`() async throws {
            let certificates = Certificates()
            let server = try TLSTestServer.start(certificates.server)
            for source in try certificates.authoritySources() {
                var options = TLSOptions()
                options.trust = .authorities([source])
                close(try await connect(server, options))
            }
        }

        @Test func `the server is named in the handshake, an address is not`() async throws {
            let certificates = Certificates()
            // RFC 6066 section 3 allows names only.
            for (host, isSent) in [("localhost", true), ("127.0.0.1", false), ("::1", false), ("[::1]", false)] {
                let hello = Mutex<[UInt8]>([])
                let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
                    let reader = HelloReader(stream, loop: .shared) { bytes in hello.withLock { $0 += bytes } }
                    EventLoop.shared.execute { stream.attach(reader, interest: .read) }
                }
                var options = TLSOptions.trusting(certificates)
                options.serverName = host
                let attempt = Task { [options] in
                    _ = try await Connector.connectByNetwork(
                        to: .host("127.0.0.1", port: listener.port), secure: TLSContexts(client: options),
                        timeout: 20_000_000_000, loop: .shared)
                }
                #expect(await eventually { hello.withLock { !$0.isEmpty } })
                attempt.cancel()
                _ = await attempt.result
                let text = String(decoding: hello.withLock { $0 }, as: UTF8.self)
                #expect(text.contains(host.filter { $0 != "[" && $0 != "]" }) == isSent, "\(host)")
                await listener.close()
            }
        }

        @Test func `a slow evaluation of one server's certificate delays no other connection`() async throws {
            let certificates = Certificates()
            // Each serves one connection at a time.
            let servers = [
                try TLSTestServer.start(certificates.server), try TLSTestServer.start(certificates.server),
            ]
            let contexts = TLSContexts(client: .trusting(certificates))
            let hasBegun = Atomic(false)
            let mayEnd = DispatchSemaphore(value: 0)
            // Looking an authority up can take as long as the network likes.
            FakeSystem.evaluation = { name in
                guard name == "localhost", !hasBegun.exchange(true, ordering: .acquiringAndReleasing) else { return }
                mayEnd.wait()
            }
            defer { FakeSystem.evaluation = nil }
            let slow = Task {
                try await Connector.connectByNetwork(
                    to: .host("localhost", port: servers[0].port), secure: contexts, timeout: 20_000_000_000,
                    loop: .shared)
            }
            #expect(await eventually { hasBegun.load(ordering: .acquiring) })
            let quick = await Task {
                try await Connector.connectByNetwork(
                    to: .host("localhost", port: servers[1].port), secure: contexts, timeout: 20_000_000_000,
                    loop: .shared)
            }.result
            mayEnd.signal()
            #expect(throws: Never.self) { close(try quick.get()) }
            close(try await slow.value)
        }

        @Test func `what Apple demands of a server's certificate is named`() async throws {
            let certificates = Certificates()
            for (pair, demand) in [(certificates.lasting, "825 days"), (certificates.unmarked, "serverAuth")] {
                let error = try await refusal(pair)
                #expect(error.code == .certificateInvalid)
                #expect(error.message.contains(demand), "\(error)")
            }
            // The rules are those of servers with a name.
            var options = TLSOptions.trusting(certificates)
            options.verification = .unsafeAcceptAnyName
            close(try await connect(try TLSTestServer.start(certificates.unmarked), options))
        }

        @Test func `every status of Apple's verification has an error that says what to do`() async throws {
            let authority = Certificates().authorityDER
            let der = try #require(try FileSystem().contents(of: authority))
            let chain = SecTrust(chain: [SecCertificate(der: der)])
            let table: [(OSStatus, TransportError.Code, String)] = [
                (errSecCertificateExpired, .certificateExpired, "needs a new one"),
                (errSecCertificateNotValidYet, .certificateNotYetValid, "clock"),
                (errSecHostNameMismatch, .certificateNameMismatch, "subjectAltName"),
                (errSecNotTrusted, .certificateSelfSigned, "`trust` of the TLS options"),
                (errSecCertificateValidityPeriodTooLong, .certificateInvalid, "825 days"),
                (errSecInvalidExtendedKeyUsage, .certificateInvalid, "serverAuth"),
                (errSecUnsupportedKeySize, .certificateInvalid, "2,048 bits"),
                (errSecInvalidDigestAlgorithm, .certificateInvalid, "SHA-2"),
                (errSecCertificateRevoked, .certificateRevoked, "needs a new one"),
                (errSecIncompleteCertRevocationCheck, .certificateStatusUnknown, "OCSP stapling"),
            ]
            for (status, code, text) in table {
                let error = NetworkRejection(chain, code: status, trust: .system).error("the server")
                #expect(error.code == code, "\(status)")
                #expect(error.message.contains(text), "\(error)")
            }
        }

        @Test func `the name is not checked where the options say so, and the chain still is`() async throws {
            let certificates = Certificates()
            let server = try TLSTestServer.start(certificates.wrongHost)
            var options = TLSOptions.trusting(certificates)
            options.verification = .unsafeAcceptAnyName
            close(try await connect(server, options))
            let error = try await refusal(certificates.otherServer) { $0.verification = .unsafeAcceptAnyName }
            #expect(error.code == .certificateUntrusted)
        }

        @Test func `everything is accepted only where the options say unsafe`() async throws {
            let certificates = Certificates()
            for pair in [certificates.expired, certificates.selfSigned, certificates.otherServer] {
                let server = try TLSTestServer.start(pair)
                var options = TLSOptions()
                options.verification = .unsafeAcceptAnyCertificate
                close(try await connect(server, options))
            }
        }

        @Test func `a server below the minimum version is refused`() async throws {
            let error = try await refusal(Certificates().server, version: .tls12) {
                $0.minimumVersion = .tls13
            }
            #expect(error.code == .tlsVersion)
        }

        @Test func `a client certificate comes from PKCS 12 and from PEM, and no key is written to a keychain`()
            async throws
        {
            let certificates = Certificates()
            let server = try TLSTestServer.start(certificates.server) {
                $0.clientAuthority = certificates.authority.certificate
            }
            var options = TLSOptions.trusting(certificates)
            options.identity = .pkcs12(
                .file(certificates.client.container), passphrase: certificates.passphrase)
            let stored = FakeSystem.storedKeys
            let stream = try await connect(server, options)
            close(stream)
            // macOS would write the key to the user's keychain.
            #expect(FakeSystem.storedKeys == stored)

            options.identity = .pkcs12(.file(certificates.client.container), passphrase: "guess")
            await #expect { _ = try await connect(server, options) } throws: {
                ($0 as? TransportError)?.message.contains("passphrase is wrong") == true
            }
            for (key, passphrase) in [
                (certificates.client.key, nil), (certificates.encryptedClientKey, certificates.passphrase),
            ] {
                options.identity = TLSIdentity(
                    certificates: .file(certificates.client.certificate), key: .file(key), passphrase: passphrase)
                #expect(!options.needsOpenSSL)
                close(try await connect(server, options))
            }
            #expect(FakeSystem.storedKeys == stored)
            options.identity = TLSIdentity(
                certificates: .file(certificates.client.certificate), key: .file(certificates.server.key))
            let error = #expect(throws: TransportError.self) { try options.check() }
            #expect(error?.code == .tlsConfiguration)
            #expect(error?.message.contains("does not belong to its certificate") == true)
        }

        /// An identity as the keychain has it.
        private func keychainIdentity(_ pair: Certificates.Pair) throws -> SecIdentity {
            let key = try PrivateKey(.file(pair.key), passphrase: nil)
            return SecIdentity(certificate: try certificate(pair).der, key: key.encoded)
        }

        private func certificate(_ pair: Certificates.Pair) throws -> SecCertificate {
            SecCertificate(der: try PEMSource.file(pair.certificate).certificates("certificate")[0])
        }

        @Test func `a client shows the certificates between its own and the root, each once`() async throws {
            let certificates = Certificates()
            let identity = try keychainIdentity(certificates.issuedClient)
            let (intermediate, root) = (
                try certificate(certificates.intermediate), try certificate(certificates.authority)
            )
            let files = [certificates.issuedClient.certificate, certificates.intermediate.certificate]
            let text = try files.map { String(decoding: try FileSystem().contents(of: $0) ?? [], as: UTF8.self) }
                .joined()
            let identities: [TLSIdentity] = [
                .pkcs12(.file(certificates.issuedClient.container), passphrase: certificates.passphrase),
                TLSIdentity(certificates: .text(text), key: .file(certificates.issuedClient.key)),
                .keychain(identity, intermediates: [intermediate]),
                // As the keychain returns a chain.
                .keychain(
                    identity, intermediates: [try certificate(certificates.issuedClient), intermediate, root]),
            ]
            let server = try TLSTestServer.start(certificates.server) {
                $0.clientAuthority = certificates.authority.certificate
            }
            for identity in identities {
                // Network.framework adds the identity's own certificate itself.
                let shown = try #require(try identity.forNetwork() as? FakeIdentity)
                #expect(shown.chain.map(\.der) == [intermediate.der], "\(identity)")
                var options = TLSOptions.trusting(certificates)
                options.identity = identity
                let stream = try await connect(server, options)
                let link = Link(machine: SinkMachine(), loop: .shared, maximumOutboxBytes: 1 << 20)
                link.attach(stream)
                #expect(await eventually { link.perform { $0.isOpen } })
                // The server has accepted the client's certificate when it answers.
                link.perform { $0.output += Array("line\n".utf8) }
                #expect(await eventually { link.perform { !$0.received.isEmpty } }, "\(identity)")
                link.dropConnection()
            }
            #expect(TLSIdentity.keychain(identity) == .keychain(identity))
            #expect(TLSIdentity.keychain(identity) != .keychain(identity, intermediates: [intermediate]))

            let alone = try #require(try TLSIdentity.keychain(identity).forNetwork() as? FakeIdentity)
            #expect(alone.chain.isEmpty)
            let error = try await refusal(certificates.server, asksForCertificate: true) {
                $0.identity = .keychain(identity)
            }
            #expect(error.code == .clientCertificateRefused)
        }

        @Test func `a PKCS 12 container that Apple's systems cannot read is named with what they read`() async throws {
            let certificates = Certificates()
            _ = try TLSIdentity.pkcs12(
                .file(certificates.clientContainerWithAES), passphrase: certificates.passphrase
            ).forNetwork()
            for (file, passphrase, advice) in [
                (
                    certificates.client.container, nil,
                    ["is encrypted", "without a passphrase", "make the container with one"]
                ),
                (
                    certificates.clientContainerWithAES128, certificates.passphrase,
                    ["AES-256 with HMAC-SHA-256", "-26275"]
                ),
                (certificates.client.certificate, certificates.passphrase, ["is not a PKCS #12 container", "-26275"]),
            ] {
                let error = #expect(throws: TransportError.self) {
                    try TLSIdentity.pkcs12(.file(file), passphrase: passphrase).forNetwork()
                }
                #expect(error?.code == .tlsConfiguration)
                for text in advice { #expect(error?.message.contains(text) == true, "\(error?.message ?? "")") }
            }
        }

        @Test func `a server that does not speak TLS, and one that ends in the middle, are told apart`() async throws {
            let certificates = Certificates()
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
                let greeting: [UInt8] = Array("220 this is not TLS\r\n".utf8)
                _ = greeting.withUnsafeBytes { stream.write(from: $0) }
            }
            await #expect {
                _ = try await Connector.connectByNetwork(
                    to: .host("127.0.0.1", port: listener.port), secure: TLSContexts(client: .trusting(certificates)),
                    timeout: 20_000_000_000, loop: .shared)
            } throws: { ($0 as? TransportError)?.code == .notTLS }
            await listener.close()

            let server = try TLSTestServer.start(certificates.server)
            let stream = try await connect(server, .trusting(certificates))
            let link = Link(machine: SinkMachine(), loop: .shared, maximumOutboxBytes: 1 << 20)
            let end = Mutex<[TransportError?]>([])
            link.perform { $0.end = { error in end.withLock { $0.append(error) } } }
            link.attach(stream)
            #expect(await eventually { link.perform { $0.isOpen } })
            link.perform { $0.output += Array("line\n".utf8) }
            #expect(await eventually { link.perform { !$0.received.isEmpty } })
            server.kill()
            #expect(await eventually { end.withLock { !$0.isEmpty } })
            #expect(end.withLock { $0.map { $0?.code } } == [.tlsTruncated])
        }

        /// Connects and exchanges a line. The server's ticket comes before its answer.
        private static func exchange(_ server: TLSTestServer, _ options: TLSOptions) async throws {
            let stream = try await Connector.connectByNetwork(
                to: .host("localhost", port: server.port), secure: TLSContexts(client: options),
                timeout: 20_000_000_000, loop: .shared)
            let link = Link(machine: SinkMachine(), loop: .shared, maximumOutboxBytes: 1 << 20)
            link.attach(stream)
            #expect(await eventually { link.perform { $0.isOpen } })
            link.perform { $0.output += Array("resume\n".utf8) }
            #expect(await eventually { link.perform { !$0.received.isEmpty } })
            link.dropConnection()
        }

        /// In a process of its own, whose system trusts the tests' authority.
        @Test func `a session is continued by clients that check everything, unless the options forbid it`() async {
            await #expect(processExitsWith: .success) {
                let certificates = Certificates()
                setenv("SSL_CERT_FILE", certificates.authority.certificate, 1)
                let authorities = [PEMSource.file(certificates.authority.certificate)]
                let changes: [(name: Comment, isResumed: Bool, change: (inout TLSOptions) -> Void)] = [
                    ("as they are", true, { _ in }),
                    ("forbidden", false, { $0.resumesSessions = false }),
                    ("any certificate", false, { $0.verification = .unsafeAcceptAnyCertificate }),
                    ("any name", false, { $0.verification = .unsafeAcceptAnyName }),
                    ("own authorities", false, { $0.trust = .authorities(authorities) }),
                    ("own authorities as well", false, { $0.trust = .systemAnd(authorities) }),
                    ("another name", false, { $0.serverName = "localhost" }),
                ]
                for (name, isResumed, change) in changes {
                    let server = try TLSTestServer.start(certificates.server)
                    var options = TLSOptions()
                    change(&options)
                    for _ in 0..<2 { try await NetworkTLSTests.exchange(server, options) }
                    #expect((FakeNetwork.counts.resumedSessions[server.port, default: 0] > 0) == isResumed, name)
                }
            }
        }

        @Test(arguments: [TLSVerification.unsafeAcceptAnyCertificate, .unsafeAcceptAnyName, .full])
        func `a client continues no session of one that trusts more`(verification: TLSVerification) async throws {
            let certificates = Certificates()
            let server = try TLSTestServer.start(certificates.server)
            var options = TLSOptions.trusting(certificates)
            options.verification = verification
            try await Self.exchange(server, options)
            // The system does not know the authority.
            let error = await #expect(throws: TransportError.self) { try await Self.exchange(server, TLSOptions()) }
            #expect(error?.code == .certificateUntrusted)
        }
    }

    /// Passes on what a stream receives.
    private final class HelloReader: LoopHandler, @unchecked Sendable {
        // Sendable because all is touched on the loop's thread only.
        private let stream: any ByteStream
        private let received: @Sendable ([UInt8]) -> Void

        init(_ stream: any ByteStream, loop: EventLoop, _ received: @escaping @Sendable ([UInt8]) -> Void) {
            self.stream = stream
            self.received = received
            super.init(loop: loop)
        }

        override func ready(_ readiness: Readiness, at now: Int64) {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            switch buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
            case .bytes(let count): received(Array(buffer[..<count]))
            case .wouldBlock: break
            case .endOfStream, .failed: stream.close()
            }
        }
    }

    extension TLSOptions {
        fileprivate func named(_ host: String) -> TLSOptions {
            var options = self
            if options.serverName == nil { options.serverName = host }
            return options
        }
    }
#endif

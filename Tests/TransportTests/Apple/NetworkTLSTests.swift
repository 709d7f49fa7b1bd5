#if canImport(Network)
    import Network
    import Synchronization
    import TestSupport
    import Testing

    @testable import Transport

    /// TLS by Network.framework against `openssl s_server`: what is accepted, and what is refused with which error.
    @Suite(.requires(program: "openssl"), .turns)
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
            _ pair: Certificates.Pair, _ arguments: [String] = [], host: String = "localhost",
            _ change: (inout TLSOptions) -> Void = { _ in }
        ) async throws -> TransportError {
            let server = try await TLSTestServer.start(pair, arguments)
            var options = TLSOptions.trusting(try await TestCertificates.shared())
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
            let certificates = try await TestCertificates.shared()
            #expect(try await refusal(certificates.expired).code == .certificateExpired)
            #expect(try await refusal(certificates.selfSigned).code == .certificateSelfSigned)
            #expect(try await refusal(certificates.otherServer).code == .certificateUntrusted)
            #expect(try await refusal(certificates.server) { $0.trust = .system }.code == .certificateUntrusted)
            #expect(try await refusal(certificates.wrongHost).code == .certificateNameMismatch)
            #expect(try await refusal(certificates.wrongHost, host: "127.0.0.1").code == .certificateNameMismatch)
            let old = try await refusal(certificates.server, ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
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

        @Test(arguments: [[], ["-tls1_2"]])
        func `a missing client certificate is named`(arguments: [String]) async throws {
            let certificates = try await TestCertificates.shared()
            let error = try await refusal(
                certificates.server, ["-Verify", "1", "-CAfile", certificates.authority.certificate] + arguments)
            #expect(error.code == .clientCertificateRefused)
            #expect(error.message.contains("has none"))
        }

        @Test func `a good certificate is accepted for its name and its addresses`() async throws {
            let certificates = try await TestCertificates.shared()
            let server = try await TLSTestServer.start(certificates.server)
            for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "::1", "[::1]"] {
                close(try await connect(server, host: host, .trusting(certificates)))
            }
        }

        @Test func `authorities may be PEM or DER, in files and in memory`() async throws {
            let certificates = try await TestCertificates.shared()
            let server = try await TLSTestServer.start(certificates.server)
            for source in try certificates.authoritySources() {
                var options = TLSOptions()
                options.trust = .authorities([source])
                close(try await connect(server, options))
            }
        }

        @Test func `the name is not checked where the options say so, and the chain still is`() async throws {
            let certificates = try await TestCertificates.shared()
            let server = try await TLSTestServer.start(certificates.wrongHost)
            var options = TLSOptions.trusting(certificates)
            options.verification = .unsafeAcceptAnyName
            close(try await connect(server, options))
            let error = try await refusal(certificates.otherServer) { $0.verification = .unsafeAcceptAnyName }
            #expect(error.code == .certificateUntrusted)
        }

        @Test func `everything is accepted only where the options say unsafe`() async throws {
            let certificates = try await TestCertificates.shared()
            for pair in [certificates.expired, certificates.selfSigned, certificates.otherServer] {
                let server = try await TLSTestServer.start(pair)
                var options = TLSOptions()
                options.verification = .unsafeAcceptAnyCertificate
                close(try await connect(server, options))
            }
        }

        @Test func `a server below the minimum version is refused`() async throws {
            let error = try await refusal(try await TestCertificates.shared().server, ["-tls1_2"]) {
                $0.minimumVersion = .tls13
            }
            #expect(error.code == .tlsVersion)
        }

        @Test func `a client certificate comes from PKCS 12, and from PEM only with OpenSSL`() async throws {
            let certificates = try await TestCertificates.shared()
            let server = try await TLSTestServer.start(
                certificates.server,
                ["-Verify", "1", "-verify_return_error", "-CAfile", certificates.authority.certificate])
            var options = TLSOptions.trusting(certificates)
            options.identity = .pkcs12(
                .file(certificates.clientPKCS12), passphrase: certificates.clientKeyPassword)
            let stream = try await connect(server, options)
            close(stream)

            options.identity = .pkcs12(.file(certificates.clientPKCS12), passphrase: "guess")
            await #expect { _ = try await connect(server, options) } throws: {
                ($0 as? TransportError)?.message.contains("passphrase is wrong") == true
            }
            options.identity = TLSIdentity(
                certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
            await #expect { _ = try await connect(server, options) } throws: {
                ($0 as? TransportError)?.message.contains("PKCS #12") == true
            }
            #expect(options.needsOpenSSL)
        }

        @Test func `a server that does not speak TLS, and one that ends in the middle, are told apart`() async throws {
            let certificates = try await TestCertificates.shared()
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

            let server = try await TLSTestServer.start(certificates.server)
            let stream = try await connect(server, .trusting(certificates))
            let link = Link(machine: SinkMachine(), loop: .shared, maximumOutboxBytes: 1 << 20)
            let end = Mutex<[TransportError?]>([])
            link.perform { $0.end = { error in end.withLock { $0.append(error) } } }
            link.attach(stream)
            #expect(await eventually { link.perform { $0.isOpen } })
            // A process that is killed with something unread resets its connection.
            link.perform { $0.output += Array("line\n".utf8) }
            #expect(await eventually { link.perform { !$0.received.isEmpty } })
            await server.process.kill()
            #expect(await eventually { end.withLock { !$0.isEmpty } })
            #expect(end.withLock { $0.map { $0?.code } } == [.tlsTruncated])
        }

        @Test func `a session is continued with the next connection, unless the options forbid it`() async throws {
            let certificates = try await TestCertificates.shared()
            let server = try await TLSTestServer.start(certificates.server)
            var options = TLSOptions.trusting(certificates)
            options.serverName = "localhost"
            for resumes in [false, true] {
                options.resumesSessions = resumes
                let before = FakeNetwork.counts.resumedSessions[server.port, default: 0]
                for _ in 0..<2 {
                    let stream = try await connect(server, options)
                    let link = Link(machine: SinkMachine(), loop: .shared, maximumOutboxBytes: 1 << 20)
                    link.attach(stream)
                    #expect(await eventually { link.perform { $0.isOpen } })
                    // The ticket comes before the answer.
                    link.perform { $0.output += Array("resume\n".utf8) }
                    #expect(await eventually { link.perform { !$0.received.isEmpty } })
                    link.dropConnection()
                }
                #expect((FakeNetwork.counts.resumedSessions[server.port, default: 0] > before) == resumes)
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

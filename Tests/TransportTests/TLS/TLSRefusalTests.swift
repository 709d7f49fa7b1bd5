import TestSupport
import Testing
import Transport

/// What the client refuses, and how it says so; against `openssl s_server`.
@Suite(.requires(program: "openssl"), .turns)
struct TLSRefusalTests {
    /// Connects and returns the error that has to come.
    private func refusal(
        _ pair: Certificates.Pair, _ arguments: [String] = [], host: String = "localhost",
        _ change: (inout TLSOptions) -> Void = { _ in }
    ) async throws -> TransportError {
        let server = try await TLSTestServer.start(pair, arguments)
        var options = TLSOptions.trusting(try await TestCertificates.shared())
        change(&options)
        do throws(TransportError) {
            let connection = try await connectTLS(
                port: server.port, host: host, contexts: TLSContexts(client: options))
            let stream = connection.stream
            EventLoop.shared.execute { stream.close() }
        } catch {
            return error
        }
        throw TimeoutError("the handshake succeeded")
    }

    @Test func `a good certificate is accepted for its name and its addresses`() async throws {
        let certificates = try await TestCertificates.shared()
        let contexts = TLSContexts(client: .trusting(certificates))
        let server = try await TLSTestServer.start(certificates.server)
        for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "::1", "[::1]"] {
            let connection = try await connectTLS(port: server.port, host: host, contexts: contexts)
            #expect(connection.layer.isOpen)
            #expect(connection.layer.version == "TLSv1.3")
            let stream = connection.stream
            EventLoop.shared.execute { stream.close() }
        }
    }

    @Test func `TLS 1.2 is accepted`() async throws {
        let certificates = try await TestCertificates.shared()
        let server = try await TLSTestServer.start(certificates.server, ["-tls1_2"])
        let connection = try await connectTLS(
            port: server.port, contexts: TLSContexts(client: .trusting(certificates)))
        #expect(connection.layer.version == "TLSv1.2")
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `an expired certificate is refused with its last day`() async throws {
        let error = try await refusal(try await TestCertificates.shared().expired)
        #expect(error.code == .certificateExpired)
        #expect(error.message.contains("GMT"))
    }

    @Test func `a certificate before its first day is refused with it`() async throws {
        let certificates = try await TestCertificates.shared()
        let scratch = try ScratchDirectory("future")
        let pair = try await futureCertificate(certificates, scratch)
        let error = try await refusal(pair)
        #expect(error.code == .certificateNotYetValid)
        #expect(error.message.contains("2095"))
    }

    @Test func `a certificate signed by itself is refused, unless it is trusted`() async throws {
        let certificates = try await TestCertificates.shared()
        let error = try await refusal(certificates.selfSigned)
        #expect(error.code == .certificateSelfSigned)

        let server = try await TLSTestServer.start(certificates.selfSigned)
        var options = TLSOptions()
        options.trust = .authorities([.file(certificates.selfSigned.certificate)])
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `an unknown authority is refused by name`() async throws {
        let certificates = try await TestCertificates.shared()
        let error = try await refusal(certificates.otherServer)
        #expect(error.code == .certificateUntrusted)
        #expect(error.message.contains("other-authority") && error.message.contains("the TLS options do not trust"))
        let bySystem = try await refusal(certificates.server) { $0.trust = .system }
        #expect(bySystem.code == .certificateUntrusted)
        #expect(bySystem.message.contains("this system does not trust"))
    }

    @Test(arguments: ["localhost", "127.0.0.1", "::1"])
    func `a certificate for another name is refused with the names in it`(host: String) async throws {
        let error = try await refusal(try await TestCertificates.shared().wrongHost, host: host)
        #expect(error.code == .certificateNameMismatch)
        #expect(error.message.contains("elsewhere.example"))
    }

    @Test func `a certificate that names no host is not advised to be called by its names`() async throws {
        let scratch = try ScratchDirectory("nameless")
        let pair = Certificates.Pair(certificate: scratch.file("nameless.pem"), key: scratch.file("nameless.key"))
        try await Tool.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", pair.key, "-subj", "/CN=localhost", "-days",
                "3",
            ]
                + ["-out", pair.certificate]
        ).requireSuccess()
        let error = try await refusal(pair) { $0.trust = .authorities([.file(pair.certificate)]) }
        #expect(error.code == .certificateNameMismatch)
        #expect(error.message.contains("names no host") && !error.message.contains("one of its names"))
    }

    @Test func `the name to verify can be another than the host`() async throws {
        let certificates = try await TestCertificates.shared()
        let server = try await TLSTestServer.start(certificates.wrongHost)
        var options = TLSOptions.trusting(certificates)
        options.serverName = "elsewhere.example"
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `a server that knows nothing newer than TLS 1_1 is refused`() async throws {
        let error = try await refusal(
            try await TestCertificates.shared().server, ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
        #expect(error.code == .tlsVersion)
    }

    @Test(arguments: [[], ["-tls1_2"]])
    func `a missing client certificate is named`(arguments: [String]) async throws {
        let certificates = try await TestCertificates.shared()
        let server = try await TLSTestServer.start(
            certificates.server, ["-Verify", "1", "-CAfile", certificates.authority.certificate] + arguments)
        let contexts = TLSContexts(client: .trusting(certificates))
        var failure: TransportError?
        do throws(TransportError) {
            let connection = try await connectTLS(port: server.port, contexts: contexts)
            // In TLS 1.3 the alert comes after the client's handshake.
            failure = await endOfConnection(connection.stream, connection.layers)
        } catch {
            failure = error
        }
        #expect(failure?.code == .clientCertificateRefused)
    }

    @Test func `a name that cannot be verified is refused instead of not verified`() async throws {
        let contexts = TLSContexts(client: .trusting(try await TestCertificates.shared()))
        for host in ["", ".", "[]", "a\0b", "bücher.example", ".example"] {
            #expect { try TLSLayer(client: contexts, host: host, port: 1) } throws: {
                ($0 as? TransportError)?.code == .tlsConfiguration
            }
        }
    }

    @Test func `everything is accepted only where the options say unsafe`() async throws {
        let certificates = try await TestCertificates.shared()
        for pair in [certificates.expired, certificates.selfSigned, certificates.wrongHost, certificates.otherServer] {
            let server = try await TLSTestServer.start(pair)
            var options = TLSOptions()
            options.verification = .unsafeAcceptAnyCertificate
            let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
            let stream = connection.stream
            EventLoop.shared.execute { stream.close() }
        }
    }

    /// `openssl x509` of 3.0 cannot set the first day; `openssl ca` can.
    private func futureCertificate(
        _ certificates: Certificates, _ scratch: ScratchDirectory
    ) async throws -> Certificates.Pair {
        let configuration = try scratch.write(
            """
            [ca]
            default_ca=here
            [here]
            database=\(scratch.file("index"))
            serial=\(scratch.file("serial"))
            new_certs_dir=\(scratch.path)
            default_md=sha256
            policy=any
            x509_extensions=names
            [any]
            commonName=supplied
            [names]
            subjectAltName=DNS:localhost

            """, to: "ca.conf")
        try scratch.write("", to: "index")
        try scratch.write("01\n", to: "serial")
        let (request, certificate) = (scratch.file("request"), scratch.file("future.pem"))
        try await Tool.run(
            "openssl", ["req", "-new", "-key", certificates.server.key, "-subj", "/CN=localhost", "-out", request]
        ).requireSuccess()
        try await Tool.run(
            "openssl",
            [
                "ca", "-batch", "-notext", "-config", configuration, "-in", request, "-out", certificate, "-cert",
                certificates.authority.certificate, "-keyfile", certificates.authority.key, "-startdate",
                "20950101000000Z", "-enddate", "20960101000000Z",
            ]
        ).requireSuccess()
        return Certificates.Pair(certificate: certificate, key: certificates.server.key)
    }
}

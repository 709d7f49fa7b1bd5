import TestSupport
import Testing

/// Proof that the certificates are good and bad in the way that their names say, by OpenSSL's own judgement.
@Suite(.requires(program: "openssl"), .turns)
struct CertificateTests {
    private func verify(
        _ certificate: String, for host: String = "localhost", _ made: Certificates
    ) async throws -> Tool.Result {
        try await Tool.run(
            "openssl", ["verify", "-CAfile", made.authority.certificate, "-verify_hostname", host, certificate])
    }

    @Test func eachIsRefusedForItsOwnReasonAlone() async throws {
        let made = try await Certificates.make()
        #expect(try await verify(made.server.certificate, made).succeeded)
        let reasons = [
            (made.expired, "certificate has expired"), (made.selfSigned, "self-signed certificate"),
            (made.wrongHost, "ostname mismatch"), (made.otherServer, "unable to get local issuer certificate"),
        ]
        for (pair, reason) in reasons {
            let result = try await verify(pair.certificate, made)
            #expect(!result.succeeded)
            #expect(result.errors.contains(reason), "\(result.errors)")
        }
        #expect(try await verify(made.wrongHost.certificate, for: "elsewhere.example", made).succeeded)
        let addresses = try await Tool.run(
            "openssl", ["verify", "-CAfile", made.authority.certificate, "-verify_ip", "::1", made.server.certificate])
        #expect(addresses.succeeded)
        let opened = try await Tool.run(
            "openssl", ["pkey", "-noout", "-in", made.encryptedClientKey, "-passin", "pass:\(made.clientKeyPassword)"])
        #expect(opened.succeeded)
        let closed = try await Tool.run(
            "openssl", ["pkey", "-noout", "-in", made.encryptedClientKey, "-passin", "pass:wrong"])
        #expect(!closed.succeeded)
    }

    @Test(.requires(.mosquitto), .requires(program: "mosquitto_pub"))
    func mosquittoShowsThemAndAsksForTheClients() async throws {
        let made = try await Certificates.make()
        let broker = try await Mosquitto.start {
            $0.tls = made.brokerTLS(requiresClientCertificate: true)
            $0.webSocketTLS = made.brokerTLS()
        }
        let port = try #require(broker.tlsPort)
        #expect(broker.webSocketTLSPort != nil)
        let trust = ["--cafile", made.authority.certificate]
        let identity = ["--cert", made.client.certificate, "--key", made.client.key]
        let publish = ["-h", "127.0.0.1", "-p", "\(port)", "-t", "a", "-m", "b", "-q", "1"]
        #expect(try await Tool.run("mosquitto_pub", publish + trust + identity).succeeded)
        #expect(try await !Tool.run("mosquitto_pub", publish + trust).succeeded)
    }

    @Test(.requires(.activeMQ)) func activeMQShowsThem() async throws {
        let made = try await Certificates.make()
        let broker = try await ActiveMQ.start { $0.tls = made.brokerTLS() }
        let client = try await made.openSSLClient(port: #require(broker.stompTLSPort))
        try await client.write("CONNECT\naccept-version:1.2\nhost:localhost\n\n\0")
        try await client.waitForLine(containing: "CONNECTED")
    }
}

extension Certificates {
    /// OpenSSL's own client, that trusts our authority and carries what is written to it.
    func openSSLClient(port: Int) async throws -> ChildProcess {
        try await ChildProcess.start(
            Command(
                "openssl",
                [
                    "s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", authority.certificate,
                    "-verify_return_error", "-verify_hostname", "localhost", "-quiet",
                ], input: .pipe))
    }
}

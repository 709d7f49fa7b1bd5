import Foundation
import TestSupport
import Testing
import Transport

/// What the client refuses, and how it says so; against OpenSSL.
@Suite(.turns)
struct TLSRefusalTests {
    /// Connects and returns the error that has to come.
    fileprivate static func refusal(
        _ pair: Certificates.Pair, version: TLSTestServer.Version? = nil, host: String = "localhost",
        _ change: (inout TLSOptions) -> Void = { _ in }
    ) async throws -> TransportError {
        let server = try TLSTestServer.start(pair) { $0.version = version }
        var options = TLSOptions.trusting(Certificates())
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
        let certificates = Certificates()
        let contexts = TLSContexts(client: .trusting(certificates))
        let server = try TLSTestServer.start(certificates.server)
        for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "::1", "[::1]"] {
            let connection = try await connectTLS(port: server.port, host: host, contexts: contexts)
            #expect(connection.layer.isOpen)
            #expect(connection.layer.version == "TLSv1.3")
            let stream = connection.stream
            EventLoop.shared.execute { stream.close() }
        }
    }

    @Test func `TLS 1.2 is accepted`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) { $0.version = .tls12 }
        let connection = try await connectTLS(
            port: server.port, contexts: TLSContexts(client: .trusting(certificates)))
        #expect(connection.layer.version == "TLSv1.2")
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `an expired certificate is refused with its last day`() async throws {
        let error = try await Self.refusal(Certificates().expired)
        #expect(error.code == .certificateExpired)
        #expect(error.message.contains("GMT"))
    }

    @Test func `a certificate before its first day is refused with it`() async throws {
        let error = try await Self.refusal(Certificates().future)
        #expect(error.code == .certificateNotYetValid)
        #expect(error.message.contains("2095"))
    }

    @Test func `a certificate signed by itself is refused, unless it is trusted`() async throws {
        let certificates = Certificates()
        let error = try await Self.refusal(certificates.selfSigned)
        #expect(error.code == .certificateSelfSigned)

        let server = try TLSTestServer.start(certificates.selfSigned)
        var options = TLSOptions()
        options.trust = .authorities([.file(certificates.selfSigned.certificate)])
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `an unknown authority is refused by name`() async throws {
        let certificates = Certificates()
        let error = try await Self.refusal(certificates.otherServer)
        #expect(error.code == .certificateUntrusted)
        #expect(error.message.contains("other-authority") && error.message.contains("the TLS options do not trust"))
        let bySystem = try await Self.refusal(certificates.server) { $0.trust = .system }
        #expect(bySystem.code == .certificateUntrusted)
        #expect(bySystem.message.contains("this system does not trust"))
    }

    #if os(Linux)
        /// As in an image of a container; in a process of its own, since OpenSSL reads the environment.
        @Test func `a system without any authority is not blamed on the server`() async {
            await #expect(processExitsWith: .success) {
                setenv("SSL_CERT_FILE", "/nowhere/cert.pem", 1)
                setenv("SSL_CERT_DIR", "/nowhere/certs", 1)
                let trusts: [TLSTrust] = [.system, .systemAnd([.file(Certificates().otherAuthority.certificate)])]
                for trust in trusts {
                    let error = try await TLSRefusalTests.refusal(Certificates().server) { $0.trust = trust }
                    #expect(error.code == .certificateUntrusted)
                    #expect(error.message.contains("ca-certificates"), "\(error.message)")
                    #expect(error.message.contains("/nowhere/cert.pem") && error.message.contains("SSL_CERT_FILE"))
                    #expect(!error.message.contains("intermediate"))
                }
                let error = try await TLSRefusalTests.refusal(Certificates().otherServer)
                #expect(error.message.contains("intermediate") && !error.message.contains("ca-certificates"))
            }
        }
    #endif

    @Test(arguments: ["localhost", "127.0.0.1", "::1"])
    func `a certificate for another name is refused with the names in it`(host: String) async throws {
        let error = try await Self.refusal(Certificates().wrongHost, host: host)
        #expect(error.code == .certificateNameMismatch)
        #expect(error.message.contains("elsewhere.example"))
    }

    @Test func `a certificate that names no host is not advised to be called by its names`() async throws {
        let pair = Certificates().selfSignedNameless
        let error = try await Self.refusal(pair) { $0.trust = .authorities([.file(pair.certificate)]) }
        #expect(error.code == .certificateNameMismatch)
        #expect(error.message.contains("names no host") && !error.message.contains("one of its names"))
    }

    @Test func `the name to verify can be another than the host`() async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.wrongHost)
        var options = TLSOptions.trusting(certificates)
        options.serverName = "elsewhere.example"
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `a server that knows nothing newer than TLS 1_1 is refused`() async throws {
        let error = try await Self.refusal(Certificates().server, version: .tls11)
        #expect(error.code == .tlsVersion)
    }

    @Test(arguments: [nil, TLSTestServer.Version.tls12])
    func `a missing client certificate is named`(version: TLSTestServer.Version?) async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) {
            $0.clientAuthority = certificates.authority.certificate
            $0.version = version
        }
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
        let contexts = TLSContexts(client: .trusting(Certificates()))
        for host in ["", ".", "[]", "a\0b", "bücher.example", ".example"] {
            #expect { try TLSLayer(client: contexts, host: host, port: 1) } throws: {
                ($0 as? TransportError)?.code == .tlsConfiguration
            }
        }
    }

    @Test func `everything is accepted only where the options say unsafe`() async throws {
        let certificates = Certificates()
        for pair in [certificates.expired, certificates.selfSigned, certificates.wrongHost, certificates.otherServer] {
            let server = try TLSTestServer.start(pair)
            var options = TLSOptions()
            options.verification = .unsafeAcceptAnyCertificate
            let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
            let stream = connection.stream
            EventLoop.shared.execute { stream.close() }
        }
    }
}

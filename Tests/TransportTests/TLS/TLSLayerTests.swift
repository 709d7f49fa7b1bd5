import Foundation
import MessagingWire
import TestSupport
import Testing
import Transport

/// Client and server side of the TLS layer back to back, without sockets.
@Suite(.turns)
struct TLSLayerTests {
    private func serverContexts(
        _ certificates: Certificates, _ change: (inout TLSServerOptions) -> Void = { _ in }
    ) -> TLSContexts {
        var options = TLSServerOptions(
            identity: TLSIdentity(
                certificates: .file(certificates.server.certificate), key: .file(certificates.server.key)))
        change(&options)
        return TLSContexts(server: options)
    }

    private func text(_ path: String) throws -> PEMSource {
        .text(try String(contentsOfFile: path, encoding: .utf8))
    }

    @Test(arguments: [1, 7, 1000, Int.max])
    func `carries bytes both ways, whatever the split`(pieceSize: Int) async throws {
        let certificates = Certificates()
        let pair = try LayerPair(
            client: TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1),
            server: TLSLayer(server: serverContexts(certificates)), pieceSize: pieceSize)
        try pair.exchange()
        #expect(pair.client.isOpen && pair.server.isOpen)
        var generator = SeededGenerator(seed: 7)
        let large = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        try pair.send(fromClient: large)
        try pair.send(fromServer: Array(large.reversed()))
        try pair.exchange()
        for _ in 0..<100 { try pair.send(fromClient: [1, 2, 3]) }
        try pair.exchange()
        #expect(pair.atServer == large + (0..<100).flatMap { _ in [1, 2, 3] as [UInt8] })
        #expect(pair.atClient == large.reversed())
        pair.closeClient()
        try pair.exchange()
        #expect(pair.server.isFinished && pair.client.isFinished)
        try pair.client.endReceived()
        try pair.server.endReceived()
    }

    @Test func `a cut is told from a good-bye`() async throws {
        let certificates = Certificates()
        let pair = try LayerPair(
            client: TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1),
            server: TLSLayer(server: serverContexts(certificates)))
        #expect(throws: TransportError.self) { try pair.client.endReceived() }
        try pair.exchange()
        #expect { try pair.client.endReceived() } throws: { ($0 as? TransportError)?.code == .tlsTruncated }
    }

    @Test func `what comes before the good-bye in one read is delivered`() async throws {
        let certificates = Certificates()
        let pair = try LayerPair(
            client: TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1),
            server: TLSLayer(server: serverContexts(certificates)))
        try pair.exchange()
        try pair.send(fromClient: Array("last words".utf8))
        pair.closeClient()
        try pair.exchange()
        #expect(pair.atServer == Array("last words".utf8))
        #expect(pair.server.isFinished)
    }

    @Test func `the engine's bytes do not leave before the server is verified`() async throws {
        let certificates = Certificates()
        let client = try TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "elsewhere", port: 1)
        let pair = try LayerPair(client: client, server: TLSLayer(server: serverContexts(certificates)))
        try pair.send(fromClient: Array("secret".utf8))
        #expect { try pair.exchange() } throws: { ($0 as? TransportError)?.code == .certificateNameMismatch }
        try pair.send(fromClient: Array("secret".utf8))
        try? pair.exchange()
        #expect(pair.atServer.isEmpty && !client.isOpen)
    }

    @Test func `the second connection continues the session of the first`() async throws {
        let certificates = Certificates()
        let (contexts, server) = (TLSContexts(client: .trusting(certificates)), serverContexts(certificates))
        for attempt in 0..<3 {
            let client = try TLSLayer(client: contexts, host: "localhost", port: 1)
            let pair = try LayerPair(client: client, server: TLSLayer(server: server))
            try pair.exchange()
            #expect(client.wasResumed == (attempt > 0))
        }
        // Another name is verified anew, and refused.
        let other = try TLSLayer(client: contexts, host: "elsewhere", port: 1)
        let pair = try LayerPair(client: other, server: TLSLayer(server: server))
        #expect(throws: TransportError.self) { try pair.exchange() }
        #expect(!other.isOpen)
    }

    @Test func `a server that ends the connection instead of continuing a session is never offered one again`()
        async throws
    {
        let certificates = Certificates()
        let folder = try ScratchDirectory("tls")
        let file = folder.file("authority.pem")
        let options = try TLSOptions.trustingCopy(of: certificates, at: file)
        let (contexts, server) = (TLSContexts(client: options), serverContexts(certificates))
        func connect() throws -> Bool {
            let client = try TLSLayer(client: contexts, host: "localhost", port: 1)
            let pair = try LayerPair(client: client, server: TLSLayer(server: server))
            try pair.exchange()
            return client.wasResumed
        }
        #expect(try !connect())
        let refused = try TLSLayer(client: contexts, host: "localhost", port: 1)
        var wire: [UInt8] = []
        try refused.opened(at: 0, wire: &wire)
        let error = try #require(throws: TransportError.self) { try refused.endReceived() }
        _ = contexts.reload(after: error)
        #expect(try !connect())
        #expect(try !connect())
        // With what was made of other files, as well.
        try folder.write(try String(contentsOfFile: file, encoding: .utf8) + "\n", to: "authority.pem")
        try await contexts.prepare()
        #expect(try !connect())
        #expect(try !connect())
    }

    @Test func `a server that ended a handshake without a session as well is offered sessions again`() throws {
        let certificates = Certificates()
        let (contexts, server) = (TLSContexts(client: .trusting(certificates)), serverContexts(certificates))
        func connect() throws -> Bool {
            let client = try TLSLayer(client: contexts, host: "localhost", port: 1)
            let pair = try LayerPair(client: client, server: TLSLayer(server: server))
            try pair.exchange()
            return client.wasResumed
        }
        func endInHandshake() throws {
            let client = try TLSLayer(client: contexts, host: "localhost", port: 1)
            var wire: [UInt8] = []
            try client.opened(at: 0, wire: &wire)
            let error = try #require(throws: TransportError.self) { try client.endReceived() }
            _ = contexts.reload(after: error)
        }
        #expect(try !connect())
        // It is being restarted: the session was not the reason.
        for _ in 0..<2 { try endInHandshake() }
        #expect(try !connect())
        #expect(try connect())
        // Without the session it accepted: what happens later does not change that.
        try endInHandshake()
        #expect(try !connect())
        try endInHandshake()
        for _ in 0..<2 { #expect(try !connect()) }
    }

    @Test(arguments: [true, false], [true, false])
    func `shows its certificate, from file or memory, with a plain or an encrypted key`(
        inMemory: Bool, encrypted: Bool
    ) async throws {
        let certificates = Certificates()
        func source(_ path: String) throws -> PEMSource { inMemory ? try text(path) : .file(path) }
        var options = TLSOptions()
        options.trust = .authorities([try source(certificates.authority.certificate)])
        options.identity = TLSIdentity(
            certificates: try source(certificates.client.certificate),
            key: try source(encrypted ? certificates.encryptedClientKey : certificates.client.key),
            passphrase: encrypted ? certificates.passphrase : nil)
        let authority = try source(certificates.authority.certificate)
        let server = serverContexts(certificates) { $0.clientAuthorities = [authority] }
        let pair = try LayerPair(
            client: TLSLayer(client: TLSContexts(client: options), host: "localhost", port: 1),
            server: TLSLayer(server: server))
        try pair.exchange()
        #expect(pair.client.isOpen && pair.server.isOpen)
    }

    @Test func `the server refuses a client without a certificate or with somebody else's`() async throws {
        let certificates = Certificates()
        let server = serverContexts(certificates) {
            $0.clientAuthorities = [.file(certificates.otherAuthority.certificate)]
        }
        var withCertificate = TLSOptions.trusting(certificates)
        withCertificate.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
        for options in [.trusting(certificates), withCertificate] {
            let pair = try LayerPair(
                client: TLSLayer(client: TLSContexts(client: options), host: "localhost", port: 1),
                server: TLSLayer(server: server))
            #expect(throws: TransportError.self) { try pair.exchange() }
            #expect(!pair.server.isOpen)
            // The server's alert reaches the client.
            #expect { try pair.exchange() } throws: { ($0 as? TransportError)?.code == .clientCertificateRefused }
        }
    }

    @Test func `mistakes in the options are named before anything is opened`() async throws {
        let certificates = Certificates()
        let (certificate, key) = (
            PEMSource.file(certificates.client.certificate), PEMSource.file(certificates.client.key)
        )
        let encrypted = PEMSource.file(certificates.encryptedClientKey)
        let mistakes: [(String, TLSIdentity)] = [
            ("does not belong", TLSIdentity(certificates: certificate, key: .file(certificates.server.key))),
            ("No such file", TLSIdentity(certificates: certificate, key: .file("/nowhere/key.pem"))),
            ("No such file", TLSIdentity(certificates: .file("/nowhere/certificate.pem"), key: key)),
            ("contains no certificate", TLSIdentity(certificates: key, key: key)),
            ("contains no private key", TLSIdentity(certificates: certificate, key: certificate)),
            ("is encrypted", TLSIdentity(certificates: certificate, key: encrypted)),
            ("passphrase is wrong", TLSIdentity(certificates: certificate, key: encrypted, passphrase: "guess")),
            ("contains no private key", TLSIdentity(certificates: certificate, key: .text("nonsense"))),
        ]
        for (words, identity) in mistakes {
            var options = TLSOptions.trusting(certificates)
            options.identity = identity
            #expect(Comment(rawValue: words)) {
                try TLSLayer(client: TLSContexts(client: options), host: "localhost", port: 1)
            } throws: {
                guard let error = $0 as? TransportError else { return false }
                return error.code == .tlsConfiguration && error.message.contains(words)
            }
        }
        var options = TLSOptions()
        options.trust = .authorities([.text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")])
        #expect { try TLSLayer(client: TLSContexts(client: options), host: "localhost", port: 1) } throws: {
            ($0 as? TransportError)?.code == .tlsConfiguration
        }
    }

    @Test func `a machine without the library names the package to install`() async throws {
        var options = TLSOptions()
        for path in ["/nowhere/libssl.so.3", "libm.so.6"] {
            options.libraryPath = path
            #expect { try TLSLayer(client: TLSContexts(client: options), host: "localhost", port: 1) } throws: {
                guard let error = $0 as? TransportError else { return false }
                return error.code == .tlsUnavailable && error.message.contains("libssl3")
            }
        }
    }

    @Test func `a server that speaks no TLS is told apart`() async throws {
        let certificates = Certificates()
        for words in ["ERROR\nmessage:no\n\n\0", "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{20}\u{2}\0\u{5}"] {
            let client = try TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1)
            var (plain, wire): ([UInt8], [UInt8]) = ([], [])
            try client.opened(at: 0, wire: &wire)
            var failure: TransportError?
            do throws(TransportError) {
                try client.receive(Array(words.utf8).span.bytes, at: 0, plain: &plain, wire: &wire)
                try client.endReceived()
            } catch {
                failure = error
            }
            #expect(failure?.code == .notTLS || failure?.code == .tlsFailed)
        }
    }

    @Test func `a server that ends the connection instead of beginning TLS is left for a URL without TLS`() throws {
        let client = try TLSLayer(client: TLSContexts(client: .trusting(Certificates())), host: "localhost", port: 1)
        var wire: [UInt8] = []
        try client.opened(at: 0, wire: &wire)
        #expect {
            try client.endReceived()
        } throws: { error in
            let error = error as? TransportError
            return error?.code == .notTLS
                && error?.message.hasSuffix("Use its port for TLS, or a URL without TLS.") == true
        }
    }

    /// Heads of records that no TLS connection has: of 64 KB, of another version, of HTTP.
    @Test(arguments: [
        [0x17, 3, 3, 0xFF, 0xFF] as [UInt8], [0x17, 9, 9, 0, 32], Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
    ])
    func `a server that breaks TLS after the handshake is not said to speak none`(head: [UInt8]) async throws {
        let certificates = Certificates()
        let client = try TLSLayer(client: TLSContexts(client: .trusting(certificates)), host: "localhost", port: 1)
        let pair = try LayerPair(client: client, server: TLSLayer(server: serverContexts(certificates)))
        try pair.exchange()
        #expect(client.isOpen)
        let record = head + [UInt8](repeating: 0, count: 65_535)
        var (plain, wire): ([UInt8], [UInt8]) = ([], [])
        #expect {
            try client.receive(record.span.bytes, at: 0, plain: &plain, wire: &wire)
        } throws: { error in
            let error = error as? TransportError
            return error?.code == .tlsFailed && error?.message.contains("after the handshake") == true
        }
        #expect(plain.isEmpty)
    }

    @Test func `damaged bytes end the connection with an error, and nothing is delivered`() async throws {
        let certificates = Certificates()
        let (contexts, server) = (TLSContexts(client: .trusting(certificates)), serverContexts(certificates))
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<50 {
            let client = try TLSLayer(client: contexts, host: "localhost", port: 1)
            let pair = try LayerPair(client: client, server: TLSLayer(server: server))
            try pair.exchange()
            let noise = (0..<500).map { _ in UInt8.random(in: 0...255, using: &generator) }
            var (plain, wire): ([UInt8], [UInt8]) = ([], [])
            try? client.receive(noise.span.bytes, at: 0, plain: &plain, wire: &wire)
            #expect(plain.isEmpty)
        }
    }
}

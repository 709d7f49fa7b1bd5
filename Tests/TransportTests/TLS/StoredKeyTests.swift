import Foundation
import TestSupport
import Testing

@testable import Transport

/// Private keys that OpenSSL's stores and engines hold.
@Suite(.turns)
struct StoredKeyTests {
    private let certificates = Certificates()

    /// Shows the client's certificate with this key to a server that demands it.
    private static func connect(key: String, pin: String? = nil) async throws {
        let certificates = Certificates()
        let server = try TLSTestServer.start(certificates.server) {
            $0.clientAuthority = certificates.authority.certificate
            // Here the server's refusal comes in the handshake.
            $0.version = .tls12
        }
        var options = TLSOptions.trusting(certificates)
        options.identity = .stored(key: key, certificates: .file(certificates.client.certificate), pin: pin)
        let connection = try await connectTLS(port: server.port, contexts: TLSContexts(client: options))
        let stream = connection.stream
        EventLoop.shared.execute { stream.close() }
    }

    @Test func `a key is found by the URI of a store`() async throws {
        try await Self.connect(key: "file:" + certificates.client.key)
        try await Self.connect(key: "file:" + certificates.encryptedClientKey, pin: certificates.passphrase)
    }

    @Test(arguments: [
        ("file:/nowhere/at/all", "Check the URI"), ("org.openssl.engine:nonsense:key", "no engine 'nonsense'"),
        ("org.openssl.engine:", "name of an engine"), ("nonsense:key", "Check the URI"),
    ])
    func `a key that is not found has an error that says what to do`(uri: String, words: String) async throws {
        let error = await #expect(throws: TransportError.self) { try await Self.connect(key: uri) }
        #expect(error?.code == .tlsConfiguration)
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
    }

    @Test func `a key in a file needs the passphrase, and that of another certificate is refused`() async throws {
        for pin in [nil, "guess"] {
            let error = await #expect(throws: TransportError.self) {
                try await Self.connect(key: "file:" + certificates.encryptedClientKey, pin: pin)
            }
            #expect(error?.message.contains("pin") == true, "\(String(describing: error))")
        }
        let error = await #expect(throws: TransportError.self) {
            try await Self.connect(key: "file:" + certificates.server.key)
        }
        #expect(error?.message.contains("does not belong") == true)
    }

    #if os(Linux)
        private static let engine = "/usr/lib/\(architecture)-linux-gnu/engines-3/pkcs11.so"
        private static let module = "/usr/lib/softhsm/libsofthsm2.so"
        #if arch(x86_64)
            private static let architecture = "x86_64"
        #else
            private static let architecture = "aarch64"
        #endif
        private static var hasToken: Bool {
            [engine, module, "/usr/bin/softhsm2-util"].allSatisfy { FileManager.default.fileExists(atPath: $0) }
        }

        /// A token of software, which behaves as one of hardware does: the key does not leave it. In a process of its own,
        /// since the modules read the environment.
        @Test(.enabled(if: hasToken, "softhsm2 and libengine-pkcs11-openssl are not installed"))
        func `a key in a token signs the handshake`() async {
            await #expect(processExitsWith: .success) {
                let scratch = try ScratchDirectory("token")
                try FileManager.default.createDirectory(
                    atPath: scratch.file("tokens"), withIntermediateDirectories: false)
                setenv(
                    "SOFTHSM2_CONF",
                    try scratch.write("directories.tokendir = \(scratch.file("tokens"))\n", to: "softhsm2.conf"), 1)
                setenv("PKCS11_MODULE_PATH", StoredKeyTests.module, 1)
                try await Tool.run(
                    "softhsm2-util",
                    ["--init-token", "--free", "--label", "meter", "--so-pin", "1234", "--pin", "5678"]
                ).requireSuccess()
                try await Tool.run(
                    "softhsm2-util",
                    [
                        "--import", Certificates().client.key, "--token", "meter", "--label", "key", "--id", "01",
                        "--pin",
                        "5678",
                    ]
                ).requireSuccess()
                let uri = "org.openssl.engine:pkcs11:pkcs11:token=meter;object=key;type=private"
                // A wrong PIN first: it must not be remembered.
                for pin in ["1111", nil] {
                    let error = await #expect(throws: TransportError.self) {
                        try await StoredKeyTests.connect(key: uri, pin: pin)
                    }
                    #expect(error?.code == .tlsConfiguration)
                }
                for _ in 0..<2 { try await StoredKeyTests.connect(key: uri, pin: "5678") }
                try await StoredKeyTests.connect(key: uri + "?pin-value=5678")
            }
        }
    #endif
}

#if canImport(Network)
    import Foundation
    import TestSupport
    import Testing

    @testable import Transport

    /// Private keys in PEM, and the PKCS #12 containers that Apple's systems get instead: read by OpenSSL's own programs.
    @Suite(.requires(program: "openssl"), .turns)
    struct PrivateKeyTests {
        struct Form: Sendable, CustomTestStringConvertible {
            let testDescription: String
            /// Arguments that write the key in PEM to standard output, from the file `plain.key` in PKCS #8.
            let arguments: [String]
            var passphrase: String?
        }

        static let forms =
            [
                Form(testDescription: "PKCS #8", arguments: ["pkey", "-in", "plain.key"]),
                Form(testDescription: "traditional", arguments: ["pkey", "-in", "plain.key", "-traditional"]),
            ]
            + [
                ["-v2", "aes-256-cbc"], ["-v2", "aes-192-cbc"], ["-v2", "aes-128-cbc"], ["-v2", "des3"],
                ["-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA1"], ["-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA224"],
                ["-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA384"], ["-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA512"],
                ["-v2", "aes-128-cbc", "-iter", "100000"],
            ].map {
                Form(
                    testDescription: $0.joined(separator: " "),
                    arguments: ["pkcs8", "-topk8", "-in", "plain.key", "-passout", "pass:Öl und \u{1F511}"] + $0,
                    passphrase: "Öl und \u{1F511}")
            }

        private static let kinds = [
            ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        ]

        private func openssl(_ arguments: [String], in scratch: ScratchDirectory) async throws -> String {
            try await Tool.run("openssl", arguments, directory: scratch.path).requireSuccess().text
        }

        /// A key in the file `plain.key`, and its certificate signed by itself in `certificate.pem`.
        private func makeIdentity(_ kind: [String]) async throws -> ScratchDirectory {
            let scratch = try ScratchDirectory("private-keys")
            _ = try await openssl(["genpkey"] + kind + ["-out", "plain.key"], in: scratch)
            _ = try await openssl(
                [
                    "req", "-x509", "-new", "-key", "plain.key", "-subj", "/CN=device", "-days", "30", "-out",
                    "certificate.pem",
                ], in: scratch)
            return scratch
        }

        @Test(arguments: kinds)
        func `every form of a key becomes a container that OpenSSL reads`(kind: [String]) async throws {
            let scratch = try await makeIdentity(kind)
            let plain = try await openssl(["pkey", "-in", "plain.key"], in: scratch)
            let certificate = try await openssl(["x509", "-in", "certificate.pem"], in: scratch)
            for form in Self.forms {
                let pem = try await openssl(form.arguments, in: scratch)
                let key = try PrivateKey(.text(pem), passphrase: form.passphrase)
                let chain = try PEMSource.file(scratch.file("certificate.pem")).certificates("certificate")
                let container = PKCS12(key: key, certificates: chain, passphrase: PKCS12.randomPassphrase())
                let bytes = try #require(container.encoded())
                try Data(bytes).write(to: URL(fileURLWithPath: scratch.file("container.p12")))
                let read = ["pkcs12", "-in", "container.p12", "-passin", "pass:\(container.passphrase)", "-nodes"]
                // The program writes the attributes in front of each part.
                let keys = try await openssl(read + ["-nocerts"], in: scratch)
                #expect(keys.contains("localKeyID: 01"), "\(form.testDescription)")
                _ = try scratch.write(keys, to: "read.key")
                #expect(
                    try await openssl(["pkey", "-in", "read.key"], in: scratch) == plain, "\(form.testDescription)")
                let certificates = try await openssl(read + ["-nokeys", "-clcerts"], in: scratch)
                #expect(certificates.contains(certificate), "\(form.testDescription)")
                #expect(certificates.contains("localKeyID: 01"))
                let wrong = try await Tool.run(
                    "openssl", ["pkcs12", "-in", "container.p12", "-passin", "pass:guess", "-nodes"],
                    directory: scratch.path)
                #expect(!wrong.succeeded)
            }
        }

        @Test func `what cannot be read is named, and what to do about it`() async throws {
            let scratch = try await makeIdentity(Self.kinds[1])
            func failure(_ arguments: [String], _ passphrase: String?) async throws -> String {
                let pem = try await openssl(arguments, in: scratch)
                let error = #expect(throws: TransportError.self) {
                    _ = try PrivateKey(.text(pem), passphrase: passphrase)
                }
                #expect(error?.code == .tlsConfiguration)
                return error?.message ?? ""
            }
            let encrypted = ["pkcs8", "-topk8", "-in", "plain.key", "-passout", "pass:sesame"]
            #expect(try await failure(encrypted, nil).contains("is encrypted. Set the identity's passphrase"))
            #expect(try await failure(encrypted, "guess").contains("passphrase is wrong"))
            let old = ["pkey", "-in", "plain.key", "-traditional", "-aes128", "-passout", "pass:sesame"]
            #expect(try await failure(old, "sesame").contains("openssl pkcs8 -topk8"))
            let first = encrypted + ["-v1", "PBE-SHA1-3DES"]
            #expect(try await failure(first, "sesame").contains("openssl pkcs8 -topk8"))
            #expect(try await failure(["x509", "-in", "certificate.pem"], nil).contains("contains no private key"))
            let other = ["genpkey", "-algorithm", "ED25519"]
            #expect(try await failure(other, nil).contains("elliptic curve"))
        }

        @Test(arguments: kinds) func `a damaged key throws and never traps`(kind: [String]) async throws {
            let scratch = try await makeIdentity(kind)
            var random = SeededGenerator(seed: 24)
            for form in [0, 1, 2].map({ Self.forms[$0] }) {
                let pem = try await openssl(form.arguments, in: scratch)
                for _ in 0..<200 {
                    var bytes = Array(pem.utf8)
                    for _ in 0..<Int.random(in: 1...4, using: &random) {
                        bytes[Int.random(in: 30..<bytes.count, using: &random)] = .random(in: 32...126, using: &random)
                    }
                    if Bool.random(using: &random) { bytes.removeLast(.random(in: 0..<bytes.count, using: &random)) }
                    _ = try? PrivateKey(.bytes(bytes), passphrase: form.passphrase)
                }
            }
        }
    }
#endif

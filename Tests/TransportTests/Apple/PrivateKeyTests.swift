#if canImport(Network)
    import Foundation
    import TestSupport
    import Testing

    @testable import Transport

    /// Private keys in PEM, and the PKCS #12 containers that Apple's systems get instead. Over fakes OpenSSL reads these.
    @Suite(.turns)
    struct PrivateKeyTests {
        private static let passphrase = "Öl und \u{1F511}"
        private static let kinds = ["rsa", "p256"]
        private static let unencryptedForms = ["plain", "traditional"]
        private static let encryptedForms = [
            "aes-256", "aes-192", "aes-128", "triple-des", "sha-1", "sha-224", "sha-384", "sha-512", "many-iterations",
        ]

        private func key(_ kind: String, _ form: String) -> PEMSource {
            .file(Certificates().keyFile("\(kind)-\(form).key"))
        }

        private func certificate(_ kind: String) -> PEMSource { .file(Certificates().keyFile("\(kind).pem")) }

        private func message(_ body: () throws(TransportError) -> Void) -> String {
            do throws(TransportError) {
                try body()
                return "no error"
            } catch {
                #expect(error.code == .tlsConfiguration)
                return error.message
            }
        }

        @Test(arguments: kinds, encryptedForms)
        func `an encrypted key is the one that was encrypted`(kind: String, form: String) throws {
            let plain = try PrivateKey(key(kind, "plain"), passphrase: nil)
            #expect(try PrivateKey(key(kind, form), passphrase: Self.passphrase).encoded == plain.encoded)
        }

        @Test(arguments: kinds, unencryptedForms + encryptedForms)
        func `every form of a key becomes an identity that the system imports`(kind: String, form: String) throws {
            let passphrase = Self.unencryptedForms.contains(form) ? nil : Self.passphrase
            // Fails unless the imported key belongs to the certificate.
            _ = try TLSIdentity(certificates: certificate(kind), key: key(kind, form), passphrase: passphrase)
                .forNetwork()
        }

        @Test(arguments: kinds)
        func `a container opens with its passphrase only, and marks what belongs together`(kind: String) throws {
            let container = PKCS12(
                key: try PrivateKey(key(kind, "plain"), passphrase: nil),
                certificates: try certificate(kind).certificates("certificate"), passphrase: PKCS12.randomPassphrase())
            let bytes = try #require(container.encoded())
            _ = try TLSIdentity.pkcs12(.bytes(bytes), passphrase: container.passphrase).forNetwork()
            let refusal = message { () throws(TransportError) in
                _ = try TLSIdentity.pkcs12(.bytes(bytes), passphrase: "guess").forNetwork()
            }
            #expect(refusal.contains("passphrase is wrong"))
            // The name localKeyID of RFC 2985 with the value 1, in the bags of the key and of the certificate.
            let mark: [UInt8] = [6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 9, 0x15, 0x31, 3, 4, 1, 1]
            #expect(bytes.indices.count { bytes[$0...].starts(with: mark) } == 2)
        }

        @Test(arguments: [
            ("p256-aes-256.key", nil, "is encrypted. Set the identity's passphrase"),
            ("p256-aes-256.key", "guess", "passphrase is wrong"),
            ("old-encryption.key", passphrase, "openssl pkcs8 -topk8"),
            ("pbes1.key", passphrase, "openssl pkcs8 -topk8"),
            ("p256.pem", nil, "contains no private key"),
            ("ed25519.key", nil, "elliptic curve"),
        ])
        func `what cannot be read is named, and what to do about it`(file: String, passphrase: String?, advice: String)
        {
            let refusal = message { () throws(TransportError) in
                _ = try PrivateKey(.file(Certificates().keyFile(file)), passphrase: passphrase)
            }
            #expect(refusal.contains(advice), "\(refusal)")
        }

        @Test(arguments: kinds, ["plain", "traditional", "aes-256"])
        func `a damaged key throws and never traps`(kind: String, form: String) throws {
            var random = SeededGenerator(seed: 24)
            let path = Certificates().keyFile("\(kind)-\(form).key")
            let pem = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
            for _ in 0..<200 {
                var bytes = pem
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    bytes[Int.random(in: 30..<bytes.count, using: &random)] = .random(in: 32...126, using: &random)
                }
                if Bool.random(using: &random) { bytes.removeLast(.random(in: 0..<bytes.count, using: &random)) }
                _ = try? PrivateKey(.bytes(bytes), passphrase: Self.passphrase)
            }
        }
    }
#endif

#if canImport(Network)
    /// A private key of RSA or of an elliptic curve, as PKCS #8 (RFC 5958).
    struct PrivateKey {
        /// PrivateKeyInfo.
        let encoded: [UInt8]

        /// Reads the first private key of a text in PEM, in any of the forms that OpenSSL writes.
        ///
        /// - Throws: `tlsConfiguration`.
        init(_ source: PEMSource, passphrase: String?) throws(TransportError) {
            let lines = try source.lines(of: source.read("private key"), "private key")
            let blocks = PEMBlock.all(in: lines) { $0.hasSuffix("PRIVATE KEY") }
            guard let block = blocks?.first else {
                throw source.unusableKey(passphrase: passphrase, "its Base64 is not complete")
            }
            guard !block.hasHeaders else {
                throw TransportError(
                    .tlsConfiguration,
                    "\(source) is encrypted in OpenSSL's old format, which this system cannot decrypt. Convert it by "
                        + "'openssl pkcs8 -topk8 -v2 aes-256-cbc'.")
            }
            let key: [UInt8]?
            switch block.label {
            case "ENCRYPTED PRIVATE KEY":
                guard let passphrase else { throw source.unusableKey(passphrase: nil, "") }
                key = try Self.decrypted(block.bytes, passphrase, source)
            case "RSA PRIVATE KEY": key = Self.wrapped(rsa: block.bytes)
            case "EC PRIVATE KEY": key = Self.wrapped(curve: block.bytes)
            default: key = block.bytes
            }
            guard let key, Self.isPrivateKeyInfo(key) else {
                throw source.unusableKey(passphrase: passphrase, "it is not a key of RSA or of an elliptic curve")
            }
            encoded = key
        }

        /// PKCS #1 (RFC 8017 appendix A.1.2) inside PKCS #8.
        private static func wrapped(rsa key: [UInt8]) -> [UInt8] {
            DER.element(
                DER.sequence, DER.number(0), DER.algorithm(ASN1Name.rsa), DER.element(DER.octetString, key))
        }

        /// RFC 5915 inside PKCS #8. The curve is a field of the key there, and the algorithm's parameter here.
        private static func wrapped(curve key: [UInt8]) -> [UInt8]? {
            var reader = DERReader(key)
            guard var fields = reader.inside(DER.sequence), fields.number() == 1, fields.next(DER.octetString) != nil,
                var parameters = fields.inside(DER.field(0)), let curve = parameters.next(DER.identifier)
            else { return nil }
            return DER.element(
                DER.sequence, DER.number(0),
                DER.element(DER.sequence, DER.name(ASN1Name.ellipticCurve), DER.name(Array(curve))),
                DER.element(DER.octetString, key))
        }

        private static func isPrivateKeyInfo(_ bytes: [UInt8]) -> Bool {
            var reader = DERReader(bytes)
            guard var fields = reader.inside(DER.sequence), fields.number() != nil,
                var algorithm = fields.inside(DER.sequence), let name = algorithm.next(DER.identifier),
                fields.next(DER.octetString) != nil
            else { return false }
            return Array(name) == ASN1Name.rsa || Array(name) == ASN1Name.ellipticCurve
        }

        /// EncryptedPrivateKeyInfo by PBES2 (RFC 8018 appendix A.4), which OpenSSL has written since version 1.1.
        private static func decrypted(
            _ bytes: [UInt8], _ passphrase: String, _ source: PEMSource
        ) throws(TransportError) -> [UInt8] {
            var reader = DERReader(bytes)
            guard var fields = reader.inside(DER.sequence), var algorithm = fields.inside(DER.sequence),
                let scheme = algorithm.next(DER.identifier), let secret = fields.next(DER.octetString)
            else { throw source.unusableKey(passphrase: passphrase, "it is not complete") }
            guard Array(scheme) == ASN1Name.pbes2, var parameters = algorithm.inside(DER.sequence),
                let encryption = SystemCrypto.PBES2(&parameters)
            else {
                throw TransportError(
                    .tlsConfiguration,
                    "\(source) is encrypted by a method that this system cannot decrypt: PBES2 with PBKDF2 and AES or "
                        + "triple DES is possible. Convert it by 'openssl pkcs8 -topk8 -v2 aes-256-cbc'.")
            }
            guard let key = encryption.decrypt(Array(secret), passphrase), isPrivateKeyInfo(key) else {
                throw source.unusableKey(passphrase: passphrase, "it cannot be decrypted")
            }
            return key
        }
    }

    extension SystemCrypto.PBES2 {
        /// As many as a file may ask for; OpenSSL writes 2,048.
        private static var maximumIterations: Int { 10_000_000 }

        /// PBES2-params; nil for methods that the system does not have.
        fileprivate init?(_ parameters: inout DERReader) {
            guard var derivation = parameters.inside(DER.sequence),
                let function = derivation.next(DER.identifier), Array(function) == ASN1Name.pbkdf2,
                var values = derivation.inside(DER.sequence), let salt = values.next(DER.octetString),
                let iterations = values.number(), (1...Self.maximumIterations).contains(iterations),
                var encryption = parameters.inside(DER.sequence), let cipher = encryption.next(DER.identifier),
                let vector = encryption.next(DER.octetString)
            else { return nil }
            // The length of the key, which the cipher has fixed.
            if values.nextTag == DER.integer { _ = values.number() }
            var hashName = ASN1Name.hmacWithSHA1
            if var algorithm = values.inside(DER.sequence), let name = algorithm.next(DER.identifier) {
                hashName = Array(name)
            }
            let hash: SystemCrypto.Hash
            switch hashName {
            case ASN1Name.hmacWithSHA1: hash = .sha1
            case ASN1Name.hmac(8): hash = .sha224
            case ASN1Name.hmacWithSHA256: hash = .sha256
            case ASN1Name.hmac(10): hash = .sha384
            case ASN1Name.hmac(11): hash = .sha512
            default: return nil
            }
            let method: SystemCrypto.Cipher
            switch Array(cipher) {
            case ASN1Name.aes128: method = .aes128
            case ASN1Name.aes192: method = .aes192
            case ASN1Name.aes256: method = .aes256
            case ASN1Name.tripleDES: method = .tripleDES
            default: return nil
            }
            self.init(
                salt: Array(salt), iterations: iterations, hash: hash, cipher: method, vector: Array(vector))
        }
    }
#endif

#if canImport(Network)
    /// Writes a PKCS #12 container (RFC 7292), the one form in which every system of Apple's takes a private key without
    /// the keychain. It exists in memory only, between the files in PEM and `SecPKCS12Import`.
    ///
    /// The key is encrypted as Apple's importer and OpenSSL both read it: PBES2 with PBKDF2 (HMAC with SHA-256) and AES-256 in
    /// CBC. The certificates are not encrypted. The whole is authenticated by an HMAC with SHA-256.
    struct PKCS12 {
        let key: PrivateKey
        /// In DER; the key's own first.
        let certificates: [[UInt8]]
        let passphrase: String

        /// Made anew for each container.
        static func randomPassphrase() -> String {
            var generator = SystemRandomNumberGenerator()
            return (0..<4).map { _ in String(generator.next(), radix: 36) }.joined(separator: "-")
        }

        /// Few: the passphrase is random, and the container is not kept.
        private static let iterations = 2_048

        /// Nil if the system refuses to encrypt.
        func encoded() -> [UInt8]? {
            guard let shrouded = shroudedKey() else { return nil }
            let certificates = certificates.enumerated().map { index, der in
                bag(
                    ASN1Name.certificateBag,
                    DER.element(
                        DER.sequence, DER.name(ASN1Name.x509Certificate),
                        DER.element(DER.field(0), DER.element(DER.octetString, der))),
                    isOfKey: index == 0)
            }
            let keys = bag(ASN1Name.shroudedKeyBag, shrouded, isOfKey: true)
            let safe = DER.element(
                DER.sequence, contents(DER.element(DER.sequence, Array(certificates.joined()))),
                contents(DER.element(DER.sequence, keys)))
            let salt = Self.random(16)
            let digest = SystemCrypto.hmac(
                safe, key: SystemCrypto.pkcs12Key(passphrase, salt: salt, iterations: Self.iterations))
            return DER.element(
                DER.sequence, DER.number(3), contents(safe),
                DER.element(
                    DER.sequence,
                    DER.element(
                        DER.sequence, DER.algorithm(ASN1Name.sha256), DER.element(DER.octetString, digest)),
                    DER.element(DER.octetString, salt), DER.number(Self.iterations)))
        }

        /// ContentInfo of the type data.
        private func contents(_ bytes: [UInt8]) -> [UInt8] {
            DER.element(
                DER.sequence, DER.name(ASN1Name.data),
                DER.element(DER.field(0), DER.element(DER.octetString, bytes)))
        }

        /// A SafeBag; key and certificate belong together if they have the same localKeyID.
        private func bag(_ kind: [UInt8], _ value: [UInt8], isOfKey: Bool) -> [UInt8] {
            let attribute = DER.element(
                DER.sequence, DER.name(ASN1Name.localKeyID),
                DER.element(DER.set, DER.element(DER.octetString, [1])))
            return DER.element(
                DER.sequence, DER.name(kind), DER.element(DER.field(0), value),
                isOfKey ? DER.element(DER.set, attribute) : [])
        }

        /// EncryptedPrivateKeyInfo.
        private func shroudedKey() -> [UInt8]? {
            let (salt, vector) = (Self.random(16), Self.random(16))
            let secret = SystemCrypto.PBES2(
                salt: salt, iterations: Self.iterations, hash: .sha256, cipher: .aes256, vector: vector)
            guard let encrypted = secret.encrypt(key.encoded, passphrase) else { return nil }
            let derivation = DER.element(
                DER.sequence, DER.name(ASN1Name.pbkdf2),
                DER.element(
                    DER.sequence, DER.element(DER.octetString, salt), DER.number(Self.iterations),
                    DER.algorithm(ASN1Name.hmacWithSHA256)))
            let cipher = DER.element(
                DER.sequence, DER.name(ASN1Name.aes256), DER.element(DER.octetString, vector))
            return DER.element(
                DER.sequence,
                DER.element(
                    DER.sequence, DER.name(ASN1Name.pbes2), DER.element(DER.sequence, derivation, cipher)),
                DER.element(DER.octetString, encrypted))
        }

        private static func random(_ count: Int) -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in .random(in: 0...255, using: &generator) }
        }
    }
#endif

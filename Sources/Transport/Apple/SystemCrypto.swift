#if canImport(Network)
    import CommonCrypto

    /// The system's own ciphers, for private keys in PEM and for PKCS #12.
    enum SystemCrypto {
        enum Hash {
            case sha1, sha224, sha256, sha384, sha512

            fileprivate var function: CCPseudoRandomAlgorithm {
                switch self {
                case .sha1: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA1)
                case .sha224: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA224)
                case .sha256: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA256)
                case .sha384: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA384)
                case .sha512: CCPseudoRandomAlgorithm(kCCPRFHmacAlgSHA512)
                }
            }
        }

        /// A cipher in CBC with the padding of PKCS #7.
        enum Cipher {
            case aes128, aes192, aes256, tripleDES

            var keySize: Int {
                switch self {
                case .aes128: kCCKeySizeAES128
                case .aes192: kCCKeySizeAES192
                case .aes256: kCCKeySizeAES256
                case .tripleDES: kCCKeySize3DES
                }
            }
            var blockSize: Int { self == .tripleDES ? kCCBlockSize3DES : kCCBlockSizeAES128 }
            fileprivate var algorithm: CCAlgorithm {
                CCAlgorithm(self == .tripleDES ? kCCAlgorithm3DES : kCCAlgorithmAES)
            }
        }

        /// Encryption with a passphrase (RFC 8018 section 6.2) by PBKDF2.
        struct PBES2 {
            let salt: [UInt8]
            let iterations: Int
            let hash: Hash
            let cipher: Cipher
            let vector: [UInt8]

            func encrypt(_ bytes: [UInt8], _ passphrase: String) -> [UInt8]? {
                run(CCOperation(kCCEncrypt), bytes, passphrase)
            }

            /// Nil for a wrong passphrase, nearly always: the padding alone tells.
            func decrypt(_ bytes: [UInt8], _ passphrase: String) -> [UInt8]? {
                run(CCOperation(kCCDecrypt), bytes, passphrase)
            }

            private func run(_ operation: CCOperation, _ bytes: [UInt8], _ passphrase: String) -> [UInt8]? {
                guard vector.count == cipher.blockSize, let iterations = UInt32(exactly: iterations) else { return nil }
                // Safe: all buffers are passed with their sizes, for the time of the calls.
                var key = [UInt8](repeating: 0, count: cipher.keySize)
                defer { for index in key.indices { key[index] = 0 } }
                let derived = unsafe CCKeyDerivationPBKDF(
                    CCPBKDFAlgorithm(kCCPBKDF2), passphrase, passphrase.utf8.count, salt, salt.count, hash.function,
                    iterations, &key, key.count)
                guard derived == CCStatus(kCCSuccess) else { return nil }
                var output = [UInt8](repeating: 0, count: bytes.count + cipher.blockSize)
                let room = output.count
                var count = 0
                let status = unsafe CCCrypt(
                    operation, cipher.algorithm, CCOptions(kCCOptionPKCS7Padding), key, key.count, vector, bytes,
                    bytes.count, &output, room, &count)
                guard status == CCCryptorStatus(kCCSuccess) else { return nil }
                return Array(output.prefix(count))
            }
        }

        /// HMAC with SHA-256.
        static func hmac(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
            var digest = [UInt8](repeating: 0, count: Int(CC_SHA256_DIGEST_LENGTH))
            unsafe CCHmac(CCHmacAlgorithm(kCCHmacAlgSHA256), key, key.count, bytes, bytes.count, &digest)
            return digest
        }

        /// The key that authenticates a PKCS #12 container, of SHA-256 (RFC 7292 appendix B.2 with the number 3): as long
        /// as a digest, so that one round of the appendix is enough.
        static func pkcs12Key(_ passphrase: String, salt: [UInt8], iterations: Int) -> [UInt8] {
            let blockSize = 64
            // A BMPString with the two zero bytes of its end.
            let secret = (Array(passphrase.utf16) + [0]).flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
            var digest =
                [UInt8](repeating: 3, count: blockSize) + filled(salt, blockSize) + filled(secret, blockSize)
            for _ in 0..<iterations { digest = sha256(digest) }
            return digest
        }

        /// The bytes, again and again, up to whole blocks.
        private static func filled(_ bytes: [UInt8], _ blockSize: Int) -> [UInt8] {
            let count = (bytes.count + blockSize - 1) / blockSize * blockSize
            return (0..<count).map { bytes[$0 % bytes.count] }
        }

        static func sha256(_ bytes: [UInt8]) -> [UInt8] {
            var digest = [UInt8](repeating: 0, count: Int(CC_SHA256_DIGEST_LENGTH))
            _ = unsafe CC_SHA256(bytes, CC_LONG(bytes.count), &digest)
            return digest
        }
    }
#endif

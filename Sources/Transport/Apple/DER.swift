#if canImport(Network)
    /// Distinguished encoding of ASN.1 (X.690), as far as private keys and PKCS #12 need it.
    extension DER {
        static func element(_ tag: UInt8, _ parts: [UInt8]...) -> [UInt8] {
            let content = Array(parts.joined())
            var bytes = [tag]
            if content.count < 0x80 {
                bytes.append(UInt8(content.count))
            } else {
                let size = bigEndian(content.count)
                bytes.append(0x80 | UInt8(size.count))
                bytes += size
            }
            return bytes + content
        }

        static func number(_ value: Int) -> [UInt8] {
            let bytes = bigEndian(value)
            // The first bit would be a sign.
            return element(integer, bytes[0] < 0x80 ? bytes : [0] + bytes)
        }

        /// - Parameter arcs: the encoded identifier, without tag and length.
        static func name(_ arcs: [UInt8]) -> [UInt8] { element(identifier, arcs) }

        /// An algorithm without parameters.
        static func algorithm(_ arcs: [UInt8]) -> [UInt8] { element(sequence, name(arcs), element(null)) }

        private static func bigEndian(_ value: Int) -> [UInt8] {
            let bytes = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
            return Array(bytes.drop { $0 == 0 }.isEmpty ? [0] : bytes.drop { $0 == 0 })
        }
    }

    /// Object identifiers, encoded.
    enum ASN1Name {
        private static let pkcs: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01]
        private static let digest: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02]
        private static let nist: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04]

        static let rsa = pkcs + [1, 1]
        static let ellipticCurve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        static let pbkdf2 = pkcs + [5, 12]
        static let pbes2 = pkcs + [5, 13]
        static let data = pkcs + [7, 1]
        static let localKeyID = pkcs + [9, 21]
        static let x509Certificate = pkcs + [9, 22, 1]
        static let shroudedKeyBag = pkcs + [12, 10, 1, 2]
        static let certificateBag = pkcs + [12, 10, 1, 3]
        static func hmac(_ number: UInt8) -> [UInt8] { digest + [number] }
        static let hmacWithSHA1 = digest + [7]
        static let hmacWithSHA256 = digest + [9]
        static let tripleDES = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x03, 0x07] as [UInt8]
        static let aes128 = nist + [1, 2]
        static let aes192 = nist + [1, 22]
        static let aes256 = nist + [1, 42]
        static let sha256 = nist + [2, 1]
    }
#endif

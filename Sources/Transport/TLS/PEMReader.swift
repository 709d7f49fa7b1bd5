/// Turns PEM into OpenSSL's certificates and keys.
struct PEMReader {
    let openSSL: OpenSSL

    private static let noStartLine: UInt = 9 << 23 | 108

    /// All certificates of a source, in their order; the caller frees them.
    ///
    /// - Parameter purpose: what they are for, in words.
    func certificates(_ source: PEMSource, _ purpose: String) throws(TransportError) -> [OpaquePointer] {
        let bio = try open(source, purpose)
        defer { _ = openSSL.bioFree(bio) }
        var certificates: [OpaquePointer] = []
        openSSL.errorClear()
        while let certificate = openSSL.readCertificate(bio, nil, noPassphrase, nil) {
            certificates.append(certificate)
        }
        let (code, reason) = openSSL.takeError()
        // The end of the text is told like a missing first line.
        if code == Self.noStartLine, !certificates.isEmpty { return certificates }
        for certificate in certificates { openSSL.certificateFree(certificate) }
        throw TransportError(
            .tlsConfiguration,
            code == Self.noStartLine
                ? "\(source) (\(purpose)) holds no certificate; it has to be PEM, from '-----BEGIN CERTIFICATE-----' on"
                : "\(source) (\(purpose)) holds a damaged certificate: \(reason)")
    }

    /// The first private key of a source; the caller frees it.
    func key(_ source: PEMSource, passphrase: String?) throws(TransportError) -> OpaquePointer {
        let bio = try open(source, "private key")
        defer { _ = openSSL.bioFree(bio) }
        openSSL.errorClear()
        var secret: [UInt8] = passphrase.map { Array($0.utf8) + [0] } ?? []
        defer { for index in secret.indices { secret[index] = 0 } }
        let key = secret.withUnsafeMutableBytes { secret in
            openSSL.readKey(bio, nil, passphrase == nil ? noPassphrase : givePassphrase, secret.baseAddress)
        }
        if let key { return key }
        let reason = openSSL.takeError().text
        let words: String
        let text = String(decoding: (try? read(source, "private key")) ?? [], as: UTF8.self)
        if !text.contains("PRIVATE KEY-----") {
            words = "holds no private key; it has to be PEM, from '-----BEGIN PRIVATE KEY-----' on"
        } else if passphrase == nil, text.contains("ENCRYPTED") {
            words = "is encrypted; set the identity's passphrase"
        } else if passphrase != nil {
            words = "cannot be opened: the passphrase is wrong, or the key is damaged (\(reason))"
        } else {
            words = "holds a damaged private key: \(reason)"
        }
        throw TransportError(.tlsConfiguration, "\(source) \(words)")
    }

    private func open(_ source: PEMSource, _ purpose: String) throws(TransportError) -> OpaquePointer? {
        let bytes = try read(source, purpose)
        let bio = openSSL.bioNew(openSSL.bioMemory())
        // One BIO_write takes all: memory BIOs have no limit below that of an Int32, and the source is smaller.
        guard bytes.isEmpty || openSSL.bioWrite(bio, bytes, Int32(bytes.count)) == Int32(bytes.count) else {
            _ = openSSL.bioFree(bio)
            throw TransportError(.systemLimit, "no memory to read \(source)")
        }
        return bio
    }

    private static let sizeLimit = 8 << 20

    private func read(_ source: PEMSource, _ purpose: String) throws(TransportError) -> [UInt8] {
        switch source.kind {
        case .text(let text):
            guard text.utf8.count <= Self.sizeLimit else { throw tooLarge(source) }
            return Array(text.utf8)
        case .file(let path):
            guard !path.utf8.contains(0), let file = fopen(path, "rbe") else {
                throw TransportError(
                    .tlsConfiguration, "cannot read \(source) (\(purpose)): \(System.describe(errno))", errno: errno)
            }
            defer { fclose(file) }
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 64 * 1024)
            while true {
                let count = fread(&chunk, 1, chunk.count, file)
                guard count > 0 else { break }
                bytes.append(contentsOf: chunk[..<count])
                guard bytes.count <= Self.sizeLimit else { throw tooLarge(source) }
            }
            guard ferror(file) == 0 else {
                throw TransportError(
                    .tlsConfiguration, "cannot read \(source) (\(purpose)): \(System.describe(errno))", errno: errno)
            }
            return bytes
        }
    }

    private func tooLarge(_ source: PEMSource) -> TransportError {
        TransportError(.tlsConfiguration, "\(source) is larger than \(Self.sizeLimit) bytes; is it the right file?")
    }
}

/// OpenSSL asks at the terminal when it is given no callback.
private let noPassphrase: OpenSSL.PassphraseCallback = { _, _, _, _ in -1 }

private let givePassphrase: OpenSSL.PassphraseCallback = { buffer, size, _, secret in
    guard let buffer, let secret else { return -1 }
    let text = secret.assumingMemoryBound(to: CChar.self)
    let count = strlen(text)
    guard count <= Int(size) else { return -1 }
    memcpy(buffer, text, count)
    return Int32(count)
}

import MessagingWire

/// Turns PEM into OpenSSL's certificates and keys.
// Safe: each BIO and container is freed by the function that makes it; certificates and keys belong to the caller, as each
// function documents; buffers are passed with their lengths for the call only.
struct PEMReader {
    let openSSL: OpenSSL

    private static let noStartLine: UInt = 9 << 23 | 108

    /// All certificates of a source, in their order; the caller frees them.
    ///
    /// OpenSSL parses the text, not ``PEMBlock``: Android's authorities and the bundles of other systems come this way too,
    /// and splitting hundreds of certificates by characters would delay the first TLS connection.
    ///
    /// - Parameter purpose: what they are for, in words.
    func certificates(_ source: PEMSource, _ purpose: String) throws(TransportError) -> [OpaquePointer] {
        // A source that is not text is one certificate in DER: a SEQUENCE.
        let bytes = try source.read(purpose)
        if bytes.first == 0x30 { return unsafe [try certificate(der: bytes, source, purpose)] }
        let bio = try unsafe open(source.lines(of: bytes, purpose), source)
        defer { _ = unsafe openSSL.bioFree(bio) }
        var certificates: [OpaquePointer] = unsafe []
        openSSL.errorClear()
        while let certificate = unsafe openSSL.readCertificate(bio, nil, noPassphrase, nil) {
            unsafe certificates.append(certificate)
        }
        let (code, reason) = openSSL.takeError()
        // The end of the text is reported like a missing first line.
        if code == Self.noStartLine, unsafe !certificates.isEmpty { return unsafe certificates }
        unsafe openSSL.free(certificates)
        throw code == Self.noStartLine ? source.noCertificate(purpose) : source.damagedCertificate(purpose, reason)
    }

    private func certificate(
        der: [UInt8], _ source: PEMSource, _ purpose: String
    ) throws(TransportError) -> OpaquePointer {
        openSSL.errorClear()
        let certificate = unsafe der.withUnsafeBufferPointer { bytes in
            var start = bytes.baseAddress
            return unsafe openSSL.decodeCertificate(nil, &start, bytes.count)
        }
        guard let certificate = unsafe certificate else {
            throw source.damagedCertificate(purpose, openSSL.takeError().text)
        }
        return unsafe certificate
    }

    /// The key of an identity, and its certificate before those of the authorities. The caller frees all of them.
    func identity(
        _ identity: TLSIdentity
    ) throws(TransportError) -> (key: OpaquePointer, certificates: [OpaquePointer]) {
        switch identity.kind {
        case .pkcs12(let source):
            return try unsafe container(source, passphrase: identity.passphrase)
        case .pem(let certificates, let key):
            return try unsafe chain(certificates) { () throws(TransportError) in
                unsafe try self.key(key, passphrase: identity.passphrase)
            }
        case .stored(let certificates, let uri):
            return try unsafe chain(certificates) { () throws(TransportError) in
                unsafe try OpenSSLStore(openSSL, for: identity).key(uri.text)
            }
        #if canImport(Network)
            case .system:
                throw TransportError(
                    .tlsConfiguration,
                    "OpenSSL cannot use a SecIdentity: choose the implementation .system in the TLS options, or give "
                        + "the identity as PEM or PKCS #12.")
        #endif
        }
    }

    /// Certificates with the key that `key` returns; the caller frees all of them.
    private func chain(
        _ certificates: PEMSource, _ key: () throws(TransportError) -> OpaquePointer
    ) throws(TransportError) -> (key: OpaquePointer, certificates: [OpaquePointer]) {
        let chain = try unsafe self.certificates(certificates, "certificate")
        do throws(TransportError) {
            return unsafe (try key(), chain)
        } catch {
            unsafe openSSL.free(chain)
            throw error
        }
    }

    /// What a PKCS #12 container holds: the key, its certificate first, then those of the authorities. The caller frees
    /// all of them.
    func container(
        _ source: PEMSource, passphrase: String?
    ) throws(TransportError) -> (key: OpaquePointer, certificates: [OpaquePointer]) {
        let bio = try unsafe open(source.read("PKCS #12 container"), source)
        defer { _ = unsafe openSSL.bioFree(bio) }
        openSSL.errorClear()
        guard let container = unsafe openSSL.readContainer(bio, nil) else {
            _ = openSSL.takeError()
            throw TransportError(
                .tlsConfiguration, "\(source) is not a PKCS #12 file. Use a .p12 or .pfx file.")
        }
        defer { unsafe openSSL.containerFree(container) }
        var (key, certificate, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil)
        guard unsafe openSSL.openContainer(container, passphrase ?? "", &key, &certificate, &others) == 1 else {
            let reason = openSSL.takeError().text
            // RC2 and others, of which older tools made containers, whatever the passphrase is.
            guard !reason.contains("unsupported") else {
                throw TransportError(
                    .tlsConfiguration,
                    "\(source) uses a cipher that this OpenSSL does not have (\(reason)). Convert it: openssl pkcs12 -legacy -in OLD -nodes | openssl pkcs12 -export -out NEW."
                )
            }
            throw TransportError(
                .tlsConfiguration,
                passphrase == nil
                    ? "\(source) is encrypted. Set the identity's passphrase (\(reason))."
                    : "\(source) cannot be opened: the passphrase is wrong, or it is damaged (\(reason)).")
        }
        defer { unsafe openSSL.stackFree(others) }
        var certificates: [OpaquePointer] = unsafe []
        for index in unsafe 0..<max(0, others == nil ? 0 : openSSL.stackCount(others)) {
            if let other = unsafe openSSL.stackValue(others, index) { unsafe certificates.append(other) }
        }
        guard let key = unsafe key, let certificate = unsafe certificate else {
            if let key = unsafe key { unsafe openSSL.keyFree(key) }
            if let certificate = unsafe certificate { unsafe certificates.append(certificate) }
            unsafe openSSL.free(certificates)
            throw TransportError(.tlsConfiguration, "\(source) has to hold a private key and its certificate.")
        }
        return unsafe (key, [certificate] + certificates)
    }

    /// The first private key of a source; the caller frees it.
    func key(_ source: PEMSource, passphrase: String?) throws(TransportError) -> OpaquePointer {
        let bio = try unsafe open(source.lines(of: source.read("private key"), "private key"), source)
        defer { _ = unsafe openSSL.bioFree(bio) }
        openSSL.errorClear()
        var secret: [UInt8] = passphrase.map { Array($0.utf8) + [0] } ?? []
        defer { for index in secret.indices { secret[index] = 0 } }
        let key = unsafe secret.withUnsafeMutableBytes { secret in
            unsafe openSSL.readKey(bio, nil, passphrase == nil ? noPassphrase : givePassphrase, secret.baseAddress)
        }
        if let key = unsafe key { return unsafe key }
        throw source.unusableKey(passphrase: passphrase, openSSL.takeError().text)
    }

    private func open(_ bytes: [UInt8], _ source: PEMSource) throws(TransportError) -> OpaquePointer? {
        let bio = unsafe openSSL.bioNew(openSSL.bioMemory())
        // One BIO_write takes all: memory BIOs have no limit below that of an Int32, and the source is smaller.
        guard unsafe bytes.isEmpty || openSSL.bioWrite(bio, bytes, Int32(bytes.count)) == Int32(bytes.count) else {
            _ = unsafe openSSL.bioFree(bio)
            throw TransportError(
                .systemLimit, "There is not enough memory to read \(source). Free some memory and try again.")
        }
        return unsafe bio
    }
}

/// OpenSSL asks at the terminal when it is given no callback.
let noPassphrase: OpenSSL.PassphraseCallback = { _, _, _, _ in -1 }

let givePassphrase: OpenSSL.PassphraseCallback = { buffer, size, _, secret in
    guard let buffer = unsafe buffer, let secret = unsafe secret else { return -1 }
    let text = unsafe secret.assumingMemoryBound(to: CChar.self)
    let count = unsafe strlen(text)
    guard count <= Int(size) else { return -1 }
    unsafe memcpy(buffer, text, count)
    return Int32(count)
}

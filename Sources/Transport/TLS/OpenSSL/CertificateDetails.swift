/// Why a peer's certificate was not accepted, with what stands in it.
struct CertificateRejection: Sendable {
    /// An `X509_V_ERR` number.
    let code: Int32
    /// OpenSSL's words for it.
    let reason: String
    /// 0 for the peer's own certificate, more for those above it.
    let depth: Int32
    let subject: String
    let issuer: String
    let notBefore: String
    let notAfter: String
    /// What it is valid for, from its subjectAltName.
    let names: [String]
}

extension CertificateRejection {
    /// - Parameter storeContext: an `X509_STORE_CTX` after its verification failed.
    init(_ openSSL: OpenSSL, storeContext: OpaquePointer?) {
        let certificate = openSSL.storeContextCertificate(storeContext)
        code = openSSL.storeContextError(storeContext)
        reason = openSSL.verifyErrorText(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        depth = openSSL.storeContextDepth(storeContext)
        subject = certificate.map { openSSL.text(name: openSSL.subject($0)) } ?? "?"
        issuer = certificate.map { openSSL.text(name: openSSL.issuer($0)) } ?? "?"
        notBefore = certificate.map { openSSL.text(time: openSSL.notBefore($0)) } ?? "?"
        notAfter = certificate.map { openSSL.text(time: openSSL.notAfter($0)) } ?? "?"
        names = certificate.map { Self.names(openSSL, $0) } ?? []
    }

    /// At most twenty DNS names and addresses, fit to be shown.
    private static func names(_ openSSL: OpenSSL, _ certificate: OpaquePointer) -> [String] {
        let subjectAltName: Int32 = 85
        guard let list = openSSL.certificateExtension(certificate, subjectAltName, nil, nil) else { return [] }
        defer { openSSL.generalNamesFree(list) }
        var names: [String] = []
        for index in 0..<min(openSSL.stackCount(list), 20) {
            var kind: Int32 = -1
            guard let value = openSSL.generalName(openSSL.stackValue(list, index), &kind),
                kind == 2 || kind == 7, let start = openSSL.stringBytes(value)
            else { continue }
            let bytes = Array(UnsafeBufferPointer(start: start, count: Int(openSSL.stringLength(value))))
            if let name = kind == 2 ? printable(bytes) : address(bytes) { names.append(name) }
        }
        return names
    }

    private static func printable(_ bytes: [UInt8]) -> String? {
        guard bytes.count <= 255, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func address(_ bytes: [UInt8]) -> String? {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        var text = [CChar](repeating: 0, count: 64)
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return nil }
        return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }
}

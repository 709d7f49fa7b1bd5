/// What OpenSSL's numbers mean, in words that say what to do.
enum TLSFailure {
    static func clientCertificateMissing(_ peer: String) -> TransportError {
        TransportError(
            .clientCertificateRefused,
            "\(peer) requires a client certificate, and this client has none. Set the identity of the TLS options.")
    }

    /// Our verification said no.
    static func rejected(
        _ rejection: CertificateRejection, by peer: String, _ context: TLSContext
    ) -> TransportError {
        let whose =
            rejection.depth == 0 ? "The certificate of \(peer)" : "The authority \(rejection.subject) behind \(peer)"
        switch rejection.code {
        case 10:
            return TransportError(
                .certificateExpired,
                "\(whose) expired on \(rejection.notAfter). The server needs a new one, unless the clock of this device is wrong."
            )
        case 9:
            return TransportError(
                .certificateNotYetValid,
                "\(whose) is not valid before \(rejection.notBefore). Check the clock of this device.")
        case 18:
            return TransportError(
                .certificateSelfSigned,
                "\(whose) is self-signed. If you know it, add it to `trust` of the TLS options.")
        case 2, 19, 20, 21, 27:
            if context.options?.trust.usesSystem == true, let missing = SystemAuthorities(context.openSSL).missing {
                return TransportError(
                    .certificateUntrusted,
                    "\(whose) is signed by '\(rejection.issuer)', and this system has no authorities at all (\(missing)). "
                        + SystemAuthorities.advice)
            }
            let judgement =
                context.options?.trust == .system ? "this system does not trust" : "the TLS options do not trust"
            return TransportError(
                .certificateUntrusted,
                "\(whose) is signed by '\(rejection.issuer)', which \(judgement). Add the authority to "
                    + "`trust` of the TLS options, or have the server send its intermediate certificates.")
        case 62, 64:
            return TransportError(
                .certificateNameMismatch,
                rejection.names.isEmpty
                    ? "\(whose) names no host (only subjectAltName counts, not the common name). The server needs one "
                        + "with its name in it."
                    : "\(whose) is not for this name: it is for \(rejection.names.joined(separator: ", ")). Connect to "
                        + "one of its names, or set serverName in the TLS options.")
        default:
            return TransportError(
                .certificateInvalid,
                "\(whose) (\(rejection.subject)) cannot be accepted: \(rejection.reason). The server needs another one."
            )
        }
    }

    /// OpenSSL's own reasons, and alerts of the peer, which are 1000 plus the alert's number.
    ///
    /// - Parameter wasOpen: whether the handshake had succeeded, so that the peer does use TLS.
    static func failed(
        _ code: UInt, _ text: String, peer: String, wasOpen: Bool, asked: Bool, hasIdentity: Bool,
        preSharedKey: TLSPreSharedKey?
    ) -> TransportError {
        let isOfSSL = (code >> 23) & 0xFF == 20
        let reason = isOfSSL ? Int(code & 0x7F_FFFF) : 0
        // bad_record_mac, handshake_failure, illegal_parameter, decrypt_error, unknown_psk_identity.
        if let preSharedKey, !wasOpen, [1020, 1040, 1047, 1051, 1115].contains(reason) {
            return preSharedKeyRefused(peer, identity: preSharedKey.identity, text)
        }
        switch reason {
        case 267, 156, 155, 443, 198:
            guard !wasOpen else { break }
            return TransportError(
                .notTLS,
                "\(peer) does not use TLS at this port (\(text)). Use its port for TLS, or a URL without TLS.")
        case 258, 396, 1070, 1086:
            return TransportError(
                .tlsVersion,
                "\(peer) and this client have no version of TLS in common (\(text)). Check the server's versions and the minimumVersion of the TLS options."
            )
        case 199, 1116:
            return asked && hasIdentity
                ? certificateRefused(peer, text) : clientCertificateMissing(peer)
        case 1040, 1042, 1043, 1044, 1045, 1046, 1048, 1049:
            guard asked else { break }
            return hasIdentity ? certificateRefused(peer, text) : clientCertificateMissing(peer)
        case 1112:
            return TransportError(
                .certificateNameMismatch,
                "\(peer) has no certificate for this name (\(text)). Check the host name, or set serverName in the TLS options."
            )
        default:
            break
        }
        guard !wasOpen else {
            return TransportError(
                .tlsFailed, "\(peer) broke the TLS protocol after the handshake: \(text). Connect again.")
        }
        return TransportError(.tlsFailed, "TLS with \(peer) failed: \(text).")
    }

    private static func certificateRefused(_ peer: String, _ text: String) -> TransportError {
        TransportError(
            .clientCertificateRefused,
            "\(peer) refused the client certificate (\(text)). Check its validity period and its issuer.")
    }
}

/// Why a peer's certificate was not accepted, with its names and dates.
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
        let certificate = unsafe openSSL.storeContextCertificate(storeContext)
        code = unsafe openSSL.storeContextError(storeContext)
        reason = unsafe openSSL.verifyErrorText(Int(code)).map { unsafe String(cString: $0) } ?? "error \(code)"
        depth = unsafe openSSL.storeContextDepth(storeContext)
        subject = unsafe certificate.map { unsafe openSSL.text(name: openSSL.subject($0)) } ?? "?"
        issuer = unsafe certificate.map { unsafe openSSL.text(name: openSSL.issuer($0)) } ?? "?"
        notBefore = unsafe certificate.map { unsafe openSSL.text(time: openSSL.notBefore($0)) } ?? "?"
        notAfter = unsafe certificate.map { unsafe openSSL.text(time: openSSL.notAfter($0)) } ?? "?"
        names = unsafe certificate.map { unsafe Self.names(openSSL, $0) } ?? []
    }

    /// At most twenty DNS names and addresses, fit to be shown.
    private static func names(_ openSSL: OpenSSL, _ certificate: OpaquePointer) -> [String] {
        let subjectAltName: Int32 = 85
        guard let list = unsafe openSSL.certificateExtension(certificate, subjectAltName, nil, nil) else { return [] }
        defer { unsafe openSSL.generalNamesFree(list) }
        var names: [String] = []
        for index in unsafe 0..<min(openSSL.stackCount(list), 20) {
            var kind: Int32 = -1
            guard let value = unsafe openSSL.generalName(openSSL.stackValue(list, index), &kind),
                kind == 2 || kind == 7, let start = unsafe openSSL.stringBytes(value)
            else { continue }
            let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: Int(openSSL.stringLength(value))))
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
        guard unsafe inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return nil }
        return unsafe text.withUnsafeBufferPointer { unsafe String(cString: $0.baseAddress!) }
    }
}

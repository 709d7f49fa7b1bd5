import MessagingHTTPCore

/// What the options demand of a server beside the verification of its certificates: the same for both implementations of TLS.
extension TLSOptions {
    /// Which of the implementations is to use the options.
    enum Worker { case openSSL, networkFramework }

    /// Whether the implementation can do what the options demand, and whether they fit each other.
    ///
    /// - Throws: `unsupported` for what it cannot, `tlsConfiguration` for a mistake.
    func checkDemands(on worker: Worker) throws(TransportError) {
        for pin in pinnedKeys where Self.digest(ofPin: pin) == nil {
            throw TransportError(
                .tlsConfiguration,
                "'\(pin)' in pinnedKeys of the TLS options is not the SHA-256 of a public key. Use the 44 characters of its "
                    + "Base64, with or without 'sha256/' before them.")
        }
        if revocation != .unchecked, verification.level == .none {
            throw TransportError(
                .tlsConfiguration,
                "The TLS options demand a check of revocation, which a certificate that is not verified cannot have. Set "
                    + "verification to .full, or revocation to .unchecked.")
        }
        if revocation != .unchecked, worker == .openSSL {
            throw TransportError(
                .unsupported,
                "With OpenSSL nothing tells whether a certificate was revoked. Set revocation in the TLS options to .unchecked, "
                    + "and use pinnedKeys, or an additionalCheck with a list of your own.")
        }
        try checkPreSharedKey(worker)
        if keyLogFile != nil { try checkKeyLog(worker) }
    }

    private func checkPreSharedKey(_ worker: Worker) throws(TransportError) {
        guard let preSharedKey else { return }
        let name = preSharedKey.identity.utf8
        guard (1...128).contains(name.count), !name.contains(0), (1...64).contains(preSharedKey.key.count) else {
            throw TransportError(
                .tlsConfiguration,
                "The preSharedKey of the TLS options needs an identity of 1 to 128 bytes without zeros, and a key of 1 to 64 "
                    + "bytes. Use at least 16 random ones.")
        }
        guard identity == nil, pinnedKeys.isEmpty, additionalCheck == nil, revocation == .unchecked else {
            throw TransportError(
                .tlsConfiguration,
                "With a preSharedKey neither side has a certificate. Remove identity, pinnedKeys, additionalCheck and "
                    + "revocation from the TLS options, or the key.")
        }
        if worker == .networkFramework, minimumVersion == .tls13 {
            throw TransportError(
                .unsupported,
                "Network.framework uses a preSharedKey with TLS 1.2 alone. Set minimumVersion in the TLS options to .tls12, or "
                    + "on macOS choose the implementation .openSSL.")
        }
    }

    private func checkKeyLog(_ worker: Worker) throws(TransportError) {
        #if DEBUG
            guard worker == .networkFramework else { return }
            throw TransportError(
                .unsupported,
                "Network.framework writes no keyLogFile. Remove it from the TLS options, or on macOS choose the implementation "
                    + ".openSSL.")
        #else
            throw TransportError(
                .unsupported,
                "A keyLogFile is for debug builds: with it everybody can read what this program exchanges. Remove it from the "
                    + "TLS options, or build with -c debug.")
        #endif
    }

    /// The digest that a pin names; nil if the text is not a pin.
    private static func digest(ofPin pin: String) -> [UInt8]? {
        var text = pin[...]
        if text.hasPrefix("sha256/") { text = text.dropFirst("sha256/".count) }
        // curl writes two slashes; one may also be the first character of the Base64.
        if text.utf8.count == 45, text.hasPrefix("/") { text = text.dropFirst() }
        guard text.utf8.count == 44, let digest = Base64.decode(String(text)), digest.count == 32 else { return nil }
        return digest
    }

    /// Whether a verified chain has to be judged further.
    var judgesChain: Bool { !pinnedKeys.isEmpty || additionalCheck != nil }

    /// Why the server is refused although its certificates were verified; nil if it is not.
    ///
    /// - Parameters:
    ///   - chain: the verified certificates in DER, the server's first. What the server sent, if the options verify nothing.
    ///   - name: what was verified.
    ///   - peerName: for the error.
    ///   - sha256: the digest of the implementation.
    func rejection(
        of chain: [[UInt8]], name: String, peerName: String, sha256: ([UInt8]) -> [UInt8]
    ) -> TransportError? {
        if !pinnedKeys.isEmpty {
            let pins = Set(pinnedKeys.compactMap(Self.digest(ofPin:)))
            // Without verification anybody may send the certificate of an authority, but only its owner has the first one's key.
            let candidates = verification.level == .none ? chain.prefix(1) : chain[...]
            let digests = candidates.map { DER.publicKey(ofCertificate: $0).map(sha256) }
            guard digests.contains(where: { $0.map(pins.contains) == true }) else {
                return TLSFailure.pinMismatch(of: peerName, digests.first ?? nil)
            }
        }
        guard let additionalCheck else { return nil }
        do {
            try additionalCheck(chain, name)
            return nil
        } catch {
            return TransportError(
                .certificateRefused,
                "The additionalCheck of the TLS options refused the certificate of \(peerName): "
                    + "\(TLSFailure.withoutFullStop("\(error)")).")
        }
    }
}

extension TLSFailure {
    /// - Parameter digest: of the server's own key, if it could be read.
    fileprivate static func pinMismatch(of peerName: String, _ digest: [UInt8]?) -> TransportError {
        let own = digest.map { " Its own is sha256/\(Base64.encode($0))." } ?? ""
        return TransportError(
            .certificatePinMismatch,
            "No key in the certificates of \(peerName) is one of pinnedKeys in the TLS options.\(own) If the server's key was "
                + "replaced on purpose, add the new one to the pinned keys; otherwise the connection may be intercepted."
        )
    }

    fileprivate static func withoutFullStop(_ text: String) -> String {
        text.utf8.last == UInt8(ascii: ".") ? String(text.dropLast()) : text
    }

    /// The server has shown a certificate instead of proving that it knows the key.
    static func ignoredPreSharedKey(_ peerName: String) -> TransportError {
        TransportError(
            .preSharedKeyRefused,
            "\(peerName) answered with a certificate instead of using the pre-shared key. Check that it has TLS-PSK at this "
                + "port, or remove preSharedKey from the TLS options.")
    }

    /// The handshake failed, for which a server that does not know the key has one of several alerts.
    static func preSharedKeyRefused(_ peerName: String, identity: String, _ reason: String) -> TransportError {
        TransportError(
            .preSharedKeyRefused,
            "\(peerName) refused the pre-shared key of '\(identity)' (\(reason)). Check identity and key, and that the server has "
                + "TLS-PSK at this port.")
    }

    static func revoked(_ peerName: String) -> TransportError {
        TransportError(
            .certificateRevoked,
            "The certificate of \(peerName) was revoked by the authority that issued it. The server needs a new one: do "
                + "not trust it until then.")
    }

    /// - Parameter reason: a clause.
    static func statusUnknown(_ peerName: String, _ reason: String) -> TransportError {
        TransportError(
            .certificateStatusUnknown,
            "Whether the certificate of \(peerName) was revoked is unknown: \(reason). Turn on OCSP stapling at the server, or "
                + "choose another revocation in the TLS options.")
    }
}

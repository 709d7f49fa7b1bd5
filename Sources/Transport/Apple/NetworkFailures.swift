#if canImport(Network)
    import Network
    import Security
    import Synchronization

    extension NWError {
        /// The way to the peer is gone.
        static var withoutPath: NWError? { .system(ENETDOWN) }

        /// Nil for a number that is not one of the system's errors.
        static func system(_ code: Int32) -> NWError? { POSIXErrorCode(rawValue: code).map { .posix($0) } }
    }

    extension TransportError {
        /// watchOS has no path for this app.
        static func withoutNetworkOnWatch(_ peerName: String) -> TransportError {
            TransportError(
                .unreachable,
                "\(peerName) cannot be reached: watchOS lets an app connect by itself only while it plays audio or makes a "
                    + "call. Let the app on the iPhone connect, and exchange messages with it by WatchConnectivity.")
        }
    }

    /// What the errors of Network.framework mean: the one table of its TLS statuses, from Apple's SecureTransport.h and
    /// SecBase.h.
    final class NetworkFailures: Sendable {
        private struct State {
            var rejection: TransportError?
            var certificateWasRequested = false
        }

        private let peerName: String
        private let hasIdentity: Bool
        /// Of the pre-shared key.
        private let preSharedIdentity: String?
        private let usesTLS: Bool
        /// Whether the options exclude networks that this device may have.
        private let excludesNetworks: Bool
        private let state = Lock(State())

        /// For a connection without TLS.
        init(peerName: String, network: NetworkOptions = NetworkOptions()) {
            self.peerName = peerName
            excludesNetworks = network != NetworkOptions()
            hasIdentity = false
            preSharedIdentity = nil
            usesTLS = false
        }

        init(peerName: String, network: NetworkOptions = NetworkOptions(), tls: NetworkTLS) {
            self.peerName = peerName
            excludesNetworks = network != NetworkOptions()
            hasIdentity = tls.hasIdentity
            preSharedIdentity = tls.preSharedIdentity
            usesTLS = true
        }

        /// Our verification refused the server's certificate; what the connection then fails with says less.
        func reject(_ error: TransportError) {
            state.withLock { $0.rejection = error }
        }

        func noteRequest() {
            state.withLock { $0.certificateWasRequested = true }
        }

        /// - Parameters:
        ///   - isOpen: whether the connection was established before.
        ///   - hasDelivered: whether bytes have arrived on it, so that the server has accepted this client.
        func error(_ error: NWError, isOpen: Bool, hasDelivered: Bool = false) -> TransportError {
            if let rejection = state.withLock({ $0.rejection }) { return rejection }
            switch error {
            case .posix(let code):
                return posix(code.rawValue, isOpen)
            case .tls(let status):
                return tls(status, isOpen, hasDelivered)
            // kDNSServiceErr_PolicyDenied of dns_sd.h: the look-up itself uses the local network.
            case .dns(-65570):
                return localNetworkDenied()
            case .dns(let code):
                return TransportError(
                    .unknownHost,
                    "Cannot find the host of \(peerName): DNS error \(code). Check its spelling and DNS."
                        + TransportError.sandboxAdvice)
            default:
                return TransportError(.unreachable, "Cannot connect to \(peerName): \(error).")
            }
        }

        /// Why there is no path to the peer; nil if there is one.
        func error(without path: NWPath?) -> TransportError? {
            guard let path, path.status == .unsatisfied else { return nil }
            switch path.unsatisfiedReason {
            case .localNetworkDenied:
                return localNetworkDenied()
            case .cellularDenied:
                return TransportError(
                    .unreachable,
                    "\(peerName) cannot be reached: the person has switched mobile data off for this app. Ask for it in the "
                        + "settings (Mobile Data or Cellular), or for Wi-Fi.", errno: ENETDOWN)
            case .wifiDenied:
                return TransportError(
                    .unreachable,
                    "\(peerName) cannot be reached: the person has not allowed this app to use Wi-Fi. Ask for it in the app's "
                        + "settings (Wireless Data), or for mobile data.", errno: ENETDOWN)
            case .vpnInactive:
                return TransportError(
                    .unreachable,
                    "\(peerName) cannot be reached: this app needs a VPN that is not active. Switch it on in the settings "
                        + "(VPN).", errno: ENETDOWN)
            default:
                return posix(ENETDOWN, false)
            }
        }

        private func localNetworkDenied() -> TransportError {
            TransportError(
                .localNetworkDenied,
                "\(peerName) is on the local network, which this app may not use. Ask the person to allow it in the "
                    + "settings (Privacy & Security, Local Network), and give the reason as "
                    + "NSLocalNetworkUsageDescription in the app's Info.plist.",
                errno: ENETDOWN)
        }

        private func posix(_ code: Int32, _ isOpen: Bool) -> TransportError {
            if isOpen { return .lost(peerName, code) }
            switch code {
            case ECONNREFUSED:
                return TransportError(
                    .connectionRefused,
                    "\(peerName) refused the connection. Check the address and the port, and that the server is running and listens on this address.",
                    errno: code)
            case ECONNRESET where usesTLS, EPIPE where usesTLS:
                // TCP was open, since a refusal has another code: a server that does not read TLS reset it.
                return TransportError(
                    .notTLS,
                    "\(peerName) reset the connection during the TLS handshake. Use its port for TLS, or a URL without TLS.",
                    errno: code)
            case ETIMEDOUT:
                return TransportError(
                    .timedOut, "\(peerName) did not answer in time. Check the address, or allow more time to connect.",
                    errno: code)
            case ENETDOWN:
                return TransportError(
                    .unreachable,
                    "\(peerName) cannot be reached: this device has no network now"
                        + (excludesNetworks ? " that the network options allow." : "."), errno: code)
            default:
                return .unreachable(peerName, code)
            }
        }

        private func tls(_ status: OSStatus, _ isOpen: Bool, _ hasDelivered: Bool) -> TransportError {
            let wasAsked = state.withLock { $0.certificateWasRequested }
            let refusal = TransportError(
                .clientCertificateRefused,
                "\(peerName) refused the client certificate (\(status)). Check its validity period and its issuer.")
            let unknownKey = [
                errSSLUnknownPSKIdentity, errSSLPeerHandshakeFail, errSSLPeerBadRecordMac, errSSLPeerDecryptError,
                errSSLIllegalParam,
            ]
            if let preSharedIdentity, !isOpen, unknownKey.contains(status) {
                return TLSFailure.preSharedKeyRefused(peerName, identity: preSharedIdentity, "\(status)")
            }
            switch status {
            case errSSLClosedNoNotify, errSSLClosedAbort:
                if wasAsked && !hasIdentity && !hasDelivered {
                    return TLSFailure.clientCertificateMissing(peerName)
                }
                return isOpen
                    ? TransportError(
                        .tlsTruncated,
                        "\(peerName) ended the connection without the closing message of TLS. It may have stopped, or the network cut the connection: connect again."
                    )
                    : TransportError(
                        .notTLS,
                        "\(peerName) ended the connection during the TLS handshake. Use its port for TLS, or a URL without TLS."
                    )
            case errSSLProtocol, errSSLUnexpectedRecord:
                guard !isOpen else {
                    return TransportError(
                        .tlsFailed,
                        "\(peerName) broke the TLS protocol after the handshake (\(status)). Connect again.")
                }
                return TransportError(
                    .notTLS,
                    "\(peerName) does not use TLS at this port (\(status)). Use its port for TLS, or a URL "
                        + "without TLS.")
            case errSSLPeerProtocolVersion, errSSLPeerInsufficientSecurity, errSSLNegotiation:
                return TransportError(
                    .tlsVersion,
                    "\(peerName) and this client have no version of TLS in common (\(status)). Check the server's "
                        + "versions and the minimumVersion of the TLS options.")
            case errSSLCertificateRequired:
                return hasIdentity ? refusal : TLSFailure.clientCertificateMissing(peerName)
            case errSSLPeerBadCert, errSSLPeerUnsupportedCert, errSSLPeerCertRevoked, errSSLPeerCertExpired,
                errSSLPeerCertUnknown, errSSLPeerUnknownCA, errSSLPeerAccessDenied, errSSLPeerHandshakeFail:
                guard wasAsked else { break }
                return hasIdentity ? refusal : TLSFailure.clientCertificateMissing(peerName)
            case errSSLUnrecognizedName, errSSLHostNameMismatch:
                return TransportError(
                    .certificateNameMismatch,
                    "\(peerName) has no certificate for this name (\(status)). Check the host name, or set serverName in the TLS options."
                )
            case errSSLCertExpired:
                return TransportError(
                    .certificateExpired, "The certificate of \(peerName) has expired. The server needs a new one.")
            case errSSLCertNotYetValid:
                return TransportError(
                    .certificateNotYetValid,
                    "The certificate of \(peerName) is not valid yet. Check the clock of this device.")
            case errSSLXCertChainInvalid, errSSLUnknownRootCert, errSSLNoRootCert:
                return TransportError(
                    .certificateUntrusted,
                    "No trusted authority has signed the certificate of \(peerName). Add the authority to `trust` "
                        + "of the TLS options.")
            case errSSLBadCert:
                return TransportError(
                    .certificateInvalid,
                    "The certificate of \(peerName) cannot be accepted. The server needs another one.")
            default:
                break
            }
            return TransportError(.tlsFailed, "TLS with \(peerName) failed with status \(status).")
        }
    }
#endif

/// A certificate and its key, with which one side of a connection proves who it is. Never printed.
public struct TLSIdentity: Sendable, Hashable {
    enum Kind: Hashable {
        case pem(certificates: PEMSource, key: PEMSource)
        case pkcs12(PEMSource)
        #if canImport(Network)
            case system(SystemIdentity)
        #endif
    }
    let kind: Kind
    /// Opens an encrypted key.
    let passphrase: String?

    /// Certificate and key as PEM. On Linux, and on macOS with OpenSSL; elsewhere connections fail with
    /// `tlsConfiguration`: use PKCS #12 or a `SecIdentity` there.
    ///
    /// - Parameters:
    ///   - certificates: the certificate, followed by those of the authorities between it and the root.
    ///   - key: the key of the first certificate.
    ///   - passphrase: opens an encrypted key.
    public init(certificates: PEMSource, key: PEMSource, passphrase: String? = nil) {
        kind = .pem(certificates: certificates, key: key)
        self.passphrase = passphrase
    }

    private init(_ kind: Kind, passphrase: String?) {
        self.kind = kind
        self.passphrase = passphrase
    }

    /// Certificate and key in a PKCS #12 container (`.p12`, `.pfx`), on every system.
    public static func pkcs12(_ source: PEMSource, passphrase: String? = nil) -> TLSIdentity {
        TLSIdentity(.pkcs12(source), passphrase: passphrase)
    }

    #if canImport(Network)
        static func system(_ identity: SystemIdentity) -> TLSIdentity {
            TLSIdentity(.system(identity), passphrase: nil)
        }
    #endif
}

extension TLSIdentity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        switch kind {
        case .pem(let certificates, _): "TLSIdentity(\(certificates))"
        case .pkcs12(let source): "TLSIdentity(\(source))"
        #if canImport(Network)
            case .system: "TLSIdentity(a SecIdentity)"
        #endif
        }
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

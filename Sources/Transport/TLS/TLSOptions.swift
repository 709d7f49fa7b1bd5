import Wire

/// How a TLS connection is made, and what the server has to prove. The defaults verify everything.
///
///     var options = TLSOptions()
///     options.trust = .authorities([.file("authority.crt")])
///     options.identity = .pkcs12(.file("device.p12"), passphrase: "…")
public struct TLSOptions: Sendable, Hashable {
    /// Who may have signed the server's certificate. Default: those that the system trusts.
    public var trust = TLSTrust.system
    /// The client's certificate, for servers that ask for one. Default: none.
    public var identity: TLSIdentity?
    /// The name to verify and to ask for, when it is not the host of the URL; a name or an address.
    public var serverName: String?
    /// What is checked about the server. Default: everything. What checks less has `unsafe` in its name.
    public var verification = TLSVerification.full
    /// The oldest version of TLS that is accepted. Default: TLS 1.2.
    public var minimumVersion = TLSVersion.tls12
    /// Protocols to offer by ALPN (RFC 7301), in the order of preference; nil offers what the URL's scheme needs.
    public var applicationProtocols: [String]?
    /// Whether a session of an earlier connection to the same server may be continued, which saves a round trip.
    public var resumesSessions = true
    /// What does the work. Default: Network.framework on Apple's systems, OpenSSL elsewhere.
    public var implementation = TLSImplementation.automatic
    /// The path of OpenSSL's libssl; nil finds the system's. `MESSAGING_LIBSSL` in the environment has the same effect.
    public var libraryPath: String?

    /// Makes options that verify everything.
    public init() {}

    /// Whether all options are equal, texts by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.trust == other.trust && one.identity == other.identity && one.verification == other.verification
            && one.serverName.hasSameBytes(as: other.serverName) && one.minimumVersion == other.minimumVersion
            && one.applicationProtocols?.map(ByteKey.init) == other.applicationProtocols?.map(ByteKey.init)
            && one.resumesSessions == other.resumesSessions && one.implementation == other.implementation
            && one.libraryPath.hasSameBytes(as: other.libraryPath)
    }

    /// Reads the files that the options name, and checks that what they hold can be used, without a connection.
    ///
    /// A client reads them when it connects, and again after a connection with TLS has failed. This blocks the calling
    /// thread while it reads.
    /// - Throws: ``TransportError`` with the code `tlsConfiguration` for a file that is missing, damaged or encrypted with
    ///   another passphrase, and for a key of another certificate; with `tlsUnavailable` without OpenSSL.
    public func check() throws(TransportError) {
        let contexts = TLSContexts(client: self)
        let usesSystem = try contexts.usesSystem()
        #if canImport(Network)
            if usesSystem { _ = try contexts.networkTLS() } else { _ = try contexts.context() }
        #else
            if !usesSystem { _ = try contexts.context() }
        #endif
    }
}

/// What is checked about a server's certificate.
public struct TLSVerification: Sendable, Hashable {
    enum Level: Hashable { case full, chain, none }
    let level: Level

    /// The chain up to a trusted authority, the dates, and the name.
    public static let full = TLSVerification(level: .full)
    /// The chain and the dates, but not the name: every server with a certificate of a trusted authority is accepted.
    /// Only sensible together with an authority of your own.
    public static let unsafeAcceptAnyName = TLSVerification(level: .chain)
    /// Nothing: an attacker between the client and the server can read and alter everything. For experiments only.
    public static let unsafeAcceptAnyCertificate = TLSVerification(level: .none)
}

/// A version of TLS.
public struct TLSVersion: Sendable, Hashable, CustomStringConvertible {
    /// Its number on the wire.
    let number: UInt16

    /// RFC 5246.
    public static let tls12 = TLSVersion(number: 0x0303)
    /// RFC 8446.
    public static let tls13 = TLSVersion(number: 0x0304)

    public var description: String { self == .tls13 ? "1.3" : "1.2" }
}

/// What does the work of TLS.
public struct TLSImplementation: Sendable, Hashable {
    enum Kind: Hashable { case automatic, system, openSSL }
    let kind: Kind

    /// Network.framework on Apple's systems, except with a `libraryPath`, which only OpenSSL can use; OpenSSL elsewhere.
    public static let automatic = TLSImplementation(kind: .automatic)
    /// Network.framework; elsewhere connections fail with `tlsUnavailable`.
    public static let system = TLSImplementation(kind: .system)
    /// OpenSSL 3, loaded when the first connection needs it; on iOS, tvOS, watchOS and visionOS it does not exist, and
    /// connections fail with `tlsUnavailable`.
    public static let openSSL = TLSImplementation(kind: .openSSL)
}

/// Who may sign certificates.
public struct TLSTrust: Sendable, Hashable {
    let usesSystem: Bool
    let authorities: [PEMSource]

    /// The authorities that the system trusts.
    public static let system = TLSTrust(usesSystem: true, authorities: [])

    /// These authorities and no others.
    public static func authorities(_ authorities: [PEMSource]) -> TLSTrust {
        TLSTrust(usesSystem: false, authorities: authorities)
    }

    /// The authorities that the system trusts, and these.
    public static func systemAnd(_ authorities: [PEMSource]) -> TLSTrust {
        TLSTrust(usesSystem: true, authorities: authorities)
    }
}

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
    private let secret: ByteKey?
    /// Opens an encrypted key.
    var passphrase: String? { secret?.text }

    /// Certificate and key as PEM, on every system.
    ///
    /// Network.framework takes keys of RSA and of elliptic curves, encrypted ones by PBES2 (`ENCRYPTED PRIVATE KEY`, as
    /// OpenSSL 1.1 and later write it) with AES or triple DES. OpenSSL takes whatever it can read.
    ///
    /// - Parameters:
    ///   - certificates: the certificate, followed by those of the authorities between it and the root.
    ///   - key: the key of the first certificate.
    ///   - passphrase: opens an encrypted key.
    public init(certificates: PEMSource, key: PEMSource, passphrase: String? = nil) {
        kind = .pem(certificates: certificates, key: key)
        secret = passphrase.map(ByteKey.init)
    }

    private init(_ kind: Kind, passphrase: String?) {
        self.kind = kind
        secret = passphrase.map(ByteKey.init)
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

/// What the server's side of a TLS connection shows and asks for.
public struct TLSServerOptions: Sendable, Hashable {
    /// The server's certificate and key.
    public var identity: TLSIdentity
    /// Set to ask every client for a certificate that one of these has signed; without one it is refused.
    public var clientAuthorities: [PEMSource]?
    /// The path of OpenSSL's libssl; nil finds the system's.
    public var libraryPath: String?

    /// Makes options for a server with this certificate and key.
    public init(identity: TLSIdentity) {
        self.identity = identity
    }
}

#if canImport(Network)
    extension TLSOptions {
        /// Whether the options need OpenSSL, because Network.framework cannot use them.
        var needsOpenSSL: Bool {
            libraryPath != nil || System.environment("MESSAGING_LIBSSL") != nil
        }
    }
#endif

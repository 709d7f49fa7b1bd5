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

    public init() {}
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
    /// Nothing: whoever sits between the client and the server can read and alter everything. For experiments only.
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

    /// Network.framework on Apple's systems, except on macOS with a `libraryPath` or an identity from PEM files, which
    /// only OpenSSL can use; OpenSSL elsewhere.
    public static let automatic = TLSImplementation(kind: .automatic)
    /// Network.framework; elsewhere connections fail with `tlsUnavailable`.
    public static let system = TLSImplementation(kind: .system)
    /// OpenSSL 3, loaded when the first connection needs it; on iOS, tvOS, watchOS and visionOS it does not exist, and
    /// connections fail with `tlsUnavailable`.
    public static let openSSL = TLSImplementation(kind: .openSSL)
}

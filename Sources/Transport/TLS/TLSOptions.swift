/// How a TLS connection is made, and what the server has to prove. The defaults verify everything.
///
///     var options = TLSOptions()
///     options.trust = .authorities([.file("authority.pem")])
///     options.identity = TLSIdentity(certificates: .file("device.pem"), key: .file("device.key"))
public struct TLSOptions: Sendable, Hashable {
    /// Who may have signed the server's certificate.
    public var trust = TLSTrust.system
    /// The client's certificate, for servers that ask for one.
    public var identity: TLSIdentity?
    /// The name to verify and to ask for, when it is not the host of the URL; a name or an address.
    public var serverName: String?
    /// What is checked about the server. Everything, unless you write the word `unsafe`.
    public var verification = TLSVerification.full
    /// Protocols to offer by ALPN (RFC 7301), in the order of preference; nil offers what the URL's scheme needs.
    public var applicationProtocols: [String]?
    /// Whether a session of an earlier connection to the same server may be continued, which saves a round trip.
    public var resumesSessions = true
    /// The path of OpenSSL's libssl; nil finds the system's. `MESSAGING_LIBSSL` in the environment has the same effect.
    public var libraryPath: String?

    public init() {}
}

/// What is checked about a server's certificate.
public struct TLSVerification: Sendable, Hashable {
    enum Level: Hashable { case full, none }
    let level: Level

    /// The chain up to a trusted authority, the dates, and the name.
    public static let full = TLSVerification(level: .full)
    /// Nothing: whoever sits between the client and the server can read and alter everything. For experiments only.
    public static let unsafeAcceptAnyCertificate = TLSVerification(level: .none)
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

/// Certificates or a key as PEM, in a file or in memory.
public struct PEMSource: Sendable, Hashable {
    enum Kind: Hashable {
        case file(String)
        case text(String)
    }
    let kind: Kind

    /// The path of a file, read when a connection is made.
    public static func file(_ path: String) -> PEMSource { PEMSource(kind: .file(path)) }
    /// The text itself, from `-----BEGIN` on.
    public static func text(_ text: String) -> PEMSource { PEMSource(kind: .text(text)) }

}

extension PEMSource: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The file's name; never the text, which may be a private key.
    public var description: String {
        switch kind {
        case .file(let path): "'\(path)'"
        case .text: "the PEM text"
        }
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A certificate and its key, with which one side of a connection proves who it is. Never printed.
public struct TLSIdentity: Sendable, Hashable {
    /// The certificate, followed by those of the authorities between it and the root.
    public var certificates: PEMSource
    /// The key of the first certificate.
    public var key: PEMSource
    /// Opens an encrypted key.
    public var passphrase: String?

    public init(certificates: PEMSource, key: PEMSource, passphrase: String? = nil) {
        self.certificates = certificates
        self.key = key
        self.passphrase = passphrase
    }
}

extension TLSIdentity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "TLSIdentity(\(certificates))" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["certificates": certificates, "key": key]) }
}

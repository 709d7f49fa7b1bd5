import MessagingWire

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
    /// What is checked about the server. Default: everything. Values that check less have `unsafe` in their names.
    public var verification = TLSVerification.full
    /// The oldest version of TLS that is accepted. Default: TLS 1.2.
    public var minimumVersion = TLSVersion.tls12
    /// Protocols to offer by ALPN (RFC 7301), in the order of preference; nil offers what the URL's scheme needs.
    public var applicationProtocols: [String]?
    /// Whether a session of an earlier connection to the same server may be continued, which saves a round trip. Never
    /// with an ``identity``, ``pinnedKeys``, an ``additionalCheck``, a ``revocation`` check or a ``preSharedKey``,
    /// which are checked on each connection. Network.framework's sessions are shared by all clients of a process, and
    /// are continued only with full ``verification``, the system's authorities as ``trust`` and no ``serverName``.
    /// Default: true.
    public var resumesSessions = true
    /// What does the work. Default: Network.framework on Apple's systems, OpenSSL elsewhere.
    public var implementation = TLSImplementation.automatic
    /// Nil, or options that few programs set.
    private var rare: Shared<RareTLSOptions>?

    /// Makes options that verify everything.
    public init() {}

    /// Whether all options are equal, texts by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.trust == other.trust && one.identity == other.identity && one.verification == other.verification
            && one.serverName.hasSameBytes(as: other.serverName) && one.minimumVersion == other.minimumVersion
            && one.applicationProtocols?.map(ByteKey.init) == other.applicationProtocols?.map(ByteKey.init)
            && one.resumesSessions == other.resumesSessions && one.implementation == other.implementation
            && (one.rare === other.rare || one.rareOptions == other.rareOptions)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(trust)
        hasher.combine(identity)
        hasher.combine(verification)
        hasher.combine(minimumVersion)
    }

    /// Reads the files that the options name, and checks that what they hold can be used, without a connection.
    ///
    /// A client reads them for each connection, and continues with what they held before if they cannot be read then. This
    /// blocks the calling thread while it reads.
    /// - Throws: ``TransportError`` with the code `tlsConfiguration` for a file that is missing, damaged or encrypted with
    ///   another passphrase, and for a key of another certificate; with `tlsUnavailable` without OpenSSL.
    public func check() throws(TransportError) {
        let usesSystem = try TLSContexts(client: self).usesSystem()
        #if canImport(Network)
            if usesSystem { _ = try NetworkTLS(self) }
        #endif
        // Not one that clients share: what is checked is what there is now.
        if !usesSystem { _ = try TLSContext(.client(self)) }
    }
}

/// The options that few programs set, in a box of their own, so that the others pay for one pointer.
struct RareTLSOptions: Equatable, Sendable {
    typealias Check = @Sendable (_ certificates: [[UInt8]], _ serverName: String) throws -> Void

    var pinnedKeys: [String] = []
    var additionalCheck: Shared<Check>?
    var revocation = TLSRevocation.unchecked
    var preSharedKey: TLSPreSharedKey?
    var keyLogFile: String?
    var libraryPath: String?

    static func == (one: Self, other: Self) -> Bool {
        one.pinnedKeys.map(ByteKey.init) == other.pinnedKeys.map(ByteKey.init)
            && one.additionalCheck === other.additionalCheck && one.revocation == other.revocation
            && one.preSharedKey == other.preSharedKey && one.keyLogFile.hasSameBytes(as: other.keyLogFile)
            && one.libraryPath.hasSameBytes(as: other.libraryPath)
    }
}

extension TLSOptions {
    /// Public keys, one of which has to be in the server's chain of certificates, beside everything else that is checked;
    /// empty accepts all keys. Default: empty.
    ///
    /// Each is the SHA-256 of a certificate's SubjectPublicKeyInfo in Base64, with or without `sha256/` before it:
    ///
    ///     openssl x509 -in server.pem -pubkey -noout | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64
    ///
    /// Name a second key that is not in use yet: a server whose key is lost or replaced cannot be reached otherwise. The
    /// keys of the authorities above the server's certificate count too, if the verified chain leads through them; with
    /// ``TLSVerification/unsafeAcceptAnyCertificate`` the server's own key alone. Other keys are the error
    /// `certificatePinMismatch`, after which a client does not try again.
    public var pinnedKeys: [String] {
        get { rareOptions.pinnedKeys }
        set { change { $0.pinnedKeys = newValue } }
    }
    /// Called after everything else about the server's certificates has been accepted: the server's certificate in DER,
    /// those above it up to the trusted one, and the name that was verified. Throw an error to refuse the server: it becomes
    /// the reason in `certificateRefused`. Default: nil.
    ///
    /// It is called on each connection, while others wait on the same thread: do not wait for anything in it. With
    /// ``TLSVerification/unsafeAcceptAnyCertificate`` it gets what the server sent, which nothing has verified.
    public var additionalCheck: (@Sendable (_ certificates: [[UInt8]], _ serverName: String) throws -> Void)? {
        get { rareOptions.additionalCheck?.value }
        set { change { $0.additionalCheck = newValue.map { Shared($0) } } }
    }
    /// Whether the server's certificate must be known not to have been revoked. On Apple's systems alone: with OpenSSL connecting
    /// fails with `unsupported`. Default: it is not asked for.
    public var revocation: TLSRevocation {
        get { rareOptions.revocation }
        set { change { $0.revocation = newValue } }
    }
    /// A key that client and server share, instead of certificates. Default: nil.
    public var preSharedKey: TLSPreSharedKey? {
        get { rareOptions.preSharedKey }
        set { change { $0.preSharedKey = newValue } }
    }
    /// A file that gets the secrets of each connection in the format of `SSLKEYLOGFILE`, so that Wireshark can decrypt a
    /// recording. With them everybody can: it works in debug builds alone, and with OpenSSL. In a release build connecting
    /// fails with `unsupported`. A relative path starts from the working directory at the moment when it is set. Default: nil.
    public var keyLogFile: String? {
        get { rareOptions.keyLogFile }
        set { change { $0.keyLogFile = newValue.map(FileSystem.absolute) } }
    }
    /// The path of OpenSSL's libssl; nil finds the system's. `MESSAGING_LIBSSL` in the environment has the same effect.
    public var libraryPath: String? {
        get { rareOptions.libraryPath }
        set { change { $0.libraryPath = newValue } }
    }

    private var rareOptions: RareTLSOptions { rare?.value ?? RareTLSOptions() }

    private mutating func change(_ body: (inout RareTLSOptions) -> Void) {
        var options = rareOptions
        body(&options)
        rare = options == RareTLSOptions() ? nil : Shared(options)
    }

    /// Whether each connection has a handshake of its own, in which the server is checked anew.
    var checksEachConnection: Bool {
        identity != nil || !pinnedKeys.isEmpty || additionalCheck != nil || revocation != .unchecked
            || preSharedKey != nil
    }
}

/// Whether a server's certificate must be known not to have been revoked.
public struct TLSRevocation: Sendable, Hashable {
    enum Kind: Hashable { case unchecked, required }
    let kind: Kind

    /// Nobody is asked.
    public static let unchecked = TLSRevocation(kind: .unchecked)
    /// Apple's systems need a good response (OCSP) about the server's certificate and the authorities between it and the root: from
    /// the server, or else from the authority, which they ask.
    public static let required = TLSRevocation(kind: .required)
}

/// A key that a client and its server know, by which each proves itself to the other without certificates (RFC 4279, RFC 8446
/// section 2.2). Never printed.
///
/// Both implementations use it with TLS 1.2; OpenSSL with 1.3 too.
public struct TLSPreSharedKey: Sendable, Hashable {
    /// The name under which the server knows the key: 1 to 128 bytes. It is sent without encryption.
    public let identity: String
    /// 1 to 64 bytes: at least 16 random ones, since an attacker who records a handshake can try short keys.
    let key: [UInt8]

    /// Makes a key of its bytes.
    public init(identity: String, key: [UInt8]) {
        self.identity = identity
        self.key = key
    }

    /// Makes a key of hexadecimal digits, as Mosquitto's `psk_file` has it behind the colon; nil unless they are
    /// hexadecimal digits in pairs.
    public init?(identity: String, hexadecimal digits: String) {
        let values = digits.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard values.count % 2 == 0, !values.contains(nil) else { return nil }
        let nibbles = values.compactMap { $0 }
        self.init(
            identity: identity,
            key: stride(from: 0, to: nibbles.count, by: 2).map { UInt8(nibbles[$0] << 4 | nibbles[$0 + 1]) })
    }

    public static func == (one: Self, other: Self) -> Bool {
        one.identity.hasSameBytes(as: other.identity) && one.key == other.key
    }
}

extension TLSPreSharedKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "TLSPreSharedKey(\(identity))" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
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
    /// OpenSSL 3, or 4 where there is no 3, loaded when the first connection needs it; no test has run with 4. On iOS, tvOS,
    /// watchOS and visionOS it does not exist, and connections fail with `tlsUnavailable`.
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
        case stored(certificates: PEMSource, key: ByteKey)
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
    ///
    /// Apple's systems read one that has a passphrase and is encrypted with AES-256 and HMAC-SHA-256, as `openssl pkcs12
    /// -export` of OpenSSL 3 makes it. OpenSSL reads the others too.
    public static func pkcs12(_ source: PEMSource, passphrase: String? = nil) -> TLSIdentity {
        TLSIdentity(.pkcs12(source), passphrase: passphrase)
    }

    /// A key that stays where it is, in a token, a security module or a TPM, and is named by a URI. OpenSSL only; on Apple's
    /// systems see `TLSIdentity.keychain(_:intermediates:)`.
    ///
    /// - `pkcs11:token=meter;object=key;type=private` (RFC 7512) by OpenSSL's provider `pkcs11`, which is loaded if OpenSSL's
    ///   configuration has not done so.
    /// - `org.openssl.engine:pkcs11:pkcs11:token=meter;object=key;type=private` by an engine: the words after the first colon
    ///   are the engine's name and what it calls the key. Debian 12 has it in `libengine-pkcs11-openssl`.
    /// - Any other URI that a provider of OpenSSL's configuration reads, such as `handle:0x81000001` of a TPM.
    ///
    /// Each handshake signs with the key on the thread that serves the client's connections, for as long as the device takes.
    ///
    /// - Parameters:
    ///   - key: the URI.
    ///   - certificates: the key's certificate, followed by those of the authorities between it and the root.
    ///   - pin: given to the token when it asks for one.
    public static func stored(key: String, certificates: PEMSource, pin: String? = nil) -> TLSIdentity {
        TLSIdentity(.stored(certificates: certificates, key: ByteKey(key)), passphrase: pin)
    }

    #if canImport(Network)
        static func system(_ identity: SystemIdentity) -> TLSIdentity {
            TLSIdentity(.system(identity), passphrase: nil)
        }
    #endif

    /// What it consists of, as far as that can be read.
    var sources: [PEMSource] {
        switch kind {
        case .pem(let certificates, let key): [certificates, key]
        case .pkcs12(let container): [container]
        case .stored(let certificates, _): [certificates]
        #if canImport(Network)
            case .system: []
        #endif
        }
    }

    /// Whether the key is where it cannot be read, and may be another one tomorrow.
    var isStored: Bool { if case .stored = kind { true } else { false } }
}

extension TLSIdentity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        switch kind {
        case .pem(let certificates, _): "TLSIdentity(\(certificates))"
        case .pkcs12(let source): "TLSIdentity(\(source))"
        // The URI may have the PIN in it.
        case .stored(let certificates, _): "TLSIdentity(\(certificates))"
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

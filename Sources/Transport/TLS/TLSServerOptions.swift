/// What the server's side of a TLS connection shows and asks for.
public struct TLSServerOptions: Sendable, Hashable {
    /// The server's certificate and key.
    public var identity: TLSIdentity
    /// Set to ask every client for a certificate that one of these has signed; without one it is refused.
    public var clientAuthorities: [PEMSource]?
    /// The path of OpenSSL's libssl; nil finds the system's.
    public var libraryPath: String?

    public init(identity: TLSIdentity) {
        self.identity = identity
    }
}

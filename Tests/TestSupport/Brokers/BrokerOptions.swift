import Foundation

/// A name and password that a broker accepts.
public struct BrokerUser: Sendable {
    public var name: String
    public var password: String

    public init(_ name: String, password: String) {
        self.name = name
        self.password = password
    }
}

/// The certificate that a broker's TLS listener shows.
public struct BrokerTLS: Sendable {
    /// PEM files; the server's certificate may be followed by those that signed it.
    public var certificate: String
    public var key: String
    /// Both in PKCS #12, and what opens it.
    public var container: String
    public var passphrase: String
    /// The authority that client certificates are checked against.
    public var authority: String
    public var requiresClientCertificate: Bool

    /// Copies the files for a broker whose user cannot read the originals, and names the copies to `body`.
    func copied<Result>(
        to scratch: ScratchDirectory, as prefix: String = "tls", _ body: (BrokerTLS) throws -> Result
    ) throws -> Result {
        var copies = self
        for (path, name) in [
            (\BrokerTLS.certificate, "certificate"), (\BrokerTLS.key, "key"), (\BrokerTLS.authority, "authority"),
        ] {
            let target = scratch.file("\(prefix)-\(name).pem")
            try FileManager.default.copyItem(atPath: copies[keyPath: path], toPath: target)
            copies[keyPath: path] = target
        }
        return try body(copies)
    }
}

import Foundation

/// A small public-key world for TLS tests: an authority, what it signed, and what must be refused. The files are in the
/// folder `Certificates`, whose script `renew` makes them.
public struct Certificates: Sendable {
    /// A certificate and its key, in PEM files, and both in a PKCS #12 container that `passphrase` opens.
    public struct Pair: Sendable {
        public let certificate: String
        public let key: String
        /// Encrypted in the way that every system can read.
        public let container: String

        /// Files of a test's own, without a container.
        public init(certificate: String, key: String) {
            (self.certificate, self.key, container) = (certificate, key, "")
        }

        init(_ name: String) {
            certificate = Certificates.file("\(name).pem")
            key = Certificates.file("\(name).key")
            container = Certificates.file("\(name).p12")
        }
    }

    /// The authority that the tests trust.
    public let authority = Pair("authority")
    /// The authority's certificate in DER.
    public let authorityDER = file("authority.der")
    /// For `localhost`, 127.0.0.1 and ::1.
    public let server = Pair("server")
    /// The same names, but valid until 2019.
    public let expired = Pair("expired")
    /// The same names, but valid from 2095 on.
    public let future = Pair("future")
    /// The same names, signed by itself.
    public let selfSigned = Pair("self-signed")
    /// Signed by the authority, for `elsewhere.example` alone.
    public let wrongHost = Pair("wrong-host")
    /// An authority that nobody trusts, and a server certificate for `localhost` that it signed.
    public let otherAuthority = Pair("other-authority")
    public let otherServer = Pair("other-server")
    /// Signed by the authority, with `localhost` as its common name and no subjectAltName.
    public let nameless = Pair("nameless")
    /// The same, signed by itself, with an RSA key.
    public let selfSignedNameless = Pair("self-signed-nameless")
    /// The same names as `server`, but refused by Apple's systems alone: valid for too long, and without serverAuth.
    public let lasting = Pair("lasting")
    public let unmarked = Pair("unmarked")
    /// A client certificate with the common name `device`.
    public let client = Pair("client")

    /// Signed by the authority, and a client certificate with the common name `device` that it signed. The container of the
    /// second has both, and the authority's.
    public let intermediate = Pair("intermediate")
    public let issuedClient = Pair("issued-client")
    /// The client's certificate and key as PKCS #12, encrypted with AES-128, which Apple's systems cannot read.
    public let clientContainerWithAES128 = file("client-aes-128.p12")

    /// Opens everything that is encrypted.
    public let passphrase = "sesame"
    /// The client's key, encrypted.
    public let encryptedClientKey = file("client-encrypted.key")
    /// The client's certificate and key as PKCS #12, encrypted as OpenSSL 3 does by default.
    public let clientContainerWithAES = file("client-aes.p12")

    public init() {}

    /// A file of the folder `keys`: keys in PEM in all their forms, and a certificate for each kind.
    public func keyFile(_ name: String) -> String { Self.file("keys/\(name)") }

    /// Every certificate of a server.
    public var servers: [Pair] {
        [server, expired, future, selfSigned, wrongHost, otherServer, nameless, selfSignedNameless]
    }

    /// A broker option with the good server certificate.
    public func brokerTLS(requiresClientCertificate: Bool = false) -> BrokerTLS {
        brokerTLS(server, requiresClientCertificate: requiresClientCertificate)
    }

    /// A broker option with one of the other server certificates.
    public func brokerTLS(_ pair: Pair, requiresClientCertificate: Bool = false) -> BrokerTLS {
        BrokerTLS(
            certificate: pair.certificate, key: pair.key, container: pair.container, passphrase: passphrase,
            authority: authority.certificate, requiresClientCertificate: requiresClientCertificate)
    }

    private static func file(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingPathExtension().appendingPathComponent(name).path
    }
}

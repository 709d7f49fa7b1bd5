import Foundation

/// A small public-key world made with `openssl` for TLS tests: an authority, what it signed, and what must be refused.
///
/// Keys are P-256, so that all of it takes a fraction of a second. Every private key is readable by its owner alone.
public final class Certificates: Sendable {
    /// PEM files of a certificate and its key.
    public struct Pair: Sendable {
        public let certificate: String
        public let key: String

        public init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// The authority that the tests trust.
    public let authority: Pair
    /// For `localhost`, 127.0.0.1 and ::1.
    public let server: Pair
    /// The same names, but valid until yesterday.
    public let expired: Pair
    /// The same names, signed by itself.
    public let selfSigned: Pair
    /// Signed by the authority, for `elsewhere.example` alone.
    public let wrongHost: Pair
    /// An authority that nobody trusts, and a server certificate for `localhost` that it signed.
    public let otherAuthority: Pair
    public let otherServer: Pair
    /// Signed by the authority, with `localhost` as its common name and no subjectAltName.
    public let nameless: Pair
    /// The authority's certificate in DER.
    public let authorityDER: String
    /// A client certificate with the common name `device`.
    public let client: Pair
    /// The client's key, encrypted with `clientKeyPassword`.
    public let encryptedClientKey: String
    public let clientKeyPassword = "sesame"
    /// The client's certificate and key in one PKCS12 file, encrypted with `clientKeyPassword`.
    public let clientPKCS12: String

    private let scratch: ScratchDirectory

    /// Makes everything anew in a scratch directory that lives as long as the result.
    public static func make() async throws -> Certificates {
        try await Certificates()
    }

    /// A broker option with the good server certificate.
    public func brokerTLS(requiresClientCertificate: Bool = false) -> BrokerTLS {
        brokerTLS(server, requiresClientCertificate: requiresClientCertificate)
    }

    /// A broker option with one of the other server certificates.
    public func brokerTLS(_ pair: Pair, requiresClientCertificate: Bool = false) -> BrokerTLS {
        BrokerTLS(
            certificate: pair.certificate, key: pair.key, authority: authority.certificate,
            requiresClientCertificate: requiresClientCertificate)
    }

    private init() async throws {
        let scratch = try ScratchDirectory("certificates")
        self.scratch = scratch
        let maker = Maker(scratch: scratch)
        let here = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"
        authority = try await maker.authority("authority")
        otherAuthority = try await maker.authority("other-authority")
        server = try await maker.signed("server", "localhost", [here], by: authority)
        expired = try await maker.signed("expired", "localhost", [here], by: authority, validDays: -1)
        wrongHost = try await maker.signed(
            "wrong-host", "elsewhere.example", ["subjectAltName=DNS:elsewhere.example"], by: authority)
        otherServer = try await maker.signed("other-server", "localhost", [here], by: otherAuthority)
        selfSigned = try await maker.selfSigned("self-signed", "localhost", [here])
        nameless = try await maker.signed("nameless", "localhost", [], by: authority)
        authorityDER = scratch.file("authority.crt")
        try await maker.openssl("x509", "-in", authority.certificate, "-outform", "DER", "-out", authorityDER)
        client = try await maker.signed("client", "device", ["extendedKeyUsage=clientAuth"], by: authority)

        encryptedClientKey = scratch.file("client-encrypted.key")
        try await maker.openssl(
            "pkcs8", "-topk8", "-in", client.key, "-out", encryptedClientKey, "-passout", "pass:\(clientKeyPassword)")
        clientPKCS12 = scratch.file("client.p12")
        try await maker.openssl(
            "pkcs12", "-export", "-in", client.certificate, "-inkey", client.key, "-out", clientPKCS12, "-passout",
            "pass:\(clientKeyPassword)")
    }
}

/// The calls of `openssl` behind the certificates.
private struct Maker {
    let scratch: ScratchDirectory

    func openssl(_ arguments: String...) async throws {
        try await Tool.run("openssl", arguments, directory: scratch.path).requireSuccess()
    }

    private func key(_ name: String) async throws -> String {
        let path = scratch.file("\(name).key")
        try await openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
        chmod(path, 0o600)
        return path
    }

    func authority(_ name: String) async throws -> Certificates.Pair {
        try await selfSigned(
            name, name, ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"])
    }

    func selfSigned(_ name: String, _ commonName: String, _ extensions: [String]) async throws -> Certificates.Pair {
        let pair = Certificates.Pair(certificate: scratch.file("\(name).pem"), key: try await key(name))
        let added = extensions.flatMap { ["-addext", $0] }
        let arguments = ["req", "-x509", "-new", "-key", pair.key, "-subj", "/CN=\(commonName)", "-days", "30"]
        try await Tool.run("openssl", arguments + added + ["-out", pair.certificate], directory: scratch.path)
            .requireSuccess()
        return pair
    }

    /// - Parameter validDays: counted from now; negative makes a certificate that has expired.
    func signed(
        _ name: String, _ commonName: String, _ extensions: [String], by authority: Certificates.Pair,
        validDays: Int = 30
    ) async throws -> Certificates.Pair {
        let pair = Certificates.Pair(certificate: scratch.file("\(name).pem"), key: try await key(name))
        let request = scratch.file("\(name).csr")
        try await openssl("req", "-new", "-key", pair.key, "-subj", "/CN=\(commonName)", "-out", request)
        let lines = extensions + ["authorityKeyIdentifier=keyid", "subjectKeyIdentifier=hash"]
        let file = try scratch.write(lines.joined(separator: "\n") + "\n", to: "\(name).extensions")
        try await openssl(
            "x509", "-req", "-in", request, "-CA", authority.certificate, "-CAkey", authority.key, "-set_serial",
            "\(UInt32.random(in: 1...UInt32.max))", "-days", "\(validDays)", "-extfile", file, "-out",
            pair.certificate)
        return pair
    }
}

/// The name or address that a server's certificate has to be for.
struct ServerName: Sendable {
    /// Without brackets, zone and final dot.
    let text: String
    let isAddress: Bool

    /// - Throws: `tlsConfiguration` for a name that OpenSSL would take for "do not verify", or cut.
    init(_ host: String) throws(TransportError) {
        var bytes = Array(host.utf8)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if bytes.contains(UInt8(ascii: ":")), let zone = bytes.firstIndex(of: UInt8(ascii: "%")) {
            bytes.removeSubrange(zone...)
        }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        text = String(decoding: bytes, as: UTF8.self)
        guard !bytes.isEmpty, bytes.count <= 253, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            bytes.first != UInt8(ascii: ".")
        else {
            throw TransportError(
                .tlsConfiguration,
                "'\(host)' cannot be looked for in a certificate: give a DNS name in ASCII, or an address")
        }
        var address = in6_addr()
        isAddress = inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1
    }

    var isUnusable: TransportError {
        TransportError(.tlsConfiguration, "'\(text)' cannot be looked for in a certificate")
    }
}

import MessagingHTTPCore
import MessagingWire

/// CONNECT: an HTTP proxy is asked for a tunnel (RFC 9110 section 9.3.6), with Basic authentication (RFC 7617).
struct HTTPConnect: ProxyHandshake {
    let subject: String
    private let request: [UInt8]
    private let hasLogin: Bool
    private var parser: HTTPResponseParser
    private(set) var isDone = false

    init(_ proxy: ProxyServer, host: String, port: UInt16) throws(TransportError) {
        let authority: String
        do throws(HTTPError) {
            authority = try HTTPSyntax.authority(host: host, port: port)
        } catch {
            throw TransportError(.badURL, "An HTTP proxy cannot connect to this host: \(error.message)")
        }
        subject = "The HTTP proxy \(proxy), asked for \(authority),"
        var lines = ["CONNECT \(authority) HTTP/1.1", "Host: \(authority)"]
        if let login = proxy.login {
            // The server could not tell where the name ends.
            guard !login.userName.utf8.contains(UInt8(ascii: ":")) else {
                throw TransportError(
                    .badURL, "The user name for the HTTP proxy \(proxy) contains a colon. Use another user name.")
            }
            let text = Base64.encode(Array("\(login.userName):\(login.password)".utf8))
            lines.append("Proxy-Authorization: Basic \(text)")
        }
        request = Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
        hasLogin = proxy.login != nil
        parser = HTTPResponseParser()
    }

    mutating func begin(wire: inout [UInt8]) {
        wire += request
    }

    mutating func receive(_ bytes: RawSpan, wire: inout [UInt8]) throws(TransportError) -> Int {
        let consumed: Int
        do throws(HTTPError) {
            consumed = try parser.receive(bytes)
        } catch {
            throw TransportError(.proxyFailed, "\(subject) did not reply in HTTP: \(error.message)")
        }
        guard let response = parser.response else { return consumed }
        // Ignore the length in a successful response: the bytes after its head come from the server.
        guard (200..<300).contains(response.status) else { throw refusal(response) }
        isDone = true
        return consumed
    }

    private func refusal(_ response: HTTPResponseHead) -> TransportError {
        let reason = response.reason.prefix(100)
        let words = "\(subject) refused with status \(response.status)\(reason.isEmpty ? "" : " \(reason)")"
        // tinyproxy answers a wrong password with 401.
        guard response.status == 407 || response.status == 401 else {
            return TransportError(.proxyRefused, words + ".")
        }
        let schemes = Self.schemes(in: response.fields)
        if !schemes.isEmpty, !schemes.contains(where: { HTTPSyntax.isEqual($0, "Basic") }) {
            let names = OneLine.text(schemes.prefix(4).joined(separator: " or "), limit: 100)
            return TransportError(
                .proxyCredentialsRefused,
                "\(words). It wants \(names), and only Basic is supported. Use another proxy, or have this one accept Basic."
            )
        }
        return TransportError(
            .proxyCredentialsRefused,
            hasLogin
                ? "\(words). Check the user name and the password in its URL."
                : "\(words). Put a user name and a password into its URL.")
    }

    /// The schemes of the challenges (RFC 9110 section 11.7.1), each once. A member of the list begins a challenge unless it
    /// is a parameter, whose name is followed by an equals sign.
    private static func schemes(in fields: HTTPFields) -> [String] {
        var schemes: [String] = []
        for member in fields.list("Proxy-Authenticate") {
            let words = member.split(separator: " ", maxSplits: 1)
            guard let scheme = words.first, HTTPSyntax.isToken(Array(scheme.utf8)),
                words.count == 1 || !words[1].hasPrefix("=")
            else { continue }
            if !schemes.contains(where: { HTTPSyntax.isEqual($0, String(scheme)) }) { schemes.append(String(scheme)) }
        }
        return schemes
    }
}

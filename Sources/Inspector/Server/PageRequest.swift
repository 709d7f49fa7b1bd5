import MessagingHTTPCore

/// A request to a page server, with what decides whether it may be answered.
package struct PageRequest: Sendable {
    package let method: String
    /// The path without the query and without the token.
    package let path: String
    /// What follows the question mark; nil without one.
    package let query: String?
    /// Whether the path began with the server's token.
    package let hasToken: Bool
    /// What the path began with: `/TOKEN`, or nothing. Redirects have to keep it.
    package let prefix: String
    private let fields: HTTPFields

    /// Nil for requests to proxies, whose target is not a path.
    init?(_ head: HTTPRequestHead, token: PageToken) {
        guard head.target.hasPrefix("/") else { return nil }
        let rest = token.rest(of: head.path)
        method = head.method
        path = rest ?? head.path
        query = head.query
        hasToken = rest != nil
        prefix = hasToken ? "/" + token.text : ""
        fields = head.fields
    }

    /// Whether the answer is the same as to GET, with or without its body.
    package var isRead: Bool { method == "GET" || method == "HEAD" }

    /// The value of the first header field of this name; case does not matter.
    package func field(_ name: String) -> String? { fields.first(name) }

    /// The value of a parameter of the query, percent-decoded; nil if it is not there or not UTF-8.
    package func parameter(_ name: String) -> String? {
        encodedParameter(name).flatMap { PercentEncoding.decode($0) }
    }

    /// Whether the query has a parameter of this name, whatever its value.
    package func hasParameter(_ name: String) -> Bool { encodedParameter(name) != nil }

    private func encodedParameter(_ name: String) -> Substring? {
        let pairs = (query ?? "").split(separator: "&")
        return pairs.first { $0.hasPrefix(name + "=") }?.dropFirst(name.count + 1)
    }

    /// The length of the body in bytes; nil when it is malformed or the body is sent in chunks.
    package var bodyLength: Int? {
        guard fields.all("Transfer-Encoding").isEmpty else { return nil }
        let lengths = fields.all("Content-Length")
        guard let length = lengths.first else { return 0 }
        guard lengths.count == 1, length.utf8.count <= 9, length.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int(length)
    }

    /// Whether this server's own page sent the request, or a person who typed the address: no other site, not even one
    /// whose name was made to resolve to this machine.
    fileprivate var isFromHere: Bool {
        let hosts = fields.all("Host")
        guard hosts.count == 1, Self.isLoopback(hosts[0]) else { return false }
        // Browsers send the first with everything that changes something, and the second with every request.
        let origins = fields.all("Origin")
        let sites = fields.all("Sec-Fetch-Site")
        return origins.allSatisfy { $0 == "http://" + hosts[0] }
            && sites.allSatisfy { ["same-origin", "none"].contains($0) }
            && (isRead || !origins.isEmpty)
    }

    private static func isLoopback(_ host: String) -> Bool {
        ["127.0.0.1", "localhost", "[::1]"].contains { name in
            guard host.hasPrefix(name) else { return false }
            let port = host.dropFirst(name.count)
            return port.isEmpty || port.first == ":" && UInt16(port.dropFirst()) != nil
        }
    }
}

/// A request that this server's own page sent, or a person who typed the address. Nothing else gets an answer with content:
/// whatever makes one demands this type, which is made here alone.
@dynamicMemberLookup
package struct AdmittedRequest: Sendable {
    private let request: PageRequest

    /// Nil for a request of another site, even if its name was made to resolve to this machine.
    init?(_ request: PageRequest) {
        guard request.isFromHere else { return nil }
        self.request = request
    }

    package subscript<Value>(dynamicMember path: KeyPath<PageRequest, Value>) -> Value { request[keyPath: path] }

    /// See ``PageRequest/parameter(_:)``.
    package func parameter(_ name: String) -> String? { request.parameter(name) }

    /// See ``PageRequest/hasParameter(_:)``.
    package func hasParameter(_ name: String) -> Bool { request.hasParameter(name) }

    /// See ``PageRequest/field(_:)``.
    package func field(_ name: String) -> String? { request.field(name) }
}

/// The secret part of a page's address: who does not know the address gets nothing.
struct PageToken: Sendable {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    /// Characters of 62: 119 random bits.
    private static let length = 20

    let text: String

    init() {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<Self.length).map { _ in Self.alphabet.randomElement(using: &generator)! }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// The path behind `/TOKEN`; nil when the path does not begin with this token.
    ///
    /// Takes the same time for every wrong token.
    func rest(of path: String) -> String? {
        let path = Array(path.utf8)
        let expected = Array(("/" + text).utf8)
        guard path.count >= expected.count else { return nil }
        var difference: UInt8 = 0
        for index in expected.indices { difference |= path[index] ^ expected[index] }
        let rest = path[expected.count...]
        guard difference == 0, rest.isEmpty || rest.first == UInt8(ascii: "/") else { return nil }
        return String(decoding: rest, as: UTF8.self)
    }
}

/// Percent-encoding of the parts of a query (RFC 3986, section 2.1).
package enum PercentEncoding {
    /// Encodes everything but letters, digits and `-./:_`.
    package static func encode(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x3A, 0x5F: String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }.joined()
    }

    /// Nil when a percent sign is not followed by two hexadecimal digits, or the result is not UTF-8.
    package static func decode(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(UnicodeScalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}

import HTTPCore

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
        for pair in (query ?? "").split(separator: "&") where pair.hasPrefix(name + "=") {
            return PercentEncoding.decode(pair.dropFirst(name.count + 1))
        }
        return nil
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
    package var isFromHere: Bool {
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

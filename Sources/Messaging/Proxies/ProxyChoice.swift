package import Transport

/// Chooses the proxy for a server, if there is one.
package struct ProxyChoice: Sendable {
    private let proxy: Result<ProxyServer?, TransportError>
    private let exceptions: ProxyExceptions

    /// - Parameter variable: reads a variable of the environment; called only by this initializer.
    package init(_ proxy: Proxy, variable: (String) -> String?) {
        var exceptions = ProxyExceptions("")
        self.proxy = Result { () throws(TransportError) in
            switch proxy.kind {
            case .none:
                return nil
            case .http(let url):
                return try ProxyURL.read(url, kind: .http, origin: "the proxy")
            case .socks5(let url):
                return try ProxyURL.read(url, kind: .socks5, origin: "the proxy")
            case .environment:
                let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
                guard let name = names.first(where: { Self.value($0, variable) != nil }),
                    let url = Self.value(name, variable)
                else { return nil }
                exceptions = ProxyExceptions(Self.value("no_proxy", variable) ?? Self.value("NO_PROXY", variable) ?? "")
                return try ProxyURL.read(url, kind: nil, origin: "the environment's \(name)")
            }
        }
        self.exceptions = exceptions
    }

    /// - Throws: ``TransportError`` if the proxy's URL is invalid.
    package func proxy(for endpoint: Endpoint) throws(TransportError) -> ProxyServer? {
        guard case .host(let host, let port) = endpoint, !exceptions.contain(host, port: port) else { return nil }
        return try proxy.get()
    }

    /// The value of a variable that is set and not empty.
    private static func value(_ name: String, _ variable: (String) -> String?) -> String? {
        variable(name).flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// The servers that `no_proxy` names.
struct ProxyExceptions: Sendable {
    private struct Entry {
        var name: String
        var literal: IPLiteral?
        var port: UInt16?
    }

    private let entries: [Entry]
    private let isEverything: Bool

    init(_ list: String) {
        let words = list.lowercased().split { $0 == "," || $0.isWhitespace }.map(String.init)
        isEverything = words.contains("*")
        entries = words.compactMap(Self.entry)
    }

    private static func entry(_ word: String) -> Entry? {
        // An IPv6 address without brackets can have no port.
        if let literal = IPLiteral(word) { return Entry(name: word, literal: literal) }
        guard let authority = try? URLAuthority(Array(word.utf8)[...]) else { return nil }
        return Entry(name: plain(authority.host), literal: IPLiteral(authority.host), port: authority.port)
    }

    /// The name without `*.` or `.` at its beginning (every name includes those below it) and without the root's dot.
    private static func plain(_ name: String) -> String {
        var name = name[...]
        if name.hasPrefix("*.") { name = name.dropFirst() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        if name.hasSuffix(".") { name = name.dropLast() }
        return String(name)
    }

    func contain(_ host: String, port: UInt16) -> Bool {
        if isEverything { return true }
        let literal = IPLiteral(host)
        let name = Self.plain(host.lowercased())
        return entries.contains { entry in
            guard entry.port == nil || entry.port == port else { return false }
            if let literal { return entry.literal == literal }
            return !entry.name.isEmpty && (name == entry.name || name.hasSuffix(".\(entry.name)"))
        }
    }
}

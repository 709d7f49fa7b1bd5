/// The head of an HTTP/1.1 request.
package struct PageRequest: Sendable, Equatable {
    /// Larger heads are refused.
    package static let largestHead = 8 * 1024

    package let method: String
    /// Without the query.
    package let path: String
    /// What follows the question mark; nil without one.
    package let query: String?
    package var hasQuery: Bool { query != nil }
    /// With names in lower case.
    private let fields: [(name: String, value: String)]

    /// Reads a head that ends with an empty line; nil when it is no HTTP/1 request.
    package init?(head: [UInt8]) {
        let lines = head.split(separator: 0x0A).map { $0.last == 0x0D ? $0.dropLast() : $0 }
        guard let line = lines.first, let text = String(validating: line, as: UTF8.self) else { return nil }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), parts[1].hasPrefix("/") else { return nil }
        method = String(parts[0])
        let target = parts[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(target[0])
        query = target.count > 1 ? String(target[1]) : nil
        fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
            let isBlank = { (character: Character) in character == " " || character == "\t" }
            return (
                String(decoding: line[..<colon], as: UTF8.self).lowercased(),
                String(value.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
            )
        }
    }

    package static func == (left: PageRequest, right: PageRequest) -> Bool {
        left.method == right.method && left.path == right.path && left.query == right.query
            && left.fields.elementsEqual(right.fields, by: ==)
    }

    /// The values of a header field.
    ///
    /// - Parameter name: In lower case.
    package func values(of name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    /// The value of a parameter of the query, as it stands there.
    package func parameter(_ name: String) -> Substring? {
        for pair in (query ?? "").split(separator: "&") where pair.hasPrefix(name + "=") {
            return pair.dropFirst(name.count + 1)
        }
        return nil
    }

    /// Whether a page of this very server sent it, or somebody who typed the address: no other site, not even one whose
    /// name has been made to lead to this machine.
    package var isFromHere: Bool {
        let hosts = values(of: "host")
        guard hosts.count == 1, Self.isLoopback(hosts[0]) else { return false }
        // Browsers send the first with everything that changes something, and the second with every request.
        let origins = values(of: "origin")
        let sites = values(of: "sec-fetch-site")
        return origins.allSatisfy { $0 == "http://" + hosts[0] }
            && sites.allSatisfy { ["same-origin", "none"].contains($0) }
            && (method == "GET" || !origins.isEmpty)
    }

    private static func isLoopback(_ host: String) -> Bool {
        ["127.0.0.1", "localhost", "[::1]"].contains { name in
            guard host.hasPrefix(name) else { return false }
            let port = host.dropFirst(name.count)
            return port.isEmpty || port.first == ":" && UInt16(port.dropFirst()) != nil
        }
    }

    /// The number of bytes up to and including the empty line; nil while it has not come.
    static func headLength(in bytes: RawSpan) -> Int? {
        var lineIsEmpty = false
        for index in 0..<bytes.byteCount {
            switch bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self) {
            case 0x0A where lineIsEmpty: return index + 1
            case 0x0A: lineIsEmpty = true
            case 0x0D: break
            default: lineIsEmpty = false
            }
        }
        return nil
    }
}

/// The start line and the header fields of a request.
package struct HTTPRequestHead: Sendable, Hashable {
    package var method: String
    /// The target in the request line: path and query, or a whole URL as in a request to a proxy.
    package var target: String
    /// The path of the target, still percent-encoded.
    package var path: String
    /// The part of the target after its question mark; nil without one.
    package var query: String?
    /// The x of HTTP/1.x.
    package var minorVersion: Int
    package var fields: HTTPFields

    init(startLine: [UInt8], fields: HTTPFields) throws(HTTPError) {
        let parts = startLine.split(separator: HTTPSyntax.space, omittingEmptySubsequences: false)
        guard parts.count == 3, HTTPSyntax.isToken(parts[0]), let minor = HTTPSyntax.minorVersion(of: parts[2]) else {
            throw HTTPError(.notHTTP, "The first line is not a request of HTTP/1.")
        }
        let target = parts[1]
        guard !target.isEmpty, target.allSatisfy(HTTPSyntax.isInTarget) else {
            throw HTTPError(.malformedHead, "The request target is empty or not ASCII.")
        }
        method = HTTPSyntax.text(parts[0])
        self.target = HTTPSyntax.text(target)
        minorVersion = minor
        self.fields = fields
        let origin = Self.originForm(of: target)
        let question = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
        path = HTTPSyntax.text(origin[..<question])
        query = question < origin.endIndex ? HTTPSyntax.text(origin[(question + 1)...]) : nil
    }

    /// Without scheme and authority, if the target has them (section 4.2.1 item 1).
    private static func originForm(of target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard target.first != UInt8(ascii: "/") else { return target }
        for scheme in ["http://", "https://", "ws://", "wss://"] {
            guard HTTPSyntax.isEqual(HTTPSyntax.text(target.prefix(scheme.utf8.count)), scheme) else { continue }
            let rest = target.dropFirst(scheme.utf8.count)
            let path = rest.drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            return path.first == UInt8(ascii: "/") ? path : ArraySlice("/".utf8 + Array(path))
        }
        return target
    }
}
/// Reads the head of one request that arrives in pieces; the bytes after it are left to the caller.
package struct HTTPRequestParser: Sendable {
    /// The request, once its head is complete.
    package private(set) var request: HTTPRequestHead?
    private var head: HTTPHeadParser

    package init(limits: HTTPHeadLimits = HTTPHeadLimits()) {
        head = HTTPHeadParser(limits: limits)
    }

    /// Takes bytes up to the end of the head and returns how many; none once `request` is set.
    ///
    /// - Throws: `notHTTP` as early as the first line allows, `malformedHead`, `headTooLarge`. Answer a
    ///   peer that speaks HTTP with status 400 or 431.
    package mutating func receive(_ bytes: RawSpan) throws(HTTPError) -> Int {
        guard request == nil else { return 0 }
        let consumed = try head.receive(bytes)
        if head.isComplete {
            request = try HTTPRequestHead(startLine: head.startLine, fields: head.fields)
        }
        return consumed
    }
}

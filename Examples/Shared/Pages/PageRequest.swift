/// The head of an HTTP/1.1 request, of which a server of a few files needs one line.
package struct PageRequest: Sendable, Equatable {
    /// Larger heads are refused.
    package static let largestHead = 8 * 1024

    package let method: String
    /// Without the query.
    package let path: String
    package let hasQuery: Bool

    /// Reads a head that ends with an empty line; nil when it is no HTTP/1 request.
    package init?(head: [UInt8]) {
        guard let line = head.split(separator: 0x0A, maxSplits: 1).first,
            let text = String(validating: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        else { return nil }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), parts[1].hasPrefix("/") else { return nil }
        method = String(parts[0])
        let target = parts[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(target[0])
        hasQuery = target.count > 1
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

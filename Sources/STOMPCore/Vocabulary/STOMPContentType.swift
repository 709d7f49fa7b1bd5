import MessagingWire

/// A `content-type` header, and how a body is read as text according to it (STOMP 1.2 "Header content-type").
///
/// Without the header a body is bytes and nothing more. `text/*` without a charset is UTF-8.
public struct STOMPContentType: Sendable, Hashable, CustomStringConvertible {
    /// Type and subtype in small letters, without parameters.
    public let mediaType: String
    /// The charset in small letters, where one is named.
    public let charset: String?
    /// The header as it was.
    public let description: String

    public init(_ header: String) {
        description = header
        var parts = header.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
        mediaType = Self.lowered(parts.popFirst() ?? header.utf8[...])
        var charset: String?
        for parameter in parts {
            let pair = parameter.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, charset == nil, Self.lowered(pair[0]) == "charset" else { continue }
            let value = Self.lowered(pair[1]).utf8.filter { $0 != UInt8(ascii: "\"") }
            charset = String(decoding: value, as: UTF8.self)
        }
        self.charset = charset
    }

    private static func lowered(_ part: Substring.UTF8View) -> String {
        let trimmed = String(Substring(part)).trimmingBlanks()
        return String(decoding: trimmed.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Whether the body is meant as text: `text/*`, or anything that names a charset.
    public var isText: Bool { charset != nil || mediaType.utf8.starts(with: "text/".utf8) }

    /// The body as text in its charset. Nil when it is not text, not in that charset, or the charset is not known here:
    /// UTF-8, US-ASCII, ISO-8859-1 and UTF-16 are.
    public func text(of body: some Collection<UInt8>) -> String? {
        guard isText else { return nil }
        switch charset {
        case nil, "utf-8", "utf8": return String(validating: body, as: UTF8.self)
        case "us-ascii": return body.allSatisfy { $0 < 0x80 } ? String(decoding: body, as: UTF8.self) : nil
        case "iso-8859-1", "latin1":
            var text = ""
            text.unicodeScalars.append(contentsOf: body.lazy.map { Unicode.Scalar($0) })
            return text
        case "utf-16", "utf-16be": return Self.utf16(body, isBigEndian: true)
        case "utf-16le": return Self.utf16(body, isBigEndian: false)
        default: return nil
        }
    }

    /// UTF-16 with its byte order mark honoured.
    private static func utf16(_ body: some Collection<UInt8>, isBigEndian: Bool) -> String? {
        var bytes = Array(body)
        var isBigEndian = isBigEndian
        if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
            isBigEndian = bytes[0] == 0xFE
            bytes.removeFirst(2)
        }
        guard bytes.count % 2 == 0 else { return nil }
        let units = stride(from: 0, to: bytes.count, by: 2).map { index in
            let first = UInt16(bytes[index])
            let second = UInt16(bytes[index + 1])
            return isBigEndian ? first << 8 | second : second << 8 | first
        }
        return String(validating: units, as: UTF16.self)
    }
}

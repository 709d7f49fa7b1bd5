/// The few rules of HTTP/1.1 (RFC 9110 section 5.6, RFC 9112) that an opening handshake needs, on bytes.
enum HTTPSyntax {
    static let space = UInt8(ascii: " ")
    static let comma = UInt8(ascii: ",")
    static let colon = UInt8(ascii: ":")

    /// Whether `text` is a token: a name of a field, a method or a sub-protocol.
    static func isToken(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty && text.allSatisfy(isTokenByte)
    }

    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Whether a field's value may hold `byte`: anything but control characters; a tab is fine.
    static func isValueByte(_ byte: UInt8) -> Bool {
        byte == 9 || byte >= 0x20 && byte != 0x7F
    }

    /// Without spaces and tabs at both ends.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank = { (byte: UInt8) in byte == space || byte == 9 }
        var bytes = bytes.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return bytes
    }

    /// Text for people and for comparison: UTF-8 if it is that, else ISO 8859-1, which RFC 9110 calls historical.
    static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(decoding: bytes.map(UInt16.init), as: UTF16.self)
    }

    /// The version in a start line, if it is HTTP/1.x: its minor number.
    static func minorVersion(of version: ArraySlice<UInt8>) -> Int? {
        guard version.count == 8, version.starts(with: "HTTP/1.".utf8), let last = version.last else { return nil }
        guard last >= UInt8(ascii: "0") && last <= UInt8(ascii: "9") else { return nil }
        return Int(last - UInt8(ascii: "0"))
    }

    /// Whether two texts are the same bytes; `==` would also equate what looks alike in Unicode.
    static func isSame(_ left: String, _ right: String) -> Bool {
        left.utf8.elementsEqual(right.utf8)
    }

    /// Whether two texts are equal apart from the case of ASCII letters.
    static func isEqual(_ left: String, _ right: String) -> Bool {
        left.utf8.elementsEqual(right.utf8) { lowercased($0) == lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}

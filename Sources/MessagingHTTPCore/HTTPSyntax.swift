import MessagingWire

/// The rules of HTTP/1.1 (RFC 9110 section 5.6, RFC 9112) that heads need, on bytes.
package enum HTTPSyntax {
    package static let space = UInt8(ascii: " ")
    package static let comma = UInt8(ascii: ",")
    package static let colon = UInt8(ascii: ":")

    /// Whether `text` is a token: the name of a field, a method or a sub-protocol.
    package static func isToken(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty && text.allSatisfy(isTokenByte)
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Whether a field's value may contain `byte`: anything but control characters, except the tab.
    static func isValueByte(_ byte: UInt8) -> Bool {
        byte == 9 || byte >= 0x20 && byte != 0x7F
    }

    /// `bytes` without spaces and tabs at both ends.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank = { (byte: UInt8) in byte == space || byte == 9 }
        var bytes = bytes.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return bytes
    }

    /// Text for people and for comparison: UTF-8 if it is valid, else ISO 8859-1, which RFC 9110 calls historical.
    package static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? String(decoding: bytes.map(UInt16.init), as: UTF16.self)
    }

    /// Whether a request target may have this byte: the visible characters of ASCII.
    package static func isInTarget(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    /// The minor version x of a start line's HTTP/1.x; nil for anything else.
    static func minorVersion(of version: ArraySlice<UInt8>) -> Int? {
        guard version.count == 8, version.starts(with: "HTTP/1.".utf8), let last = version.last else { return nil }
        guard last >= UInt8(ascii: "0") && last <= UInt8(ascii: "9") else { return nil }
        return Int(last - UInt8(ascii: "0"))
    }

    /// Whether two texts are equal apart from the case of ASCII letters.
    package static func isEqual(_ left: String, _ right: String) -> Bool {
        left.utf8.elementsEqual(right.utf8) { lowercased($0) == lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    /// Appends a line of a head with its end.
    package static func appendLine(_ line: String, to output: inout [UInt8]) {
        output.append(contentsOf: line.utf8)
        output.append(contentsOf: "\r\n".utf8)
    }

    /// The value of a Host field (RFC 9110 section 7.2).
    ///
    /// - Parameters:
    ///   - host: a name or an address; an IPv6 literal with or without brackets. Its zone is left out.
    ///   - port: nil for the scheme's own port, which is not written.
    /// - Throws: `invalidHost`.
    package static func authority(host: String, port: UInt16?) throws(HTTPError) -> String {
        var name = Array(host.utf8)
        if name.first == UInt8(ascii: "["), name.last == UInt8(ascii: "]") {
            name = Array(name.dropFirst().dropLast())
        }
        let isIPv6 = name.contains(colon)
        // A zone has a meaning on this machine alone (RFC 6874 section 4).
        if isIPv6, let zone = name.firstIndex(of: UInt8(ascii: "%")) { name.removeSubrange(zone...) }
        let forbidden = Array("%/?#@[]\\\"<>^`{|}".utf8)
        let isAllowed = { (byte: UInt8) in
            isIPv6
                ? Character(Unicode.Scalar(byte)).isHexDigit || ":.".utf8.contains(byte)
                : byte > 0x20 && byte < 0x7F && !forbidden.contains(byte)
        }
        guard !name.isEmpty, name.allSatisfy(isAllowed) else {
            throw HTTPError(
                .invalidHost,
                "\"\(host)\" cannot be written into a Host field. Give the port separately, and names in ASCII (punycode).\(Punycode.advice(on: host))"
            )
        }
        let text = text(name[...])
        return (isIPv6 ? "[\(text)]" : text) + (port.map { ":\($0)" } ?? "")
    }
}

/// The identifiers and punctuation of Swift source, without comments, strings, attributes and directives.
///
/// Enough of the grammar to find declarations; it does not check anything. `->` and `<<` are tokens of their own, so that
/// a `<` or `>` that remains belongs to generic arguments.
struct SwiftTokens {
    private let source: [UInt8]
    private var position = 0
    private(set) var tokens: [String] = []

    init(_ text: String) {
        source = Array(text.utf8)
        while position < source.count { readToken() }
    }

    private func byte(_ offset: Int = 0) -> UInt8 {
        position + offset < source.count ? source[position + offset] : 0
    }

    private func isAt(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> Bool {
        byte() == UInt8(ascii: first) && byte(1) == UInt8(ascii: second)
    }

    /// For each byte, whether it may be part of a name: a table, because unoptimized code reads a megabyte of sources.
    private static let partsOfNames: [Bool] = (0..<256).map { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A, 0x80...: true
        default: false
        }
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool { partsOfNames[Int(byte)] }

    private mutating func readToken() {
        let first = source[position]
        if first <= UInt8(ascii: " ") {
            position += 1
        } else if Self.isPartOfName(first) {
            tokens.append(readName())
        } else if isAt("/", "/") {
            position = source[position...].firstIndex(of: UInt8(ascii: "\n")) ?? source.count
        } else if isAt("/", "*") {
            skipComment()
        } else if first == UInt8(ascii: "\"") || startsRawString {
            skipString()
        } else if first == UInt8(ascii: "@") || first == UInt8(ascii: "#") {
            position += 1
            _ = readName()
            if byte() == UInt8(ascii: "(") { skipParentheses() }
        } else if first == UInt8(ascii: "`") {
            position += 1
            tokens.append(readName())
            position += 1
        } else if isAt("-", ">") || isAt("<", "<") {
            tokens.append(String(decoding: source[position..<position + 2], as: UTF8.self))
            position += 2
        } else {
            tokens.append(String(UnicodeScalar(first)))
            position += 1
        }
    }

    private mutating func readName() -> String {
        let start = position
        while position < source.count, Self.isPartOfName(source[position]) { position += 1 }
        return String(decoding: source[start..<position], as: UTF8.self)
    }

    private mutating func skipComment() {
        var depth = 0
        repeat {
            if isAt("/", "*") {
                depth += 1
                position += 2
            } else if isAt("*", "/") {
                depth -= 1
                position += 2
            } else {
                position += 1
            }
        } while depth > 0 && position < source.count
    }

    private mutating func skipParentheses() {
        var depth = 0
        repeat {
            if byte() == UInt8(ascii: "\"") {
                skipString()
                continue
            }
            if byte() == UInt8(ascii: "(") { depth += 1 }
            if byte() == UInt8(ascii: ")") { depth -= 1 }
            position += 1
        } while depth > 0 && position < source.count
    }

    private var startsRawString: Bool {
        var offset = 0
        while byte(offset) == UInt8(ascii: "#") { offset += 1 }
        return offset > 0 && byte(offset) == UInt8(ascii: "\"")
    }

    /// Skips a string with what is interpolated in it.
    private mutating func skipString() {
        var hashes = 0
        while byte() == UInt8(ascii: "#") {
            hashes += 1
            position += 1
        }
        let quotes = isAt("\"", "\"") && byte(2) == UInt8(ascii: "\"") ? 3 : 1
        position += quotes
        let raw = Array(repeating: UInt8(ascii: "#"), count: hashes)
        let end = Array(repeating: UInt8(ascii: "\""), count: quotes) + raw
        let escape = [UInt8(ascii: "\\")] + raw
        while position < source.count {
            if source[position...].starts(with: end) {
                position += end.count
                return
            }
            if source[position...].starts(with: escape) {
                position += escape.count
                if byte() == UInt8(ascii: "(") { skipParentheses() } else { position += 1 }
            } else {
                position += 1
            }
        }
    }
}

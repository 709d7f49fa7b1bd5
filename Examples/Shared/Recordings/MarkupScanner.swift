import Foundation

/// Splits an XML file into tags and text, and goes on behind what is not well-formed: people's files are cut off, patched
/// together and padded, and what matters in them is readable all the same.
///
/// The system's XML library stops at the first mistake, so it cannot do this.
struct MarkupScanner {
    enum Token {
        case start(String, attributes: [(name: String, value: String)], isEmpty: Bool, problem: String?)
        case end(String)
        case text(String, problem: String?)
        /// Something that is no XML, which is passed over.
        case mistake(String)
    }

    /// UTF-8, or one byte per character.
    let bytes: [UInt8]
    /// Where the last token begins.
    private(set) var start = 0
    /// Whether text is wanted: it is passed over where nobody needs it.
    var readsText = false
    private var position = 0
    /// The line feeds before `counted`: no byte is counted twice.
    private var lineFeeds = 0
    private var counted = 0
    private let encoding: String.Encoding

    /// - Parameter contents: The whole file, in UTF-8 with a byte order mark, or in the encoding that it declares.
    init(_ contents: [UInt8]) {
        bytes = contents
        let hasMark = bytes.starts(with: [0xEF, 0xBB, 0xBF])
        encoding = hasMark ? .utf8 : Self.declared(bytes)
        if hasMark { position = 3 }
    }

    /// The line, from 1, where the last token begins.
    mutating func line() -> Int {
        while counted < start {
            if bytes[counted] == UInt8(ascii: "\n") { lineFeeds += 1 }
            counted += 1
        }
        return 1 + lineFeeds
    }

    /// The last line that is not blank.
    mutating func lastLine() -> Int {
        start = bytes.lastIndex { $0 > 0x20 } ?? 0
        return line()
    }

    mutating func next() -> Token? {
        while position < bytes.count {
            start = position
            if bytes[position] != UInt8(ascii: "<") {
                let text = take(upTo: UInt8(ascii: "<"))
                if readsText {
                    // A mistake in it is where its first word is.
                    start += text.prefix(while: Self.isBlank).count
                    return Self.unescaped(decoded(text))
                }
                continue
            }
            switch position + 1 < bytes.count ? bytes[position + 1] : 0 {
            case UInt8(ascii: "?"): skip(past: "?>")
            case UInt8(ascii: "!") where takes("<!--"): skip(past: "-->")
            case UInt8(ascii: "!") where takes("<![CDATA["):
                let first = position
                skip(past: "]]>")
                if readsText { return .text(decoded(bytes[first..<max(first, position - 3)]), problem: nil) }
            case UInt8(ascii: "!"): skipDeclaration()
            case UInt8(ascii: "/"):
                position += 2
                let name = name()
                let blanks = take(upTo: UInt8(ascii: ">"), orBefore: UInt8(ascii: "<"))
                guard position < bytes.count else { return nil }
                if bytes[position] == UInt8(ascii: ">") { position += 1 }
                return blanks.allSatisfy(Self.isBlank) ? .end(name) : .mistake("a tag without its closing >")
            default:
                position += 1
                guard position < bytes.count else { return nil }
                let name = name()
                return name.isEmpty ? .mistake("a < that is not written &lt;") : startTag(name)
            }
        }
        return nil
    }

    // MARK: Tags

    /// Nil where the file ends inside the tag.
    private mutating func startTag(_ name: String) -> Token? {
        var attributes: [(name: String, value: String)] = []
        var problem: String?
        while true {
            skipBlanks()
            guard position < bytes.count else { return nil }
            switch bytes[position] {
            case UInt8(ascii: ">"):
                position += 1
                return .start(name, attributes: attributes, isEmpty: false, problem: problem)
            case UInt8(ascii: "/"):
                position += 1
                guard position < bytes.count else { return nil }
                guard bytes[position] == UInt8(ascii: ">") else { continue }
                position += 1
                return .start(name, attributes: attributes, isEmpty: true, problem: problem)
            case UInt8(ascii: "<"):
                return .start(
                    name, attributes: attributes, isEmpty: false, problem: problem ?? "a tag without its closing >")
            default:
                let key = self.name()
                guard !key.isEmpty else {
                    problem = problem ?? "a character that does not belong into a tag"
                    position += 1
                    continue
                }
                skipBlanks()
                guard position < bytes.count else { return nil }
                guard bytes[position] == UInt8(ascii: "=") else {
                    problem = problem ?? "an attribute without a value"
                    continue
                }
                position += 1
                skipBlanks()
                guard position < bytes.count else { return nil }
                let quote = bytes[position]
                guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
                    problem = problem ?? "the value of an attribute is not in quotes"
                    _ = self.name()
                    continue
                }
                position += 1
                let value = take(upTo: quote, orBefore: UInt8(ascii: "<"))
                guard position < bytes.count else { return nil }
                if bytes[position] == quote {
                    position += 1
                } else {
                    problem = problem ?? "the value of an attribute has no closing quote"
                }
                if attributes.contains(where: { $0.name == key }) {
                    problem = problem ?? "an attribute is given twice"
                }
                attributes.append((key, String(decoding: value, as: UTF8.self)))
            }
        }
    }

    /// The name here without its prefix: which prefix stands for GPX does not matter.
    private mutating func name() -> String {
        let first = position
        var local = position
        while position < bytes.count {
            switch bytes[position] {
            case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, 0x80...0xFF, UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                position += 1
            case UInt8(ascii: ":") where position > first:
                position += 1
                local = position
            default: return String(decoding: bytes[local..<position], as: UTF8.self)
            }
        }
        return String(decoding: bytes[local..<position], as: UTF8.self)
    }

    /// A document type, with the declarations inside it.
    private mutating func skipDeclaration() {
        var depth = 0
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: "[") { depth += 1 }
            if byte == UInt8(ascii: "]") { depth -= 1 }
            if byte == UInt8(ascii: ">"), depth <= 0 { return }
        }
    }

    // MARK: Bytes

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    private mutating func skipBlanks() {
        while position < bytes.count, Self.isBlank(bytes[position]) { position += 1 }
    }

    private mutating func take(upTo end: UInt8, orBefore other: UInt8? = nil) -> ArraySlice<UInt8> {
        let first = position
        let other = other ?? end
        while position < bytes.count, bytes[position] != end, bytes[position] != other { position += 1 }
        return bytes[first..<position]
    }

    private mutating func takes(_ text: StaticString) -> Bool {
        let text = text.description.utf8
        guard bytes[position...].prefix(text.count).elementsEqual(text) else { return false }
        position += text.count
        return true
    }

    private mutating func skip(past text: String) {
        let last = text.utf8.last
        while position < bytes.count {
            position += 1
            if bytes[position - 1] == last, bytes[..<position].suffix(text.utf8.count).elementsEqual(text.utf8) {
                return
            }
        }
    }

    // MARK: Characters

    /// What the XML declaration says. Only names need it: all else is ASCII.
    private static func declared(_ bytes: [UInt8]) -> String.Encoding {
        let head = String(decoding: bytes.prefix(512), as: UTF8.self)
        guard let name = head.firstMatch(of: /<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._\-]+)["']/)?.1 else {
            return .utf8
        }
        return switch name.lowercased() {
        case "utf-8", "utf8", "us-ascii", "ascii", "utf-16": .utf8
        case "iso-8859-2", "latin2": .isoLatin2
        case "windows-1250", "cp1250": .windowsCP1250
        case "windows-1251", "cp1251": .windowsCP1251
        case "windows-1253", "cp1253": .windowsCP1253
        case "windows-1254", "cp1254": .windowsCP1254
        default: .windowsCP1252
        }
    }

    private func decoded(_ text: ArraySlice<UInt8>) -> String {
        if encoding != .utf8, let text = String(bytes: text, encoding: encoding) { return text }
        return String(recorded: text)
    }

    /// The text with characters in the place of their references. A & that begins none is one.
    private static func unescaped(_ text: String) -> Token {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return .text(text, problem: nil) }
        var (result, rest, problem) = ("", text[...], String?.none)
        while let mark = rest.firstIndex(of: "&") {
            result += rest[..<mark]
            rest = rest[rest.index(after: mark)...]
            guard let end = rest.prefix(12).firstIndex(of: ";"), let character = character(rest[..<end]) else {
                problem = problem ?? "a & that is not written &amp;, or a name that XML does not know"
                result += "&"
                continue
            }
            result.unicodeScalars.append(character)
            rest = rest[rest.index(after: end)...]
        }
        return .text(result + rest, problem: problem)
    }

    private static func character(_ name: Substring) -> Unicode.Scalar? {
        switch name {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case _ where name.hasPrefix("#x"): UInt32(name.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
        case _ where name.hasPrefix("#"): UInt32(name.dropFirst()).flatMap(Unicode.Scalar.init)
        default: nil
        }
    }
}

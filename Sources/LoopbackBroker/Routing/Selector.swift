import MessagingWire
import STOMPCore

/// The small part of the selector language that is understood here: comparisons of a header with text, joined by AND.
///
///     country IN ('FR', 'DE') AND priority <> '0'
struct Selector: Sendable {
    private struct Term {
        var header: String
        var values: [String]
        /// Whether the value has to be one of the values, or none of them.
        var isIn: Bool
    }

    /// As the client wrote it.
    let text: ByteKey
    private let terms: [Term]

    /// Nil when the text is anything else.
    init?(_ text: String) {
        guard var tokens = Self.tokens(text)?[...] else { return nil }
        var terms: [Term] = []
        repeat {
            guard let term = Self.term(&tokens) else { return nil }
            terms.append(term)
        } while Self.take("AND", &tokens)
        guard tokens.isEmpty else { return nil }
        self.text = ByteKey(text)
        self.terms = terms
    }

    /// Whether a message with these headers is wanted. A header that is missing is neither equal nor unequal to
    /// anything.
    func accepts(_ headers: STOMPHeaders) -> Bool {
        terms.allSatisfy { term in
            guard let value = headers[term.header] else { return false }
            return term.values.contains { $0.hasSameBytes(as: value) } == term.isIn
        }
    }

    private enum Token: Equatable {
        case word(String)
        case text(String)
        case sign(String)
    }

    private static func term(_ tokens: inout ArraySlice<Token>) -> Term? {
        guard case .word(let header)? = tokens.popFirst() else { return nil }
        if take("=", &tokens) { return value(&tokens).map { Term(header: header, values: [$0], isIn: true) } }
        if take("<>", &tokens) { return value(&tokens).map { Term(header: header, values: [$0], isIn: false) } }
        let isIn = !take("NOT", &tokens)
        guard take("IN", &tokens), take("(", &tokens) else { return nil }
        var values: [String] = []
        repeat {
            guard let value = value(&tokens) else { return nil }
            values.append(value)
        } while take(",", &tokens)
        return take(")", &tokens) ? Term(header: header, values: values, isIn: isIn) : nil
    }

    private static func value(_ tokens: inout ArraySlice<Token>) -> String? {
        guard let token = tokens.popFirst() else { return nil }
        switch token {
        case .text(let text): return text
        // Numbers are compared as they are written.
        case .word(let word): return Int(word) == nil ? nil : word
        case .sign: return nil
        }
    }

    private static func take(_ wanted: String, _ tokens: inout ArraySlice<Token>) -> Bool {
        switch tokens.first {
        case .word(let word) where word.uppercased() == wanted: break
        case .sign(wanted): break
        default: return false
        }
        tokens.removeFirst()
        return true
    }

    private static func tokens(_ text: String) -> [Token]? {
        var tokens: [Token] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.first {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                rest.removeFirst()
            case UInt8(ascii: "'"):
                guard let text = quoted(&rest) else { return nil }
                tokens.append(.text(text))
            case UInt8(ascii: "="), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ","):
                tokens.append(.sign(String(UnicodeScalar(byte))))
                rest.removeFirst()
            case UInt8(ascii: "<"):
                guard rest.starts(with: "<>".utf8) else { return nil }
                tokens.append(.sign("<>"))
                rest.removeFirst(2)
            default:
                let word = rest.prefix { !" \t'=(),<>".utf8.contains($0) }
                guard !word.isEmpty else { return nil }
                tokens.append(.word(String(decoding: word, as: UTF8.self)))
                rest.removeFirst(word.count)
            }
        }
        return tokens
    }

    /// Text in quotes; a quote inside is written twice.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> String? {
        var text: [UInt8] = []
        rest.removeFirst()
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "'") else {
                text.append(byte)
                continue
            }
            guard rest.first == byte else { return String(decoding: text, as: UTF8.self) }
            text.append(byte)
            rest.removeFirst()
        }
        return nil
    }
}

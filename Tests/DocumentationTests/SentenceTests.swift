import Foundation
import Testing

/// Where engines and clients decide, they name the case of an error; what people read is in a file of sentences of each
/// module, where it can be reviewed as prose.
@Suite struct SentenceTests {
    @Test(arguments: ["MQTTCore/Engine", "MQTT/Loop", "STOMPCore/Engine", "STOMP/Loop"])
    func `no text for people is where a decision is made`(folder: String) throws {
        let place = DocumentationPage.root.appending(path: "Sources").appending(path: folder)
        let files = try FileManager.default.contentsOfDirectory(atPath: place.path).filter { $0.hasSuffix(".swift") }
        #expect(!files.isEmpty)
        for file in files {
            var reader = SwiftTextReader(try String(contentsOf: place.appending(path: file), encoding: .utf8))
            for text in reader.textsForPeople() {
                Issue.record("\(folder)/\(file):\(text.line): \"\(text.words)\" belongs into the file of sentences.")
            }
        }
    }

    @Test(arguments: [
        (#"throw E("The queue is full.")"#, ["The queue is full."]),
        (#"let text = "The queue" + " is " + full"#, ["The queue", " is "]),
        (#"text += "\(count) bytes""#, [" bytes"]),
        (#""\(count == 1 ? "one message" : "\(count) messages")""#, ["one message", " messages"]),
        ("\"\"\"\n  The queue\n  is full.\n  \"\"\"", ["\n  The queue\n  is full.\n  "]),
        (##"#"A "quoted" \(word)"#"##, [#"A "quoted" \(word)"#]),
        (#"E("A 'quote\" in it")"#, [#"A 'quote\" in it"#]),
        (#"assert(isOpen, "The \(name("of a connection")) is open.")"#, []),
        (#"throw .late(clause: "MQTT 5.0 3.2.2-15", or: "MQTT-3.2.2-15")"#, []),
        (#"// "a comment with words" \n"#, []), ("/* \"a comment /* in \" a */ comment\" */", []),
        (#"name + ", " + "CONNECT" + " " + "\(one) \(other)""#, []),
    ])
    func `a text is found however it is put together`(source: String, words: [String]) {
        var reader = SwiftTextReader(source)
        #expect(reader.textsForPeople().map(\.words) == words)
    }
}

/// Finds the string literals of Swift's text.
private struct SwiftTextReader {
    /// What a literal has of words, between its interpolations.
    struct Text {
        let line: Int
        let words: String
    }

    private let text: [Character]
    private var position = 0
    private var found: [Text] = []

    init(_ text: String) { self.text = Array(text) }

    /// The pieces of literals that have a word and a blank, but for clauses, and for what only a programmer reads.
    mutating func textsForPeople() -> [Text] {
        readCode(isAssertion: false, endsAtParenthesis: false)
        return found
    }

    private func starts(_ token: String, at offset: Int = 0) -> Bool {
        text[min(position + offset, text.count)...].starts(with: token)
    }

    /// Code up to its end, or up to the parenthesis that closes it, which is read too.
    private mutating func readCode(isAssertion: Bool, endsAtParenthesis: Bool) {
        while position < text.count {
            if starts("//") {
                while position < text.count, !text[position].isNewline { position += 1 }
            } else if starts("/*") {
                skipComment()
            } else if let hashes = hashesOfLiteral() {
                readLiteral(hashes: hashes, isAssertion: isAssertion)
            } else if text[position] == "(" {
                let isCall =
                    isAssertion || ["assert", "precondition", "assertionFailure", "fatalError"].contains(wordBefore)
                position += 1
                readCode(isAssertion: isCall, endsAtParenthesis: true)
            } else {
                position += 1
                if endsAtParenthesis, text[position - 1] == ")" { return }
            }
        }
    }

    private var wordBefore: String {
        String(text[..<position].reversed().prefix { $0.isLetter }.reversed())
    }

    private mutating func skipComment() {
        var depth = 0
        repeat {
            if starts("/*") { depth += 1 }
            if starts("*/") { depth -= 1 }
            position += starts("/*") || starts("*/") ? 2 : 1
        } while depth > 0 && position < text.count
    }

    /// The number of `#` before the quotation mark of a literal that begins here.
    private func hashesOfLiteral() -> Int? {
        let count = text[position...].prefix { $0 == "#" }.count
        return starts("\"", at: count) ? count : nil
    }

    private mutating func readLiteral(hashes: Int, isAssertion: Bool) {
        let hash = String(repeating: "#", count: hashes)
        position += hashes
        let quotes = starts("\"\"\"") ? "\"\"\"" : "\""
        position += quotes.count
        var piece = ""
        while position < text.count, !starts(quotes + hash) {
            if starts("\\" + hash + "(") {
                report(piece, isAssertion)
                piece = ""
                position += hashes + 2
                readCode(isAssertion: isAssertion, endsAtParenthesis: true)
            } else {
                if starts("\\" + hash) {
                    piece.append(text[position])
                    position += 1
                }
                piece.append(text[position])
                position += 1
            }
        }
        report(piece, isAssertion)
        position += quotes.count + hashes
    }

    private mutating func report(_ piece: String, _ isAssertion: Bool) {
        guard !isAssertion, piece.contains(where: \.isWhitespace), piece.contains(where: \.isLetter),
            piece.wholeMatch(of: /(?:MQTT|STOMP) \d[\d. -]*/) == nil
        else { return }
        found.append(Text(line: text[..<position].count { $0.isNewline } + 1, words: piece))
    }
}

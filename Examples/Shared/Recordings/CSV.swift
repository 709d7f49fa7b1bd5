/// What is wrong with a row; the reader adds the file and the line.
struct RowProblem: Error {
    let message: String
}

/// One line of comma-separated values.
enum CSVRow {
    /// The fields without the blanks around them; `"` encloses fields with commas, and `""` is a quote inside.
    ///
    /// A quoted field ends on its line: recordings have no line breaks in fields.
    static func fields(of line: ArraySlice<UInt8>) throws(RowProblem) -> [String] {
        guard line.drop(while: isBlank).dropFirst(LineReader.limit).allSatisfy(isBlank) else {
            throw RowProblem(message: "longer than \(LineReader.limit) bytes")
        }
        var fields: [String] = []
        var rest = line
        while true {
            rest = rest.drop(while: isBlank)
            var field: [UInt8] = []
            if rest.first == UInt8(ascii: "\"") {
                rest.removeFirst()
                while true {
                    guard let byte = rest.popFirst() else { throw RowProblem(message: "a quote is not closed") }
                    if byte == UInt8(ascii: "\"") {
                        guard rest.first == byte else { break }
                        rest.removeFirst()
                    }
                    field.append(byte)
                }
                rest = rest.drop(while: isBlank)
                guard rest.first == nil || rest.first == UInt8(ascii: ",") else {
                    throw RowProblem(message: "text follows a closing quote")
                }
            } else {
                let end = rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex
                field = Array(rest[..<end])
                while let last = field.last, isBlank(last) { field.removeLast() }
                rest = rest[end...]
            }
            fields.append(String(recorded: field))
            guard rest.popFirst() != nil else { return fields }
        }
    }

    /// Nothing but blanks and zeros, or a comment that starts with `#`.
    static func isSkipped(_ line: ArraySlice<UInt8>) -> Bool {
        let first = line.first { !isBlank($0) }
        return first == nil || first == UInt8(ascii: "#")
    }

    /// Whether a line may be the end of a row whose beginning was not read: it has no letters but those of numbers and times,
    /// so that no field is a name in a header.
    static func mayBeCut(_ line: ArraySlice<UInt8>) -> Bool {
        line.allSatisfy { $0 < UInt8(ascii: "A") || "eETZ".utf8.contains($0) }
    }

    /// What means nothing around a field: zeros are what a file has where nothing was written.
    static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r") || byte == 0
    }
}

/// The columns of a table, found by their names: `locationTimestamp_since1970(s)`.
struct CSVColumns: Sendable {
    /// The words of each name in lower case, without the unit: `location`, `timestamp`, `since1970`.
    private let words: [[String]]
    /// In lower case; empty for a column without a unit.
    private let units: [String]

    /// Units that are also written behind a name, as in `time_ms`.
    private static let suffixes: Set = ["s", "ms", "us", "ns", "rad", "deg", "degrees", "e7"]

    init(_ names: [String]) {
        var (words, units) = ([[String]](), [String]())
        for name in names {
            var (text, unit) = (name[...], "")
            if let opening = name.lastIndex(where: { "([".contains($0) }), let last = name.last, ")]".contains(last) {
                text = name[..<opening]
                unit = name[name.index(after: opening)...].dropLast().lowercased()
            }
            var parts = Self.words(text)
            if parts.count > 1, let last = parts.last, Self.suffixes.contains(last) { unit = parts.removeLast() }
            words.append(parts)
            units.append(unit)
        }
        self.words = words
        self.units = units
    }

    /// `positionLat_deg` are three words.
    private static func words(_ name: Substring) -> [String] {
        var words: [String] = []
        var last: Character = " "
        for character in name {
            let isWord = character.isLetter || character.isNumber
            let begins = !(last.isLetter || last.isNumber) || character.isUppercase && last.isLowercase
            if isWord, begins { words.append("") }
            if isWord { words[words.count - 1] += character.lowercased() }
            last = character
        }
        return words
    }

    /// The column with one of these names, the first of which matters most; where none is called so, one whose name ends
    /// so.
    func index(_ names: String...) -> Int? {
        for name in names {
            if let index = words.firstIndex(where: { $0.joined() == name }) { return index }
        }
        for name in names {
            let found = words.firstIndex { words in
                words.indices.contains { words[$0...].joined() == name }
            }
            if let found { return found }
        }
        return nil
    }

    func unit(_ column: Int) -> String { units[column] }

    /// - Returns: The time in a field; nil for a text that is none.
    static func time(_ text: String, unit: String) -> Timestamp? {
        let nanoseconds =
            switch unit {
            case "s", "sec", "seconds": 1e9
            case "ms": 1e6
            case "us", "µs": 1e3
            case "ns": 1.0
            default: 0.0
            }
        guard nanoseconds > 0, let value = DecimalText.parse(text) else {
            return Timestamp(recorded: text) ?? Timestamp(unix: text)
        }
        return Timestamp(value, unit: nanoseconds)
    }
}

/// A row of a recording.
struct CSVValue<Value: RecordedValue>: Sendable {
    var value: Value
    var time: Timestamp?
    /// What is wrong with the time, which is left out then.
    var timeProblem: String?

    /// - Parameter field: The field with the time; nil or empty if there is none.
    init(_ value: Value, _ field: String?, unit: String = "") {
        self.value = value
        guard let field, !field.isEmpty else { return }
        time = CSVColumns.time(field, unit: unit)
        self.value.time = time
        if time == nil { timeProblem = Timestamp.problem(field) }
    }
}

/// How the rows of one kind of recording are read. The first row may be a header.
protocol CSVFormat: Sendable {
    associatedtype Value: RecordedValue

    /// Between rows without times, nanoseconds.
    static var step: Int64 { get }

    init()

    /// The value of a row, or nil for a header.
    ///
    /// - Throws: What is wrong with the row.
    mutating func read(_ fields: [String]) throws(RowProblem) -> CSVValue<Value>?
    /// Whether it is known which columns have the values: after a header, or a first row of numbers.
    var hasColumns: Bool { get }
}

/// How many fields a row has, for messages.
func fieldCount(_ fields: [String]) -> String { fields.count == 1 ? "1 field" : "\(fields.count) fields" }

func number(_ text: String, _ name: String) throws(RowProblem) -> Double {
    guard let value = DecimalText.parse(text) else {
        throw RowProblem(message: "the \(name) '\(text.printable)' is not a number")
    }
    return value
}

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
            guard let text = String(validating: field, as: UTF8.self) else {
                throw RowProblem(message: "not UTF-8 text")
            }
            fields.append(text)
            guard rest.popFirst() != nil else { return fields }
        }
    }

    /// Nothing but blanks, or a comment that starts with `#`.
    static func isSkipped(_ line: ArraySlice<UInt8>) -> Bool {
        let first = line.first { !isBlank($0) }
        return first == nil || first == UInt8(ascii: "#")
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}

/// How the rows of one kind of recording are read. The first row may be a header.
protocol CSVFormat: Sendable {
    associatedtype Value: Sendable

    /// Between rows without times, nanoseconds.
    static var step: Int64 { get }

    init()

    /// The value of a row and when it was recorded (from some zero), or nil for a header.
    mutating func read(_ fields: [String]) throws(RowProblem) -> (value: Value, time: Timestamp?)?
}

/// What a terminal shows after a text was written to it: as much of one as the programs use.
struct TerminalScreen {
    /// How many lines have left the screen at its top.
    private(set) var scrolledLines = 0
    private var lines: [[Character]]
    private let columns: Int
    private var row = 0
    private var column = 0
    private var wraps = true

    init(columns: Int, rows: Int) {
        self.columns = columns
        lines = Array(repeating: [], count: rows)
    }

    /// The lines without the blanks at their ends and the empty lines at the bottom.
    var text: String {
        let rows = lines.map { String(String($0).reversed().drop { $0 == " " }.reversed()) }
        return (rows.lastIndex { !$0.isEmpty }).map { rows[...$0].joined(separator: "\n") } ?? ""
    }

    mutating func write(_ text: String) {
        var rest = Substring(text).unicodeScalars
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r": column = 0
            case "\n": lineFeed()
            case "\u{1B}":
                if rest.first == "[" {
                    rest.removeFirst()
                    let parameter = String(rest.prefix { "?;0123456789".unicodeScalars.contains($0) })
                    rest.removeFirst(parameter.unicodeScalars.count)
                    if let command = rest.popFirst() { perform(command, parameter) }
                } else if rest.first == "]" {
                    // The colour of the background, up to the string terminator.
                    while let next = rest.popFirst(), next != "\\" {}
                }
            default: put(Character(scalar))
            }
        }
    }

    private mutating func perform(_ command: Unicode.Scalar, _ parameter: String) {
        switch command {
        case "A": row = max(0, row - (Int(parameter) ?? 1))
        case "K": lines[row] = Array(lines[row].prefix(column))
        case "J":
            lines[row] = Array(lines[row].prefix(column))
            for index in lines.indices.dropFirst(row + 1) { lines[index] = [] }
        case "h" where parameter == "?7": wraps = true
        case "l" where parameter == "?7": wraps = false
        default: break
        }
    }

    private mutating func lineFeed() {
        if row < lines.count - 1 {
            row += 1
        } else {
            lines.removeFirst()
            lines.append([])
            scrolledLines += 1
        }
    }

    private mutating func put(_ character: Character) {
        if column == columns {
            if wraps {
                column = 0
                lineFeed()
            } else {
                column -= 1
            }
        }
        while lines[row].count <= column { lines[row].append(" ") }
        lines[row][column] = character
        column += 1
    }
}

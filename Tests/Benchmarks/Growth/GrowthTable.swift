import Foundation

/// What something costs at several sizes, and how fast that grows.
struct GrowthTable {
    /// One thing that is measured.
    struct Column {
        enum Unit { case time, bytes }

        let name: String
        let unit: Unit
        /// Whether a figure is what one of `n` costs; otherwise it is what all cost together, and the table divides.
        let isEach: Bool

        /// What one of `n` costs.
        static func each(_ name: String, _ unit: Unit = .time) -> Column {
            Column(name: name, unit: unit, isEach: true)
        }

        /// What `n` cost together.
        static func whole(_ name: String, _ unit: Unit = .time) -> Column {
            Column(name: name, unit: unit, isEach: false)
        }
    }

    private struct Line {
        let size: Int
        let label: String
        /// Not a number where there is nothing to say.
        let figures: [Double]
        let remark: String?
    }

    let title: String
    /// What `n` counts, for the first column's head.
    let sizes: String
    let note: String
    private let columns: [Column]
    private var lines: [Line] = []

    init(_ title: String, sizes: String, note: String, _ columns: Column...) {
        self.title = title
        self.sizes = sizes
        self.note = note
        self.columns = columns
    }

    mutating func add(_ size: Int, label: String? = nil, _ figures: Double...) {
        lines.append(Line(size: size, label: label ?? Self.grouped(size), figures: figures, remark: nil))
    }

    /// A size that could not be measured, and why.
    mutating func leaveOut(_ size: Int, why: String) {
        lines.append(Line(size: size, label: Self.grouped(size), figures: [], remark: why))
    }

    /// The exponent with which what `n` cost together grew since the line before: 1 is linear, 2 quadratic.
    func growth(line: Int, column: Int) -> Double {
        guard line > 0, lines[line].size > lines[line - 1].size, lines[line - 1].size > 0 else { return .nan }
        let (before, now) = (whole(line - 1, column), whole(line, column))
        return log(now / before) / log(Double(lines[line].size) / Double(lines[line - 1].size))
    }

    /// The same for `n log n`, with a margin for what a shared machine adds.
    private func allowed(line: Int) -> Double {
        let (before, now) = (Double(max(2, lines[line - 1].size)), Double(lines[line].size))
        return 1 + log(log(now) / log(before)) / log(now / before) + 0.2
    }

    private func whole(_ line: Int, _ column: Int) -> Double {
        guard let figure = lines[line].figures[safely: column] else { return .nan }
        return columns[column].isEach ? figure * Double(lines[line].size) : figure
    }

    var markdown: String {
        var heads = [sizes]
        for column in columns {
            if !column.isEach { heads.append("\(column.name), all") }
            heads += ["\(column.name), each", "growth"]
        }
        var text = "## \(title)\n\n\(note)\n\n| \(heads.joined(separator: " | ")) |\n"
        text += "|" + String(repeating: "---:|", count: heads.count) + "\n"
        for index in lines.indices {
            text += "| \(cells(index).joined(separator: " | ")) |\n"
        }
        return text
    }

    private func cells(_ index: Int) -> [String] {
        let line = lines[index]
        if let remark = line.remark { return [line.label, remark] }
        var cells = [line.label]
        for (position, column) in columns.enumerated() {
            if !column.isEach { cells.append(Self.format(line.figures[position], column.unit)) }
            cells.append(Self.format(whole(index, position) / Double(line.size), column.unit))
            let growth = growth(line: index, column: position)
            let isTooFast = growth.isFinite && growth > allowed(line: index)
            cells.append(
                growth.isFinite ? String(format: isTooFast ? "**%.2f**" : "%.2f", growth) : "–")
        }
        return cells
    }

    private static func format(_ value: Double, _ unit: Column.Unit) -> String {
        guard value.isFinite else { return "–" }
        let steps: [(Double, String)] =
            switch unit {
            case .time: [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
            case .bytes: [(1_048_576, "MiB"), (1024, "KiB"), (1, "B")]
            }
        let (size, name) = steps.first { value >= $0.0 } ?? steps[steps.count - 1]
        let scaled = value / size
        return String(format: scaled < 10 ? "%.2f %@" : scaled < 100 ? "%.1f %@" : "%.0f %@", scaled, name)
    }

    private static func grouped(_ number: Int) -> String {
        var text = ""
        for (index, digit) in "\(number)".reversed().enumerated() {
            if index > 0, index.isMultiple(of: 3) { text = "," + text }
            text = "\(digit)" + text
        }
        return text
    }
}

extension Array {
    fileprivate subscript(safely index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

/// Attitudes in radians: a Core Motion recording with named columns in any position, or `pitch,roll,yaw`.
struct MotionCSV: CSVFormat {
    /// 50 Hz, the rate of MotionSense and SensingKit.
    static let step: Int64 = 20_000_000

    private struct Columns {
        var pitch = 0
        var roll = 1
        var yaw = 2
        var time: Int?
        /// Nanoseconds per unit of the time column, nil to tell by the size of the number.
        var unit: Double?
        var hasHeader = false
    }

    private var columns: Columns?

    mutating func read(_ fields: [String]) throws(RowProblem) -> (value: Attitude, time: Timestamp?)? {
        if columns == nil {
            if fields.allSatisfy({ DecimalText.parse($0) != nil }) {
                columns = Columns()
            } else {
                columns = try Self.header(fields)
                return nil
            }
        }
        let columns = columns ?? Columns()
        guard columns.hasHeader || fields.count == 3 else {
            throw RowProblem(message: "\(fieldCount(fields)), but a row is pitch,roll,yaw")
        }
        guard fields.count > max(columns.pitch, columns.roll, columns.yaw) else {
            throw RowProblem(message: "\(fieldCount(fields)), too few for the header")
        }
        let attitude = Attitude(
            pitch: try angle(fields[columns.pitch], "pitch"), roll: try angle(fields[columns.roll], "roll"),
            yaw: try angle(fields[columns.yaw], "yaw"))
        guard let column = columns.time, column < fields.count, !fields[column].isEmpty else { return (attitude, nil) }
        return (attitude, try Self.time(fields[column], columns.unit))
    }

    private func angle(_ text: String, _ name: String) throws(RowProblem) -> Double {
        let value = try number(text, name)
        guard abs(value) <= 1000 else {
            throw RowProblem(message: "the \(name) \(text.printable) is no angle in radians (-1000...1000)")
        }
        return value
    }

    private static func header(_ fields: [String]) throws(RowProblem) -> Columns {
        let names = fields.map { Self.name($0) }
        func index(_ name: String) -> Int? {
            names.firstIndex(of: "attitude." + name) ?? names.firstIndex(of: name)
                ?? names.firstIndex { $0.hasSuffix("." + name) } ?? names.firstIndex(of: "motion" + name)
        }
        guard let pitch = index("pitch"), let roll = index("roll"), let yaw = index("yaw") else {
            throw RowProblem(
                message: "neither pitch,roll,yaw nor a header with attitude.pitch, attitude.roll and attitude.yaw")
        }
        var columns = Columns(pitch: pitch, roll: roll, yaw: yaw, hasHeader: true)
        // SensingKit writes a local date as `timestamp` and a number beside it: the number goes first.
        let times = ["timeintervalsince1970", "timestamp", "ts", "time", "t", "seconds_elapsed", "timestampsince1970"]
        let units: [(String, Double?)] = [
            ("", nil), ("_s", 1e9), ("(s)", 1e9), ("_ms", 1e6), ("(ms)", 1e6), ("_us", 1e3), ("_ns", 1), ("(ns)", 1),
        ]
        search: for time in times {
            for (suffix, unit) in units {
                guard let column = names.firstIndex(of: time + suffix) else { continue }
                (columns.time, columns.unit) = (column, unit)
                break search
            }
        }
        return columns
    }

    private static func name(_ field: String) -> String {
        let name = field.lowercased().filter { $0 != " " }
        return name.hasSuffix("(rad)") ? String(name.dropLast(5)) : name
    }

    private static func time(_ text: String, _ unit: Double?) throws(RowProblem) -> Timestamp {
        if let unit, let value = DecimalText.parse(text), abs(value * unit) < 1e18 {
            return Timestamp(nanoseconds: Int64(value * unit))
        }
        guard unit == nil, let time = Timestamp(recorded: text) ?? Timestamp(unix: text) else {
            throw RowProblem(message: "'\(text.printable)' is no time: ISO 8601 or a number of seconds")
        }
        return time
    }
}

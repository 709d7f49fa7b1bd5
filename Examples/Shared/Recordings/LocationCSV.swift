/// `lat,lng[,ts]`, or the same columns in any order under a header.
struct LocationCSV: CSVFormat {
    static let step: Int64 = 1_000_000_000

    private struct Columns {
        var latitude = 0
        var longitude = 1
        var time: Int? = 2
        /// Of the day, beside a column with the time of day.
        var date: Int?
        var hasHeader = false
    }

    private var columns: Columns?

    mutating func read(_ fields: [String]) throws(RowProblem) -> (value: Fix, time: Timestamp?)? {
        if columns == nil {
            if fields.prefix(2).contains(where: { DecimalText.parse($0) != nil }) {
                columns = Columns()
            } else {
                columns = try Self.header(fields)
                return nil
            }
        }
        let columns = columns ?? Columns()
        guard columns.hasHeader || (2...3).contains(fields.count) else {
            throw RowProblem(message: "\(fieldCount(fields)), but a row is lat,lng or lat,lng,ts")
        }
        guard fields.count > max(columns.latitude, columns.longitude) else {
            throw RowProblem(message: "\(fieldCount(fields)), too few for the header")
        }
        let latitude = try number(fields[columns.latitude], "latitude")
        let longitude = try number(fields[columns.longitude], "longitude")
        if let problem = Fix.problem(latitude: latitude, longitude: longitude) {
            throw RowProblem(message: problem)
        }
        let time = try Self.time(in: fields, columns)
        return (Fix(latitude: latitude, longitude: longitude, time: time), time)
    }

    private static func time(in fields: [String], _ columns: Columns) throws(RowProblem) -> Timestamp? {
        guard let column = columns.time, column < fields.count, !fields[column].isEmpty else { return nil }
        var text = fields[column]
        if let time = Timestamp(recorded: text) ?? Timestamp(unix: text) { return time }
        if let column = columns.date, column < fields.count, !fields[column].isEmpty {
            text = "\(fields[column]) \(text)"
        }
        guard let time = Timestamp(recorded: text) else {
            throw RowProblem(
                message: "'\(text.printable)' is no time from 1970 to 2199: ISO 8601 or seconds since 1970")
        }
        return time
    }

    private static func header(_ fields: [String]) throws(RowProblem) -> Columns {
        let names = fields.map { $0.lowercased() }
        func index(_ candidates: String...) -> Int? {
            names.firstIndex(where: candidates.contains)
        }
        let date = index("date")
        guard let latitude = index("lat", "latitude"), let longitude = index("lng", "lon", "long", "longitude") else {
            throw RowProblem(message: "neither lat,lng[,ts] nor a header with the columns lat and lng")
        }
        let time = index("ts", "timestamp", "datetime") ?? index("time", "utc") ?? date
        return Columns(latitude: latitude, longitude: longitude, time: time, date: date, hasHeader: true)
    }
}

/// How many fields a row has, for messages.
func fieldCount(_ fields: [String]) -> String { fields.count == 1 ? "1 field" : "\(fields.count) fields" }

func number(_ text: String, _ name: String) throws(RowProblem) -> Double {
    guard let value = DecimalText.parse(text) else {
        throw RowProblem(message: "the \(name) '\(text.printable)' is not a number")
    }
    return value
}

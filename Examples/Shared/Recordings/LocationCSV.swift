/// `lat,lng[,ts]`, or the same columns in any order under a header.
struct LocationCSV: CSVFormat {
    static let step: Int64 = 1_000_000_000

    private struct Columns: Sendable {
        var latitude = 0
        var longitude = 1
        var time: Int? = 2
        /// Of the day, beside a column with the time of day.
        var date: Int?
        /// None without a header.
        var header: CSVColumns?

        func unit(_ column: Int) -> String { header?.unit(column) ?? "" }
    }

    private var columns: Columns?
    var hasColumns: Bool { columns != nil }

    mutating func read(_ fields: [String]) throws(RowProblem) -> CSVValue<Fix>? {
        if columns == nil {
            guard fields.prefix(2).contains(where: { DecimalText.parse($0) != nil }) else {
                columns = try Self.header(fields)
                return nil
            }
            columns = Columns()
        }
        let columns = columns ?? Columns()
        guard columns.header != nil || (2...3).contains(fields.count) else {
            throw RowProblem(message: "\(fieldCount(fields)), but a row is lat,lng or lat,lng,ts")
        }
        guard fields.count > max(columns.latitude, columns.longitude) else {
            throw RowProblem(message: "\(fieldCount(fields)), too few for the header")
        }
        let fix = try Fix(
            wrapping: degrees(fields[columns.latitude], "latitude", columns.unit(columns.latitude)),
            degrees(fields[columns.longitude], "longitude", columns.unit(columns.longitude)))
        func field(_ column: Int?) -> String? {
            column.flatMap { $0 < fields.count && !fields[$0].isEmpty ? fields[$0] : nil }
        }
        let row = CSVValue(fix, field(columns.time), unit: columns.time.map(columns.unit) ?? "")
        guard row.timeProblem != nil, let date = field(columns.date), let time = field(columns.time) else { return row }
        return CSVValue(fix, "\(date) \(time)")
    }

    private func degrees(_ text: String, _ name: String, _ unit: String) throws(RowProblem) -> Double {
        let value = try number(text, name)
        return switch unit {
        case "rad", "radians": value * 180 / .pi
        case "e7": value / 1e7
        case "semicircles": value * 180 / 2_147_483_648
        default: value
        }
    }

    private static func header(_ fields: [String]) throws(RowProblem) -> Columns {
        let header = CSVColumns(fields)
        guard let latitude = header.index("lat", "latitude"),
            let longitude = header.index("lng", "lon", "long", "longitude")
        else {
            throw RowProblem(message: "neither lat,lng[,ts] nor a header with the columns lat and lng")
        }
        let date = header.index("date")
        let time =
            header.index("locationtimestampsince1970", "timestampsince1970", "ts", "timestamp", "datetime")
            ?? header.index("time", "utc") ?? date
        return Columns(latitude: latitude, longitude: longitude, time: time, date: date, header: header)
    }
}

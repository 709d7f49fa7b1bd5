/// Attitudes: a Core Motion recording with named columns in any position, or `pitch,roll,yaw`. In radians, unless the
/// header names another unit.
struct MotionCSV: CSVFormat {
    /// 50 Hz, the rate of MotionSense and SensingKit.
    static let step: Int64 = 20_000_000

    private struct Columns: Sendable {
        var pitch = 0
        var roll = 1
        var yaw = 2
        var time: Int?
        /// None without a header.
        var header: CSVColumns?
    }

    private var columns: Columns?
    var hasColumns: Bool { columns != nil }

    mutating func read(_ fields: [String]) throws(RowProblem) -> CSVValue<Attitude>? {
        if columns == nil {
            guard fields.allSatisfy({ DecimalText.parse($0) != nil }) else {
                columns = try Self.header(fields)
                return nil
            }
            columns = Columns()
        }
        let columns = columns ?? Columns()
        guard columns.header != nil || fields.count == 3 else {
            throw RowProblem(message: "\(fieldCount(fields)), but a row is pitch,roll,yaw")
        }
        guard fields.count > max(columns.pitch, columns.roll, columns.yaw) else {
            throw RowProblem(message: "\(fieldCount(fields)), too few for the header")
        }
        func angle(_ column: Int, _ name: String) throws(RowProblem) -> Double {
            let isInDegrees = ["deg", "degrees", "°"].contains(columns.header?.unit(column))
            let value = try number(fields[column], name) * (isInDegrees ? .pi / 180 : 1)
            guard abs(value) <= 1000 else {
                throw RowProblem(
                    message: "the \(name) \(fields[column].printable) is no angle in radians (-1000...1000)")
            }
            return value
        }
        let attitude = Attitude(
            pitch: try angle(columns.pitch, "pitch"), roll: try angle(columns.roll, "roll"),
            yaw: try angle(columns.yaw, "yaw"))
        guard let time = columns.time, time < fields.count else { return CSVValue(attitude, nil) }
        return CSVValue(attitude, fields[time], unit: columns.header?.unit(time) ?? "")
    }

    private static func header(_ fields: [String]) throws(RowProblem) -> Columns {
        let header = CSVColumns(fields)
        guard let pitch = header.index("attitudepitch", "pitch", "motionpitch"),
            let roll = header.index("attituderoll", "roll", "motionroll"),
            let yaw = header.index("attitudeyaw", "yaw", "motionyaw")
        else {
            throw RowProblem(
                message: "neither pitch,roll,yaw nor a header with attitude.pitch, attitude.roll and attitude.yaw")
        }
        // SensingKit writes a local date as `timestamp` and a number beside it: the number goes first.
        let time = header.index(
            "timeintervalsince1970", "motiontimestampsincereboot", "timestamp", "ts", "time", "t", "secondselapsed",
            "timestampsince1970", "timestampsincereboot")
        return Columns(pitch: pitch, roll: roll, yaw: yaw, time: time, header: header)
    }
}

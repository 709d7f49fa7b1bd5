import Foundation

/// Opens recordings; what a file is, its content tells, not its name.
package enum RecordingLoader {
    /// A GPX or CSV track, or the built-in drive.
    ///
    /// - Throws: `.noInput` when the file cannot be read, `.dataError` with the line of the first mistake.
    package static func locations(path: String?) throws(DeviceFailure) -> Recording<Fix> {
        guard let path else { return BuiltInDrive.recording() }
        let name = path.printable
        let file = try InputFile(path: path)
        var lines = LineReader(file, name: name)
        guard isXML(try lines.peek(512)) else {
            return try csv(LocationCSV.self, &lines, name: name)
        }
        if file.isRegular, let stream = InputStream(fileAtPath: path) {
            return try GPXReader.read(stream, name: name) { try? FileEnding(of: InputFile(path: path)) }
        }
        // A pipe cannot be opened again; what was peeked at goes first.
        let contents = try pipeContents(&lines, name)
        return try GPXReader.read(InputStream(data: contents), name: name) { FileEnding(of: contents) }
    }

    /// A CSV of attitudes, or the built-in motion.
    ///
    /// - Throws: As `locations(path:)`.
    package static func motions(path: String?) throws(DeviceFailure) -> Recording<Attitude> {
        guard let path else { return BuiltInMotion.recording() }
        var lines = LineReader(try InputFile(path: path), name: path.printable)
        return try csv(MotionCSV.self, &lines, name: path.printable)
    }

    private static func csv<Format: CSVFormat>(
        _: Format.Type, _ lines: inout LineReader, name: String
    ) throws(DeviceFailure) -> Recording<Format.Value> {
        var format = Format()
        var recording = Recording<Format.Value>(name: name, step: Format.step)
        while let line = try lines.next() {
            if let row = try row(line, &format, name: name) {
                recording.append(row.value, at: row.time)
            }
        }
        guard !recording.isEmpty else {
            throw DeviceFailure(.dataError, "\(name), line \(max(1, lines.number)): the file ends without any values")
        }
        return recording.withoutWrongTimes()
    }

    /// The value of one line, nil for headers, comments and blank lines.
    static func row<Format: CSVFormat>(
        _ line: LineReader.Line, _ format: inout Format, name: String
    ) throws(DeviceFailure) -> (value: Format.Value, time: Timestamp?)? {
        guard !CSVRow.isSkipped(line.bytes) else { return nil }
        do throws(RowProblem) {
            return try format.read(CSVRow.fields(of: line.bytes))
        } catch {
            throw DeviceFailure(.dataError, "\(name), line \(line.number): \(error.message)")
        }
    }

    private static func isXML(_ start: ArraySlice<UInt8>) -> Bool {
        // UTF-16 files have their mark and are left to the XML library.
        if start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0xFE, 0xFF]) { return true }
        let text = start.starts(with: [0xEF, 0xBB, 0xBF]) ? start.dropFirst(3) : start
        return text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "<")
    }

    private static func pipeContents(_ lines: inout LineReader, _ name: String) throws(DeviceFailure) -> Data {
        let limit = 9_000_000
        let bytes = try lines.peek(limit + 1)
        guard bytes.count <= limit else {
            throw DeviceFailure(.dataError, "\(name): GPX through a pipe ends at \(limit) bytes; save it to a file")
        }
        return Data(bytes)
    }
}

/// Opens recordings; what a file is, its content tells, not its name.
package enum RecordingLoader {
    /// A GPX or CSV track, or the built-in drive.
    ///
    /// - Parameter wantsWaypoints: Whether the waypoints of a GPX file are the track.
    /// - Throws: `.noInput` when the file cannot be read, `.dataError` with the line of the first mistake when it is no
    ///   recording.
    package static func locations(
        path: String?, wantsWaypoints: Bool = false
    ) throws(DeviceFailure) -> Recording<Fix> {
        guard let path else { return BuiltInDrive.recording() }
        let name = path.printable
        var lines = try open(path)
        guard isXML(try lines.peek(65_536)) else { return try csv(LocationCSV.self, &lines, name: name) }
        return try GPXReader.read(lines.rest(), name: name, wantsWaypoints: wantsWaypoints)
    }

    /// A CSV of attitudes, or the built-in motion.
    ///
    /// - Throws: As `locations(path:wantsWaypoints:)`.
    package static func motions(path: String?) throws(DeviceFailure) -> Recording<Attitude> {
        guard let path else { return BuiltInMotion.recording() }
        var lines = try open(path)
        return try csv(MotionCSV.self, &lines, name: path.printable)
    }

    private static func open(_ path: String) throws(DeviceFailure) -> LineReader {
        var lines = LineReader(try InputFile(path: path))
        let start = try lines.peek(4)
        if start.starts(with: [0x1F, 0x8B]) {
            throw DeviceFailure(.dataError, "\(path.printable) is compressed with gzip: unpack it first, with gunzip")
        }
        if start.starts(with: [0x50, 0x4B, 3, 4]) {
            throw DeviceFailure(.dataError, "\(path.printable) is a ZIP archive: unpack it first, with unzip")
        }
        if try lines.isUTF16() { try lines.decodeUTF16() }
        return lines
    }

    private static func csv<Format: CSVFormat>(
        _: Format.Type, _ lines: inout LineReader, name: String
    ) throws(DeviceFailure) -> Recording<Format.Value> {
        var format = Format()
        var rows = Rows<Format.Value>(step: Format.step, unit: "row")
        while let line = try lines.next() {
            guard let row = try Self.row(line, &format, &rows.leftOut, name: name) else { continue }
            rows.add(row.value, at: row.time, line: line.number)
        }
        guard !rows.isVoid else {
            throw DeviceFailure(.dataError, "\(name), line \(max(1, lines.number)): the file ends without any values")
        }
        return try rows.recording(named: name)
    }

    /// The value of one line; nil for headers, comments and blank lines, and for a bad row. Bad rows are counted, and so are
    /// times that cannot be read.
    ///
    /// A program may be attached to its input in the middle of a row. The first line is a bad row then, unless its end looks like a
    /// whole row.
    ///
    /// - Throws: `.dataError` if there are no columns yet, so that nothing can be read.
    static func row<Format: CSVFormat>(
        _ line: LineReader.Line, _ format: inout Format, _ leftOut: inout LeftOut, name: String
    ) throws(DeviceFailure) -> CSVValue<Format.Value>? {
        guard !CSVRow.isSkipped(line.bytes) else { return nil }
        do throws(RowProblem) {
            guard let row = try format.read(CSVRow.fields(of: line.bytes)) else { return nil }
            if let problem = row.timeProblem { leftOut.add(.time, problem, line: line.number) }
            return row
        } catch {
            guard format.hasColumns || line.number == 1 && CSVRow.mayBeCut(line.bytes) else {
                throw DeviceFailure(.dataError, "\(name), line \(line.number): \(error.message)")
            }
            leftOut.add(.point, error.message, line: line.number)
            return nil
        }
    }

    /// Whether the first character is `<`.
    private static func isXML(_ start: ArraySlice<UInt8>) -> Bool {
        // Zeros stand where nothing was written.
        let marks: [UInt8] = [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D, 0]
        return start.first { !marks.contains($0) } == UInt8(ascii: "<")
    }
}

import Foundation

/// The values of CSV rows as they come on standard input.
package final class LiveSource<Value: Sendable>: Sendable {
    private let channel: LiveChannel<Value>

    /// - Parameter channel: What brings the values.
    init(_ channel: LiveChannel<Value> = LiveChannel()) {
        self.channel = channel
    }

    /// The value of the next row; nil at the end of standard input and when the task is cancelled.
    ///
    /// - Throws: `.dataError` with the line.
    package func next() async throws(DeviceFailure) -> Value? {
        try await channel.next()
    }

    /// - Parameter complete: Adds to a value what is known when it is read.
    fileprivate static func open<Format: CSVFormat>(
        _: Format.Type, _ file: InputFile, complete: @escaping @Sendable (Value) -> Value = { $0 }
    ) -> LiveSource where Format.Value == Value {
        let source = LiveSource()
        let channel = source.channel
        // A thread of its own: reading a pipe blocks.
        let thread = Thread {
            let name = "standard input"
            var lines = LineReader(file, name: name)
            var format = Format()
            do throws(DeviceFailure) {
                while let line = try lines.next() {
                    guard let row = try RecordingLoader.row(line, &format, name: name) else { continue }
                    channel.send(complete(row.value))
                }
                channel.finish()
            } catch {
                channel.finish(error)
            }
        }
        thread.name = name
        thread.start()
        return source
    }

    private static var name: String { "recording" }
}

extension LiveSource<Fix> {
    package static func locations() -> LiveSource { locations(InputFile(standardInput: ())) }

    /// What a file or a pipe brings. A fix without a time has the time when it was read, from which its age counts.
    static func locations(_ file: InputFile) -> LiveSource {
        open(LocationCSV.self, file) { fix in
            var fix = fix
            fix.time = fix.time ?? .now().wholeSeconds
            return fix
        }
    }
}

extension LiveSource<Attitude> {
    package static func motions() -> LiveSource { open(MotionCSV.self, InputFile(standardInput: ())) }

    static func motions(_ file: InputFile) -> LiveSource { open(MotionCSV.self, file) }
}

extension Fix {
    /// The app's rule for live positions: one older than 30 seconds is not sent.
    package func isStale(at now: Timestamp) -> Bool {
        guard let time else { return false }
        return time.age(at: now) > 30_000_000_000
    }
}

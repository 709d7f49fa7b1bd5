import Dispatch
import Foundation

/// The values of CSV rows as they come on standard input, from the thread that reads them to one task.
package final class LiveSource<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var values: [Value] = []
        /// What follows the last value: nothing, or a failure.
        var end: Result<Value?, DeviceFailure>?
    }

    private let state = Watched(State())
    private let room: DispatchSemaphore

    /// - Parameter capacity: How many values may lie unread. The thread that sends more waits, so a fast writer at the
    ///   other end of a pipe is slowed down instead of filling memory.
    init(capacity: Int = 256) {
        // Counted up from 0: a semaphore that is destroyed below its first value traps, and a source may be dropped
        // with values unread.
        room = DispatchSemaphore(value: 0)
        for _ in 0..<capacity { room.signal() }
    }

    /// Blocks the thread while the source is full.
    func send(_ value: Value) {
        room.wait()
        state.change { $0.values.append(value) }
    }

    func finish(_ failure: DeviceFailure? = nil) {
        state.change { $0.end = failure.map { .failure($0) } ?? .success(nil) }
    }

    /// The next value; nil at the end and when the task is cancelled. For one task at a time.
    ///
    /// - Throws: `.dataError` with the line.
    package func next() async throws(DeviceFailure) -> Value? {
        let next = await state.first { state in
            state.values.isEmpty ? state.end : .success(state.values.removeFirst())
        }
        guard let value = try next?.get() else { return nil }
        room.signal()
        return value
    }

    /// - Parameters:
    ///   - report: Gets a line for the user about what was left out: at the first time, then each time that it has become
    ///     twice as much, and at the end.
    ///   - complete: Adds to a value what is known when it is read.
    fileprivate static func open<Format: CSVFormat>(
        _: Format.Type, _ file: InputFile, _ report: @escaping @Sendable (String) -> Void,
        complete: @escaping @Sendable (Value) -> Value = { $0 }
    ) -> LiveSource where Format.Value == Value {
        let source = LiveSource()
        // A thread of its own: reading a pipe blocks.
        let thread = Thread {
            let name = "standard input"
            var lines = LineReader(file)
            var format = Format()
            var (leftOut, reported, isEmpty) = (LeftOut(unit: "row"), 0, true)
            func tell(above count: Int) {
                guard leftOut.count > count, let note = leftOut.note else { return }
                report(note)
                reported = leftOut.count
            }
            do throws(DeviceFailure) {
                guard try !lines.isUTF16() else {
                    throw DeviceFailure(
                        .dataError, "\(name) is UTF-16: convert it first, with iconv -f UTF-16 -t UTF-8")
                }
                while let line = try lines.next() {
                    let row = try RecordingLoader.row(line, &format, &leftOut, name: name)
                    // Before the value, whose reader may hold up this thread.
                    tell(above: max(0, reported * 2 - 1))
                    guard let row else { continue }
                    isEmpty = false
                    source.send(complete(row.value))
                }
                tell(above: reported)
                let problem = isEmpty ? leftOut.problem(.point) : nil
                source.finish(problem.map { DeviceFailure(.dataError, "\(name), \($0)") })
            } catch {
                source.finish(error)
            }
        }
        thread.name = "recording"
        thread.start()
        return source
    }
}

extension LiveSource<Fix> {
    /// What a file or a pipe brings. A fix without a time has the time when it was read, from which its age counts.
    static func locations(
        _ file: InputFile = InputFile(standardInput: ()), report: @escaping @Sendable (String) -> Void
    ) -> LiveSource {
        open(LocationCSV.self, file, report) { fix in
            var fix = fix
            fix.time = fix.time ?? .now().wholeSeconds
            return fix
        }
    }
}

extension LiveSource<Attitude> {
    static func motions(
        _ file: InputFile = InputFile(standardInput: ()), report: @escaping @Sendable (String) -> Void
    ) -> LiveSource {
        open(MotionCSV.self, file, report)
    }
}

extension Fix {
    /// The app's rule for live positions: one older than 30 seconds is not sent.
    package func isStale(at now: Timestamp) -> Bool {
        guard let time else { return false }
        return time.age(at: now) > 30_000_000_000
    }
}

import Dispatch
import Foundation
import Synchronization
import Transport

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

/// Carries values from a thread that may block to one task that may not. The thread waits while `capacity` values lie
/// unread, so a fast writer at the other end of a pipe is slowed down instead of filling memory.
package final class LiveChannel<Element: Sendable>: Sendable {
    fileprivate struct State {
        var queue: [Element] = []
        var head = 0
        var waiter: PendingCall<Void>?
        var hasEnded = false
        var failure: DeviceFailure?

        mutating func pop() -> Element? {
            guard head < queue.count else { return nil }
            defer {
                head += 1
                if head == queue.count {
                    queue.removeAll(keepingCapacity: true)
                    head = 0
                }
            }
            return queue[head]
        }
    }

    private let state = Mutex(State())
    private let room: DispatchSemaphore

    package init(capacity: Int = 256) {
        // Counted up from 0: a semaphore that is destroyed below its first value traps, and a channel may be dropped
        // with values unread.
        room = DispatchSemaphore(value: 0)
        for _ in 0..<capacity { room.signal() }
    }

    /// Blocks the thread while the channel is full.
    package func send(_ element: Element) {
        room.wait()
        let waiter = state.withLock { state in
            state.queue.append(element)
            return state.waiter.take()
        }
        waiter?.end(())
    }

    package func finish(_ failure: DeviceFailure? = nil) {
        let waiter = state.withLock { state in
            state.hasEnded = true
            state.failure = failure
            return state.waiter.take()
        }
        waiter?.end(())
    }

    /// The next value; nil at the end and when the task is cancelled.
    ///
    /// For one task at a time.
    package func next() async throws(DeviceFailure) -> Element? {
        while !Task.isCancelled {
            let (element, hasEnded, failure) = state.withLock { ($0.pop(), $0.hasEnded, $0.failure) }
            if let element {
                room.signal()
                return element
            }
            if let failure { throw failure }
            if hasEnded { return nil }
            await wait()
        }
        return nil
    }

    private func wait() async {
        let call = PendingCall<Void>()
        let isReady = state.withLock { state in
            guard state.head == state.queue.count, !state.hasEnded else { return true }
            state.waiter = call
            return false
        }
        if !isReady { await call.answer { call.end(()) } }
    }
}

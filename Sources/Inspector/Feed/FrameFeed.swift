import MessagingShell
import Synchronization
import Transport

/// The frames of a log as open pages receive them: each frame is put into words once, however many pages there are.
///
/// Without an open page nothing is read from the log and nothing is kept.
final class FrameFeed: Sendable {
    /// Pages that may be open at the same time.
    static let maximumReaders = 16

    let log: FrameLog
    private let state = Lock(State())

    private struct State {
        var readers = 0
        var rows: FrameRows?
        var isStopped = false
    }

    init(_ log: FrameLog) {
        self.log = log
    }

    /// One more page; nil when there are too many.
    ///
    /// - Parameters:
    ///   - position: what the page has already.
    ///   - hello: JSON that the page gets before the frames.
    func reader(since position: FramePosition, hello: String) -> FrameReader? {
        let isWelcome = state.withLock { state in
            guard state.readers < Self.maximumReaders else { return false }
            state.readers += 1
            if state.rows == nil { state.rows = FrameRows() }
            return true
        }
        return isWelcome ? FrameReader(self, since: position, hello: hello) : nil
    }

    func left() {
        let gone = state.withLock { state -> FrameRows? in
            state.readers -= 1
            guard state.readers == 0 else { return nil }
            return state.rows.take()
        }
        _ = consume gone
    }

    /// Ends the streams of all pages.
    func stop() {
        state.withLock { $0.isStopped = true }
    }

    /// What a page that has seen everything up to `position` has missed since; nil once the server has stopped.
    func update(since position: FramePosition) -> FrameUpdate? {
        state.withLock { state in
            guard !state.isStopped else { return nil }
            let snapshot = log.snapshot(since: state.rows?.cursor ?? 0)
            state.rows?.append(snapshot)
            return state.rows?.update(since: position)
        }
    }
}

/// What a page has received.
struct FramePosition: Equatable {
    /// The number of the last frame.
    var cursor: UInt64
    /// How often the log had been cleared by then; nil if that is unknown.
    var clearCount: Int?
    /// The log's counters as the page knows them; nil before the first update of a connection.
    var status: FrameStatus?
}

/// What a page shows of the log as a whole.
struct FrameStatus: Equatable {
    var droppedCount: Int
    var skippedCount: Int
    var clearCount: Int
    var isPaused: Bool
}

/// News for one page.
struct FrameUpdate {
    var position: FramePosition
    /// Frames that the page can no longer get.
    var missedCount: Int
    var rows: ArraySlice<String>
}

/// Finds the request that a frame answers, and how long the answer took.
struct FrameExchanges {
    struct Answer: Equatable {
        /// The number of the frame that is answered.
        var number: UInt64
        /// Nanoseconds between the two frames.
        var duration: Int64
    }

    private struct Key: Hashable {
        var connection: Int
        var isSent: Bool
        var identifier: String
    }

    /// Requests that wait for their answers; further ones replace the oldest half.
    private static let maximumRequests = 8_192

    private var requests: [Key: (number: UInt64, instant: Int64)] = [:]

    /// What `frame` answers, if anything; remembers it when it is to be answered itself.
    mutating func answer(by frame: LoggedFrame) -> Answer? {
        var answer: Answer?
        let isSent = frame.direction == .sent
        if let identifier = frame.exchange.answers {
            let key = Key(connection: frame.connection, isSent: !isSent, identifier: identifier)
            if let request = requests.removeValue(forKey: key) {
                answer = Answer(number: request.number, duration: max(0, frame.instant - request.instant))
            }
        }
        if let identifier = frame.exchange.asks {
            if requests.count >= Self.maximumRequests { forgetOlderHalf() }
            let key = Key(connection: frame.connection, isSent: isSent, identifier: identifier)
            requests[key] = (frame.number, frame.instant)
        }
        return answer
    }

    private mutating func forgetOlderHalf() {
        let numbers = requests.values.map(\.number).sorted()
        let middle = numbers[numbers.count / 2]
        requests = requests.filter { $0.value.number >= middle }
    }
}

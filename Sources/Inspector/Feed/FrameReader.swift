import MessagingShell

/// One open page: a stream of server-sent events, at most one update in 50 milliseconds.
///
/// On the page server's thread only.
final class FrameReader: @unchecked Sendable {
    // Sendable because it belongs to one connection, whose link calls it under its lock.

    /// Nanoseconds between two updates: at most 20 a second.
    static let pause: Int64 = 50_000_000
    /// Nanoseconds of silence after which a comment shows whether the browser is still there.
    private static let longestSilence: Int64 = 15_000_000_000

    private let feed: FrameFeed
    private var position: FramePosition
    private var hello: String?
    private var lastSent: Int64 = 0
    private var hasLeft = false

    init(_ feed: FrameFeed, since position: FramePosition, hello: String) {
        self.feed = feed
        self.hello = hello
        self.position = position
    }

    deinit {
        leave()
    }

    func leave() {
        guard !hasLeft else { return }
        hasLeft = true
        feed.left()
    }

    /// The response's head; its body ends with the connection.
    func appendHead(to output: inout [UInt8]) {
        let head = [
            "HTTP/1.1 200 OK", "Connection: close", "Content-Type: text/event-stream", "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff", "Cross-Origin-Resource-Policy: same-origin", "", "",
        ]
        output += Array(head.joined(separator: "\r\n").utf8)
    }

    /// Appends what is new, if anything is.
    ///
    /// - Returns: Whether the stream continues.
    func appendUpdate(to output: inout [UInt8], at now: Int64) -> Bool {
        guard let update = feed.update(since: position) else { return false }
        if let hello {
            output += Array("event: hello\ndata: \(hello)\n\n".utf8)
            self.hello = nil
        }
        if update.position != position {
            append(update, to: &output)
            position = update.position
            lastSent = now
        } else if now - lastSent >= Self.longestSilence {
            output += Array(":\n\n".utf8)
            lastSent = now
        }
        return true
    }

    private func append(_ update: FrameUpdate, to output: inout [UInt8]) {
        let (position, status) = (update.position, update.position.status)
        let head = """
            id: \(position.cursor)
            data: {"cursor":\(position.cursor),"missed":\(update.missedCount),\
            "dropped":\(status?.droppedCount ?? 0),"skipped":\(status?.skippedCount ?? 0),\
            "clears":\(status?.clearCount ?? 0),"paused":\(status?.isPaused ?? false),"frames":[
            """
        output += Array(head.utf8)
        var isFirst = true
        for row in update.rows {
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            output += Array(row.utf8)
        }
        output += Array("]}\n\n".utf8)
    }
}

/// The last frames of a log as rows of JSON, for all open pages.
struct FrameRows {
    /// Rows that are kept.
    static let maximumRows = 5_000
    /// Rows of one update; the rest follows in the next ones.
    static let maximumRowsPerUpdate = 500

    /// The number of the last frame that was read from the log.
    private(set) var cursor: UInt64 = 0
    private var status = FrameStatus(droppedCount: 0, skippedCount: 0, clearCount: 0, isPaused: false)
    /// The rows of the frames up to `cursor`, without gaps.
    private var rows: [String] = []
    private var exchanges = FrameExchanges()
    private var connectionsByClient: [String: Int] = [:]

    /// Clients whose connections are counted; of further ones no reconnect is marked.
    private static let maximumClients = 10_000

    /// Puts the frames of a snapshot since `cursor` into words.
    mutating func append(_ snapshot: FrameLog.Snapshot) {
        if snapshot.clearCount != status.clearCount { rows = [] }
        // Frames that were dropped unseen leave a gap; what is before it counts as missed, too.
        if snapshot.missedCount > 0 { rows = [] }
        for frame in snapshot.frames {
            let answer = exchanges.answer(by: frame)
            let row = JSON.row(frame, answer: answer, isReconnect: isReconnect(frame))
            rows.append(row)
        }
        if rows.count > 2 * Self.maximumRows { rows.removeFirst(rows.count - Self.maximumRows) }
        cursor = snapshot.cursor
        status = FrameStatus(
            droppedCount: snapshot.droppedCount, skippedCount: snapshot.skippedCount,
            clearCount: snapshot.clearCount, isPaused: snapshot.isPaused)
    }

    func update(since position: FramePosition) -> FrameUpdate {
        let available = rows.suffix(Self.maximumRows)
        // Start after the last clear. A cursor from another run of the program is invalid: start at 0.
        let known = position.cursor > cursor ? 0 : position.cursor
        let first = cursor - UInt64(available.count)
        let skipped = known < first ? first - known : 0
        let wanted = available.dropFirst(known > first ? Int(known - first) : 0).prefix(Self.maximumRowsPerUpdate)
        let reached = max(known, first) + UInt64(wanted.count)
        let wasCleared = position.clearCount != status.clearCount
        return FrameUpdate(
            position: FramePosition(cursor: reached, clearCount: status.clearCount, status: status),
            missedCount: known == 0 || wasCleared ? 0 : Int(skipped), rows: wanted)
    }

    /// Whether a frame opens a connection of a client that had one before.
    private mutating func isReconnect(_ frame: LoggedFrame) -> Bool {
        let known = connectionsByClient[frame.client]
        if known == nil, connectionsByClient.count >= Self.maximumClients { return false }
        connectionsByClient[frame.client] = frame.connection
        return known.map { $0 < frame.connection } ?? false
    }
}

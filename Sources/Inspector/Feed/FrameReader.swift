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

    init(_ feed: FrameFeed, since cursor: UInt64, hello: String) {
        self.feed = feed
        self.hello = hello
        position = FramePosition(cursor: cursor)
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

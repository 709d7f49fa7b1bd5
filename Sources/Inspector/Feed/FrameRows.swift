import Messaging

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
        // A page that was cleared starts behind what was cleared; one of another program starts anew.
        let known = position.cursor > cursor ? 0 : position.cursor
        let first = cursor - UInt64(available.count)
        let skipped = known < first ? first - known : 0
        let wanted = available.dropFirst(known > first ? Int(known - first) : 0).prefix(Self.maximumRowsPerUpdate)
        let reached = max(known, first) + UInt64(wanted.count)
        let wasCleared = position.status.map { $0.clearCount != status.clearCount } ?? true
        return FrameUpdate(
            position: FramePosition(cursor: reached, status: status),
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

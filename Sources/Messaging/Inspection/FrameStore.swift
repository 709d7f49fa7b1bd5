import Synchronization

/// What a log keeps, in the order in which it came.
struct FrameStore {
    let limit: Int
    let byteLimit: Int
    var isPaused = false

    /// From `first` on; what is before has been dropped and goes when it is half of all.
    private var frames: [Entry?] = []
    private var first = 0
    private var bytes = 0
    private var lastNumber: UInt64 = 0
    private var lastConnection = 0
    private var droppedCount = 0
    private var skippedCount = 0
    private var clearCount = 0
    private var connections: [Int: Connection] = [:]

    /// A frame and its place in the log.
    struct Entry {
        let kept: KeptFrame
        let number: UInt64
        let client: String
        let connection: Int

        /// The decoded frame; not for callers that hold the log's lock.
        var frame: LoggedFrame {
            var frame = kept.frame
            frame.number = number
            frame.client = client
            frame.connection = connection
            return frame
        }
    }

    /// A connection that is alive or has left frames.
    private struct Connection {
        /// Without its first frame the version of the others is unknown, so it outlives its place in the row.
        var opening: Entry?
        var keptCount = 0
        var isAlive = true
    }

    /// Longer openings are dropped like every other frame.
    private static let largestOpening = 4096

    init(limit: Int, bytes: Int) {
        self.limit = limit
        byteLimit = bytes
    }

    private var count: Int { frames.count - first }

    var openings: [Int: Entry] { connections.compactMapValues(\.opening) }

    /// Returns the frames that were removed, to be freed after the lock is released.
    mutating func append(_ new: [KeptFrame], from source: FrameLogSource) -> [Entry] {
        var gone: [Entry] = []
        for frame in new {
            let connection = connection(of: source, opened: frame.opensConnection)
            let entry = Entry(kept: frame, number: lastNumber + 1, client: source.name, connection: connection)
            if isPaused {
                skippedCount += 1
                if frame.opensConnection { keep(opening: entry) }
                continue
            }
            lastNumber += 1
            frames.append(entry)
            bytes += frame.byteCount
            connections[connection]?.keptCount += 1
            while count > limit || bytes > byteLimit { gone.append(dropOldest()) }
        }
        return gone
    }

    private mutating func connection(of source: FrameLogSource, opened: Bool) -> Int {
        let current = source.connection.load(ordering: .relaxed)
        guard opened || current == 0 else { return current }
        ended(source)
        lastConnection += 1
        source.connection.store(lastConnection, ordering: .relaxed)
        connections[lastConnection] = Connection()
        return lastConnection
    }

    /// Nothing more will come over the source's connection.
    mutating func ended(_ source: FrameLogSource) {
        let number = source.connection.load(ordering: .relaxed)
        connections[number]?.isAlive = false
        forgetIfEmpty(number)
    }

    private mutating func dropOldest() -> Entry {
        // The loop that calls has looked: there is one.
        let frame = frames[first]!
        frames[first] = nil
        first += 1
        if first > 64, first > frames.count / 2 {
            frames.removeFirst(first)
            first = 0
        }
        droppedCount += 1
        remove(frame)
        return frame
    }

    private mutating func remove(_ frame: Entry) {
        bytes -= frame.kept.byteCount
        connections[frame.connection]?.keptCount -= 1
        if frame.kept.opensConnection { keep(opening: frame) }
        forgetIfEmpty(frame.connection)
    }

    private mutating func keep(opening frame: Entry) {
        if frame.kept.byteCount <= Self.largestOpening { connections[frame.connection]?.opening = frame }
    }

    private mutating func forgetIfEmpty(_ number: Int) {
        if let connection = connections[number], connection.keptCount == 0, !connection.isAlive {
            connections[number] = nil
        }
    }

    mutating func clear() -> [Entry] {
        let gone = frames.compactMap(\.self)
        frames = []
        first = 0
        clearCount += 1
        droppedCount = 0
        skippedCount = 0
        for frame in gone { remove(frame) }
        return gone
    }

    // MARK: Reading

    /// A snapshot whose frames may not be decoded yet.
    struct KeptSnapshot {
        let frames: [Entry]
        let snapshot: ([LoggedFrame]) -> FrameLog.Snapshot
    }

    func snapshot(since: UInt64) -> KeptSnapshot {
        let oldest = lastNumber - UInt64(count) + 1
        let skipped = since < oldest ? 0 : Int(min(since - oldest + 1, UInt64(count)))
        let (cursor, missed) = (lastNumber, since < oldest - 1 ? Int(oldest - 1 - since) : 0)
        let (dropped, passed, clears, isPaused) = (droppedCount, skippedCount, clearCount, isPaused)
        return KeptSnapshot(frames: frames[(first + skipped)...].compactMap(\.self)) { frames in
            FrameLog.Snapshot(
                frames: frames, cursor: cursor, missedCount: missed, droppedCount: dropped, skippedCount: passed,
                clearCount: clears, isPaused: isPaused)
        }
    }

    func frame(_ number: UInt64) -> Entry? {
        let oldest = lastNumber - UInt64(count) + 1
        guard number >= oldest, number <= lastNumber else { return nil }
        return frames[first + Int(number - oldest)]
    }
}

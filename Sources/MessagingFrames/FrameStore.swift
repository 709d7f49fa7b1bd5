import MessagingWire
import Synchronization
import Transport

/// What a log keeps, in the order in which it came: the bytes of frames in a ring, decoded when they are read.
///
/// Frames are added and dropped in runs, so that a read with a thousand frames costs little more than the copy of its
/// bytes; nothing is allocated for a frame.
struct FrameStore {
    let limit: Int
    let byteLimit: Int
    /// A frame is kept whole up to this many bytes.
    let largestFrame: Int
    /// Whether passwords and the like are kept, for a reader that asks for them.
    let keepsSecrets: Bool
    var isPaused = false

    private var ring = ByteRing()
    /// Used from `first` on. The places before it were dropped; their memory is freed when they are half of all.
    private var places: [Place] = []
    private var first = 0
    /// Used from `firstRun` on. The runs before it were dropped.
    private var runs: [Run] = []
    private var firstRun = 0
    private var byteCount = 0
    private var lastNumber: UInt64 = 0
    private var lastConnection = 0
    private var droppedCount = 0
    private var skippedCount = 0
    private var clearCount = 0
    private var connections: [Int: Connection] = [:]

    /// Where a frame is in the ring.
    fileprivate struct Place {
        let start: Int
        /// Bytes that are kept.
        let count: UInt32
        /// Bytes on the wire.
        let size: UInt32

        var end: Int { start + Int(count) }
    }

    /// Frames that came together and are decoded alike.
    struct Run {
        fileprivate let decoder: any FrameDecoder
        fileprivate let moment: FrameMoment
        /// The number of its first frame.
        fileprivate let first: UInt64
        fileprivate let client: String
        fileprivate let connection: Int

        /// Decodes a frame of the run. Not for callers that hold the log's lock.
        fileprivate func frame(_ number: UInt64, _ bytes: [UInt8], size: Int, showsSecrets: Bool) -> LoggedFrame {
            let raw = RawFrame(bytes: bytes, size: size, moment: moment)
            return LoggedFrame(
                raw, number: number, client: client, connection: connection,
                decoder.decode(raw, showsSecrets: showsSecrets))
        }
    }

    /// The first frame of a connection. Without it the version of the others is unknown, so it outlives its place among
    /// them.
    struct Opening {
        fileprivate let run: Run
        fileprivate let bytes: [UInt8]

        /// Not for callers that hold the log's lock.
        var frame: LoggedFrame { run.frame(run.first, bytes, size: bytes.count, showsSecrets: false) }
    }

    /// A connection that is alive or has left frames.
    private struct Connection {
        var opening: Opening?
        var runCount = 0
        var isAlive = true
    }

    /// Longer openings are dropped like every other frame.
    private static let largestOpening = 4096

    init(limit: Int, bytes: Int, keepsSecrets: Bool = false) {
        self.limit = limit
        byteLimit = bytes
        largestFrame = max(512, bytes / 8)
        self.keepsSecrets = keepsSecrets
    }

    private var count: Int { places.count - first }
    private var firstNumber: UInt64 { lastNumber - UInt64(count) + 1 }

    var openings: [Int: Opening] { connections.compactMapValues(\.opening) }

    // MARK: Adding

    mutating func append(
        _ cuts: borrowing FrameCuts, of bytes: RawSpan, at moment: FrameMoment, from source: FrameLogSource
    ) {
        for index in cuts.pieces.indices {
            let frames = cuts.frames(of: index)
            if !frames.isEmpty { append(frames, of: cuts.pieces[index], cuts, bytes, moment, source) }
        }
    }

    private mutating func append(
        _ frames: Range<Int>, of piece: FrameCuts.Piece, _ cuts: borrowing FrameCuts, _ bytes: RawSpan,
        _ moment: FrameMoment, _ source: FrameLogSource
    ) {
        let connection = connection(of: source, opened: piece.opensConnection)
        func run(from first: UInt64) -> Run {
            Run(decoder: piece.decoder, moment: moment, first: first, client: source.name, connection: connection)
        }
        if piece.opensConnection {
            let frame = bytes.extracting(piece.start..<Int(cuts.ends[frames.lowerBound]))
            let opening = opening(run(from: lastNumber + 1), frame, hiding: piece.secrets)
            connections[connection]?.opening = opening
        }
        if isPaused {
            skippedCount += frames.count
            return
        }
        // Frames that would be dropped at once are not copied.
        let (kept, keptBytes) = newest(of: frames, cuts, from: piece.start)
        let skipsSome = kept.count < frames.count
        makeRoom(for: skipsSome ? limit : kept.count, skipsSome ? byteLimit : keptBytes)
        lastNumber += UInt64(frames.count - kept.count)
        droppedCount += frames.count - kept.count
        add(run(from: lastNumber + 1))
        copy(kept, cuts, bytes, from: skipsSome ? Int(cuts.ends[kept.lowerBound - 1]) : piece.start)
        lastNumber += UInt64(kept.count)
        byteCount += keptBytes
        if !keepsSecrets, let place = places.last {
            for secret in piece.secrets { ring.hide(secret, behind: place.start) }
        }
    }

    /// As many of the last frames as the log has room for, at least one, and the bytes that are kept of them.
    private func newest(
        of frames: Range<Int>, _ cuts: borrowing FrameCuts, from start: Int
    ) -> (frames: Range<Int>, bytes: Int) {
        var (first, keptBytes) = (frames.upperBound, 0)
        while first > frames.lowerBound, frames.upperBound - first < limit {
            let begin = first - 1 == frames.lowerBound ? start : Int(cuts.ends[first - 2])
            let count = FrameBytes.keptCount(of: Int(cuts.ends[first - 1]) - begin, limit: largestFrame)
            guard keptBytes + count <= byteLimit else { break }
            keptBytes += count
            first -= 1
        }
        return (first..<frames.upperBound, keptBytes)
    }

    /// Copies frames into the ring, as many as possible at once.
    private mutating func copy(_ frames: Range<Int>, _ cuts: borrowing FrameCuts, _ bytes: RawSpan, from start: Int) {
        let oldest = count > 0 ? places[first].start : ring.end
        // Bytes from `copied` on are not in the ring yet.
        var (begin, copied) = (start, start)
        for index in frames {
            let end = Int(cuts.ends[index])
            let count = FrameBytes.keptCount(of: end - begin, limit: largestFrame)
            places.append(
                Place(start: ring.end + begin - copied, count: UInt32(count), size: UInt32(end - begin)))
            if count < end - begin {
                ring.append(bytes.extracting(copied..<begin + count), keepingFrom: oldest, limit: byteLimit)
                copied = end
            }
            begin = end
        }
        ring.append(bytes.extracting(copied..<begin), keepingFrom: oldest, limit: byteLimit)
    }

    private func opening(_ run: Run, _ frame: RawSpan, hiding secrets: [Range<Int>]) -> Opening? {
        guard frame.byteCount <= Self.largestOpening else { return nil }
        var bytes = frame.bytes(in: 0..<frame.byteCount)
        for secret in secrets { for index in secret { bytes[index] = FrameBytes.star } }
        return Opening(run: run, bytes: bytes)
    }

    private mutating func add(_ run: Run) {
        runs.append(run)
        connections[run.connection]?.runCount += 1
    }

    // MARK: Dropping

    /// Drops the oldest frames until there is room for so many more, which are within both limits.
    private mutating func makeRoom(for more: Int, _ bytes: Int) {
        let oldCount = count
        while count > 0, count > limit - more || byteCount > byteLimit - bytes {
            byteCount -= Int(places[first].count)
            first += 1
        }
        guard count < oldCount else { return }
        droppedCount += oldCount - count
        if first > 64, first > places.count / 2 {
            places.removeFirst(first)
            first = 0
        }
        let oldest = firstNumber
        while firstRun < runs.count, count == 0 || (firstRun + 1 < runs.count && runs[firstRun + 1].first <= oldest) {
            forget(runs[firstRun])
            firstRun += 1
        }
        if firstRun > 64 || firstRun == runs.count, firstRun > runs.count / 2 {
            runs.removeFirst(firstRun)
            firstRun = 0
        }
    }

    private mutating func forget(_ run: Run) {
        connections[run.connection]?.runCount -= 1
        forgetIfEmpty(run.connection)
    }

    /// The frames that are kept, and how many were dropped since the last call; forgets both.
    mutating func take() -> (copy: Copy, droppedCount: Int) {
        let taken = (copy(first..<places.count), droppedCount)
        clear()
        return taken
    }

    mutating func clear() {
        for run in runs[firstRun...] { forget(run) }
        ring.removeAll()
        (places, first, runs, firstRun, byteCount) = ([], 0, [], 0, 0)
        clearCount += 1
        droppedCount = 0
        skippedCount = 0
    }

    // MARK: Connections

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

    private mutating func forgetIfEmpty(_ number: Int) {
        if let connection = connections[number], connection.runCount == 0, !connection.isAlive {
            connections[number] = nil
        }
    }

    // MARK: Reading

    /// A copy of frames, which are decoded after the lock is released.
    struct Copy {
        fileprivate let bytes: [UInt8]
        /// The place of the first of `bytes` in the ring.
        fileprivate let origin: Int
        fileprivate let places: ArraySlice<Place>
        fileprivate let runs: ArraySlice<Run>
        fileprivate let firstNumber: UInt64
        fileprivate let showsSecrets: Bool

        var frames: [LoggedFrame] {
            var frames: [LoggedFrame] = []
            frames.reserveCapacity(places.count)
            var run = runs.startIndex
            for (offset, place) in places.enumerated() {
                let number = firstNumber + UInt64(offset)
                while run + 1 < runs.endIndex, runs[run + 1].first <= number { run += 1 }
                let kept = Array(bytes[place.start - origin..<place.end - origin])
                frames.append(runs[run].frame(number, kept, size: Int(place.size), showsSecrets: showsSecrets))
            }
            return frames
        }
    }

    private func copy(_ range: Range<Int>) -> Copy {
        let kept = places[range]
        let origin = kept.first?.start ?? ring.end
        let end = range.upperBound < places.count ? places[range.upperBound].start : ring.end
        return Copy(
            bytes: ring.bytes(in: origin..<end), origin: origin, places: kept, runs: runs[firstRun...],
            firstNumber: firstNumber + UInt64(range.lowerBound - first), showsSecrets: keepsSecrets)
    }

    /// The frames after `since`, and the counts of a snapshot, to which `make` adds the decoded frames.
    func snapshot(since: UInt64) -> (copy: Copy, make: ([LoggedFrame]) -> FrameLog.Snapshot) {
        let oldest = firstNumber
        let skipped = since < oldest ? 0 : Int(min(since - oldest + 1, UInt64(count)))
        let (cursor, missed) = (lastNumber, since < oldest - 1 ? Int(oldest - 1 - since) : 0)
        let (dropped, passed, clears, isPaused) = (droppedCount, skippedCount, clearCount, isPaused)
        return (
            copy(first + skipped..<places.count),
            { frames in
                FrameLog.Snapshot(
                    frames: frames, cursor: cursor, missedCount: missed, droppedCount: dropped, skippedCount: passed,
                    clearCount: clears, isPaused: isPaused)
            }
        )
    }

    func frame(_ number: UInt64) -> Copy? {
        guard number >= firstNumber, number <= lastNumber else { return nil }
        let index = first + Int(number - firstNumber)
        return copy(index..<index + 1)
    }
}

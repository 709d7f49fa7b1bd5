import Synchronization
import Transport
import Wire

/// What a log keeps, in the order in which it came: the bytes of raw frames in a ring, and frames that are decoded.
///
/// Frames are added and dropped in runs, so that a read with a thousand frames costs little more than the copy of its
/// bytes; nothing is allocated for a frame.
struct FrameStore {
    let limit: Int
    let byteLimit: Int
    /// A frame is kept whole up to this many bytes.
    let largestFrame: Int
    var isPaused = false

    private var ring = ByteRing()
    /// Used from `first` on. The places before it were dropped; their memory is freed when they are half of all.
    private var places: [Place] = []
    private var first = 0
    /// Used from `firstRun` on. The runs before it were dropped.
    private var runs: [Run] = []
    private var firstRun = 0
    /// Of all frames, decoded ones included.
    private var byteCount = 0
    private var lastNumber: UInt64 = 0
    private var lastConnection = 0
    private var droppedCount = 0
    private var skippedCount = 0
    private var clearCount = 0
    private var connections: [Int: Connection] = [:]

    /// Where a raw frame is in the ring; a decoded frame has a size and no bytes there.
    fileprivate struct Place {
        let start: Int
        let count: Int
    }

    /// Frames that came together and are decoded alike, or one that is decoded.
    struct Run {
        enum Content {
            case raw(any FrameDecoder, FrameMoment)
            case decoded(Shared<LoggedFrame>)
        }

        let content: Content
        /// The number of its first frame.
        let first: UInt64
        let client: String
        let connection: Int

        /// A frame of the run. Not for callers that hold the log's lock.
        func frame(_ number: UInt64, _ bytes: [UInt8]) -> LoggedFrame {
            var frame =
                switch content {
                case .raw(let decoder, let moment): decoder.decode(RawFrame(bytes: bytes, moment: moment))
                case .decoded(let frame): frame.value
                }
            frame.number = number
            frame.client = client
            frame.connection = connection
            return frame
        }
    }

    /// A connection that is alive or has left frames.
    private struct Connection {
        /// Without its first frame the version of the others is unknown, so it outlives its place in the row.
        var opening: Run?
        var runCount = 0
        var isAlive = true
    }

    /// Longer openings are dropped like every other frame.
    private static let largestOpening = 4096

    init(limit: Int, bytes: Int) {
        self.limit = limit
        byteLimit = bytes
        largestFrame = max(512, bytes / 8)
    }

    private var count: Int { places.count - first }
    private var firstNumber: UInt64 { lastNumber - UInt64(count) + 1 }

    var openings: [Int: Run] { connections.compactMapValues(\.opening) }

    // MARK: Adding

    /// Returns what was dropped and is not trivial, to be freed after the lock is released.
    mutating func append(
        _ cuts: borrowing FrameCuts, of bytes: RawSpan, at moment: FrameMoment, from source: FrameLogSource
    ) -> [Shared<LoggedFrame>] {
        var gone: [Shared<LoggedFrame>] = []
        for index in cuts.pieces.indices {
            switch cuts.pieces[index].content {
            case .decoded(let frame): append(frame.limited(to: largestFrame), from: source, &gone)
            case .raw(let decoder):
                let frames = cuts.frames(of: index)
                guard !frames.isEmpty else { continue }
                append(frames, of: cuts, cuts.pieces[index].start, bytes, .raw(decoder, moment), source, &gone)
            }
        }
        return gone
    }

    private mutating func append(
        _ frame: LoggedFrame, from source: FrameLogSource, _ gone: inout [Shared<LoggedFrame>]
    ) {
        let connection = connection(of: source, opened: frame.opensConnection)
        let run = Run(
            content: .decoded(Shared(frame)), first: lastNumber + 1, client: source.name, connection: connection)
        if isPaused {
            skippedCount += 1
            return keep(opening: run)
        }
        makeRoom(for: 1, frame.bytes.count, &gone)
        lastNumber += 1
        places.append(Place(start: ring.end, count: frame.bytes.count))
        byteCount += frame.bytes.count
        add(run)
    }

    private mutating func append(
        _ frames: Range<Int>, of cuts: borrowing FrameCuts, _ start: Int, _ bytes: RawSpan, _ content: Run.Content,
        _ source: FrameLogSource, _ gone: inout [Shared<LoggedFrame>]
    ) {
        let connection = connection(of: source, opened: false)
        if isPaused {
            skippedCount += frames.count
            return
        }
        // Those that would be dropped at once are not copied.
        let end = Int(cuts.ends[frames.upperBound - 1])
        var kept = frames.suffix(limit)
        var from = kept.lowerBound == frames.lowerBound ? start : Int(cuts.ends[kept.lowerBound - 1])
        while end - from > byteLimit { from = Int(cuts.ends[kept.removeFirst()]) }
        let skipsSome = kept.count < frames.count
        makeRoom(for: skipsSome ? limit : kept.count, skipsSome ? byteLimit : end - from, &gone)
        lastNumber += UInt64(frames.count - kept.count)
        droppedCount += frames.count - kept.count
        let run = Run(content: content, first: lastNumber + 1, client: source.name, connection: connection)
        // Where the bytes that were not copied would have begun.
        let shift = ring.end - from
        ring.append(
            bytes.extracting(from..<end), keepingFrom: count > 0 ? places[first].start : ring.end, limit: byteLimit)
        for index in kept {
            let end = Int(cuts.ends[index])
            places.append(Place(start: from + shift, count: end - from))
            from = end
        }
        lastNumber += UInt64(kept.count)
        byteCount += ring.end - (kept.isEmpty ? ring.end : places[places.count - kept.count].start)
        add(run)
    }

    private mutating func add(_ run: Run) {
        runs.append(run)
        connections[run.connection]?.runCount += 1
    }

    // MARK: Dropping

    /// Drops the oldest frames until there is room for so many more.
    private mutating func makeRoom(for more: Int, _ bytes: Int, _ gone: inout [Shared<LoggedFrame>]) {
        let oldCount = count
        while count > 0, count + more > limit || byteCount + bytes > byteLimit {
            byteCount -= places[first].count
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
            if let frame = forget(runs[firstRun]) { gone.append(frame) }
            firstRun += 1
        }
        if firstRun > 64 || firstRun == runs.count, firstRun > runs.count / 2 {
            runs.removeFirst(firstRun)
            firstRun = 0
        }
    }

    private mutating func forget(_ run: Run) -> Shared<LoggedFrame>? {
        connections[run.connection]?.runCount -= 1
        keep(opening: run)
        forgetIfEmpty(run.connection)
        return if case .decoded(let frame) = run.content { frame } else { nil }
    }

    private mutating func keep(opening run: Run) {
        guard case .decoded(let frame) = run.content, frame.value.opensConnection,
            frame.value.bytes.count <= Self.largestOpening
        else { return }
        connections[run.connection]?.opening = run
    }

    mutating func clear() -> [Shared<LoggedFrame>] {
        let gone = runs[firstRun...].compactMap { forget($0) }
        ring.removeAll()
        (places, first, runs, firstRun, byteCount) = ([], 0, [], 0, 0)
        clearCount += 1
        droppedCount = 0
        skippedCount = 0
        return gone
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
        /// Of the first of `bytes` in the ring.
        fileprivate let origin: Int
        fileprivate let places: ArraySlice<Place>
        fileprivate let runs: ArraySlice<Run>
        fileprivate let firstNumber: UInt64

        var frames: [LoggedFrame] {
            var frames: [LoggedFrame] = []
            frames.reserveCapacity(places.count)
            var run = runs.startIndex
            for (offset, place) in places.enumerated() {
                let number = firstNumber + UInt64(offset)
                while run + 1 < runs.endIndex, runs[run + 1].first <= number { run += 1 }
                frames.append(runs[run].frame(number, raw(place, runs[run])))
            }
            return frames
        }

        private func raw(_ place: Place, _ run: Run) -> [UInt8] {
            guard case .raw = run.content else { return [] }
            return Array(bytes[place.start - origin..<place.start - origin + place.count])
        }

        /// Frames that are not decoded yet.
        var rawCount: Int {
            var (count, next) = (0, firstNumber + UInt64(places.count))
            for run in runs.reversed() {
                if case .raw = run.content { count += Int(next - max(run.first, firstNumber)) }
                next = run.first
            }
            return count
        }
    }

    private func copy(_ range: Range<Int>) -> Copy {
        let kept = places[range]
        let origin = kept.first?.start ?? ring.end
        let end = range.upperBound < places.count ? places[range.upperBound].start : ring.end
        return Copy(
            bytes: ring.bytes(in: origin..<end), origin: origin, places: kept, runs: runs[firstRun...],
            firstNumber: firstNumber + UInt64(range.lowerBound - first))
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

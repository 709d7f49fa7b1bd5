import Transport
import Wire

/// Where the frames are in the bytes of one read or write, on their way into logs.
///
/// Frames that follow each other and are decoded alike form one piece, so that a log takes all of them at once. Frames
/// that cannot wait for a reader are decoded already: those of a handshake, whose secrets are not kept, and those of which
/// only the beginning is kept.
@usableFromInline
package struct FrameCuts: Sendable {
    enum Content: Sendable {
        /// Frames that are decoded when a log is read.
        case raw(any FrameDecoder)
        /// One frame.
        case decoded(LoggedFrame)
    }

    struct Piece: Sendable {
        let content: Content
        /// Where its first frame begins.
        let start: Int
        /// The index in ``FrameCuts/ends`` of its first frame; its last one is in front of the next piece.
        let firstEnd: Int
    }

    private(set) var pieces: [Piece] = []
    /// Where the raw frames end.
    @usableFromInline private(set) var ends: [UInt32] = []

    package init() {}

    /// The frames that are added from here on begin at `start` and are decoded by `decoder`.
    package mutating func begin(at start: Int, decoder: any FrameDecoder) {
        pieces.append(Piece(content: .raw(decoder), start: start, firstEnd: ends.count))
    }

    /// Adds a frame that begins where the one before it ends.
    package mutating func add(endingAt end: Int) {
        ends.append(UInt32(truncatingIfNeeded: end))
    }

    /// Adds a frame that is decoded already. ``begin(at:decoder:)`` has to follow before raw frames.
    package mutating func add(_ frame: LoggedFrame) {
        pieces.append(Piece(content: .decoded(frame), start: 0, firstEnd: ends.count))
    }

    /// Adds the frames that were decoded for logs.
    package mutating func add<Record>(_ frames: [InspectedFrame<Record>]) {
        for frame in frames { if let logged = frame.logged { add(logged) } }
    }

    /// The raw frames of a piece, as indexes into ``ends``.
    func frames(of piece: Int) -> Range<Int> {
        pieces[piece].firstEnd..<(piece + 1 < pieces.count ? pieces[piece + 1].firstEnd : ends.count)
    }

    /// Forgets everything and keeps the capacity.
    mutating func removeAll() {
        pieces.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }
}

/// When bytes were exchanged, and which way they went.
package struct FrameMoment: Sendable {
    package let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    package let time: Int64
    /// Nanoseconds of the monotonic clock.
    package let instant: Int64

    package init(_ direction: FrameDirection, time: Int64 = WallClock.milliseconds, instant: Int64 = MonotonicClock.now)
    {
        self.direction = direction
        self.time = time
        self.instant = instant
    }
}

/// A whole frame as a log keeps it, with its secrets.
package struct RawFrame: Sendable {
    package let bytes: [UInt8]
    package let moment: FrameMoment

    /// The bytes as they are, for a decoder that finds no valid frame in them.
    package func invalid(_ protocolName: String, type: String = "?") -> LoggedFrame {
        LoggedFrame(
            moment.direction, time: moment.time, protocolName: protocolName, type: type, size: bytes.count,
            destination: nil, qos: nil, payloadCount: 0, bytes: bytes, opensConnection: false, endsConnection: false,
            instant: moment.instant, content: InvalidFrame())
    }
}

/// Decodes whole frames for logs, with their secrets masked.
package protocol FrameDecoder: Sendable {
    func decode(_ frame: RawFrame) -> LoggedFrame
}

/// Bytes that are shown as they are, because they are not a valid frame.
package struct InvalidFrame: FrameContent {
    package init() {}

    package var fields: [LoggedFrame.Field] { [] }
    package var note: String { "These bytes are not a valid frame." }
    package var payloadPreview: String? { nil }
}

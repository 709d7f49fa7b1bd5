import MessagingWire
import Transport

/// Where the frames are in the bytes of one read or write, on their way into logs.
///
/// Frames that follow each other and are decoded alike form one piece, so that a log takes all of them at once.
@usableFromInline
package struct FrameCuts: Sendable {
    struct Piece: Sendable {
        let decoder: any FrameDecoder
        /// Where its first frame begins.
        let start: Int
        /// The index in ``FrameCuts/ends`` of its first frame; its last one is in front of the next piece.
        let firstEnd: Int
        /// Whether its one frame is the first of a connection.
        let opensConnection: Bool
        /// Where the secrets of its one frame are, from the frame's first byte on.
        let secrets: [Range<Int>]
    }

    private(set) var pieces: [Piece] = []
    /// Where the frames end.
    @usableFromInline private(set) var ends: [UInt32] = []

    package init() {}

    /// The frames that are added from here on begin at `start` and are decoded by `decoder`.
    package mutating func begin(at start: Int, decoder: any FrameDecoder) {
        begin(at: start, decoder, opensConnection: false, hiding: [])
    }

    /// Adds a frame that begins where the one before it ends.
    package mutating func add(endingAt end: Int) {
        ends.append(UInt32(truncatingIfNeeded: end))
    }

    /// Adds a frame that is a piece of its own. ``begin(at:decoder:)`` has to follow before other frames.
    ///
    /// - Parameter secrets: where passwords and the like are, from the frame's first byte on; logs write stars over them.
    package mutating func add(
        _ range: Range<Int>, decoder: any FrameDecoder, opensConnection: Bool = false, hiding secrets: [Range<Int>]
    ) {
        begin(at: range.lowerBound, decoder, opensConnection: opensConnection, hiding: secrets)
        add(endingAt: range.upperBound)
    }

    private mutating func begin(
        at start: Int, _ decoder: any FrameDecoder, opensConnection: Bool, hiding secrets: [Range<Int>]
    ) {
        pieces.append(
            Piece(
                decoder: decoder, start: start, firstEnd: ends.count, opensConnection: opensConnection,
                secrets: secrets))
    }

    /// The frames of a piece, as indexes into ``ends``.
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

/// A frame as a log keeps it: its bytes, or only the first of them if it is large.
package struct RawFrame: Sendable {
    package let bytes: [UInt8]
    /// Bytes on the wire.
    package let size: Int
    package let moment: FrameMoment

    package init(bytes: [UInt8], size: Int, moment: FrameMoment) {
        self.bytes = bytes
        self.size = size
        self.moment = moment
    }

    /// The bytes that were not kept.
    package var missingCount: Int { size - bytes.count }
}

/// Decodes the frames that a log keeps, when it is read.
package protocol FrameDecoder: Sendable {
    /// - Parameter showsSecrets: whether the bytes have their secrets, and these are to be readable.
    func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent
}

/// Bytes that are shown as they are, because they are not a valid frame.
package struct InvalidFrame: FrameContent {
    package let protocolName: String
    package let typeName: String
    package let note: String

    package init(_ frame: RawFrame, _ protocolName: String, type: String = "?") {
        self.protocolName = protocolName
        typeName = type
        note =
            frame.missingCount == 0
            ? "These bytes are not a valid frame."
            : "The \(OneLine.bytes(frame.bytes.count)) that were kept of this frame are too few to decode it."
    }

    package var fields: [LoggedFrame.Field] { [] }
    package var payloadPreview: String? { nil }
}

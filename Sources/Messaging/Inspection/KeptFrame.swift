import Synchronization
import Transport

/// A frame that logs keep: as the bytes that were exchanged until a log is read for the first time, decoded from then on.
package final class KeptFrame: Sendable {
    /// What a frame that is not decoded yet consists of.
    package struct Undecoded: Sendable {
        package var bytes: [UInt8]
        package var direction: FrameDirection
        /// Milliseconds since 1970, UTC.
        package var time: Int64
        /// Nanoseconds of the monotonic clock.
        package var instant: Int64
        package var decoder: any FrameDecoder

        package init(
            _ bytes: [UInt8], _ direction: FrameDirection, time: Int64, instant: Int64, decoder: any FrameDecoder
        ) {
            self.bytes = bytes
            self.direction = direction
            self.time = time
            self.instant = instant
            self.decoder = decoder
        }

        /// The bytes as they are, for a decoder that finds no valid frame in them.
        package func invalid(_ protocolName: String, type: String = "?") -> LoggedFrame {
            LoggedFrame(
                direction, time: time, protocolName: protocolName, type: type, size: bytes.count, destination: nil,
                qos: nil, payloadCount: 0, bytes: bytes, opensConnection: false, endsConnection: false,
                instant: instant, content: InvalidFrame())
        }
    }

    private enum State: Sendable {
        case undecoded(Undecoded)
        case decoded(LoggedFrame)
    }

    private let state: Lock<State>
    /// Bytes that are kept.
    let byteCount: Int
    /// Bytes on the wire.
    let size: Int
    /// Whether it is the first frame of its connection.
    let opensConnection: Bool

    /// A frame that is decoded when it is needed.
    package init(_ frame: Undecoded, opensConnection: Bool = false) {
        byteCount = frame.bytes.count
        size = frame.bytes.count
        self.opensConnection = opensConnection
        state = Lock(.undecoded(frame))
    }

    /// A frame that is decoded already.
    package init(_ frame: LoggedFrame) {
        byteCount = frame.bytes.count
        size = frame.size
        opensConnection = frame.opensConnection
        state = Lock(.decoded(frame))
    }

    /// Whether it has been decoded.
    var isDecoded: Bool {
        state.withLock { if case .decoded = $0 { true } else { false } }
    }

    /// The decoded frame. Decoding happens once, on the thread of the first caller.
    var frame: LoggedFrame {
        state.withLock { state in
            switch state {
            case .decoded(let frame): return frame
            case .undecoded(let undecoded):
                let frame = undecoded.decoder.decode(undecoded)
                state = .decoded(frame)
                return frame
            }
        }
    }

    /// The frame as a log keeps it whose bound for whole frames is `limit` bytes.
    func limited(to limit: Int) -> KeptFrame {
        size <= limit || byteCount <= FrameBytes.keptCount(of: size, limit: limit)
            ? self : KeptFrame(frame.limited(to: limit))
    }
}

/// The frames of one read or write, on their way into logs.
package struct KeptFrames {
    package private(set) var frames: [KeptFrame] = []
    private let direction: FrameDirection
    private let time = WallClock.milliseconds
    private let instant = MonotonicClock.now

    package init(_ direction: FrameDirection) {
        self.direction = direction
    }

    /// Adds a copy of a whole frame, which is decoded when a log is read.
    package mutating func add(_ range: Range<Int>, of bytes: RawSpan, decoder: any FrameDecoder) {
        let bytes = FrameBytes.copy(bytes, range)
        frames.append(
            KeptFrame(KeptFrame.Undecoded(bytes, direction, time: time, instant: instant, decoder: decoder)))
    }

    /// Adds frames that are decoded already.
    package mutating func add<Record>(_ decoded: [InspectedFrame<Record>]) {
        frames += decoded.compactMap { $0.logged.map(KeptFrame.init) }
    }
}

/// Decodes whole frames for logs, with their secrets masked.
package protocol FrameDecoder: Sendable {
    func decode(_ frame: KeptFrame.Undecoded) -> LoggedFrame
}

/// Bytes that are shown as they are, because they are not a valid frame.
package struct InvalidFrame: FrameContent {
    package init() {}

    package var fields: [LoggedFrame.Field] { [] }
    package var note: String { "These bytes are not a valid frame." }
    package var payloadPreview: String? { nil }
}

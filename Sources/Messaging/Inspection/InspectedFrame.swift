import Transport
import Wire

/// What the observers of a connection need of each frame.
package struct FrameWishes: Sendable {
    /// A record with its secrets masked.
    package var masked = false
    /// A record with its secrets.
    package var complete = false
    /// A frame for logs, whole up to this many bytes; nil without a log.
    package var logLimit: Int?

    package init(masked: Bool = false, complete: Bool = false, logLimit: Int? = nil) {
        self.masked = masked
        self.complete = complete
        self.logLimit = logLimit
    }

    package var isEmpty: Bool { !masked && !complete && logLimit == nil }
}

/// One frame, decoded once for all observers.
package struct InspectedFrame<Record: Sendable>: Sendable {
    package var masked: Record?
    package var complete: Record?
    package var logged: LoggedFrame?

    package init(masked: Record? = nil, complete: Record? = nil, logged: LoggedFrame? = nil) {
        self.masked = masked
        self.complete = complete
        self.logged = logged
    }
}

/// How many bytes of a frame the logs of a connection keep.
package struct FrameLimits: Sendable {
    /// Larger frames are decoded at once: there is a log that keeps only their beginning.
    package let whole: Int
    /// What the log with the highest bound keeps whole.
    package let kept: Int

    package init(whole: Int, kept: Int) {
        self.whole = whole
        self.kept = kept
    }
}

/// What an inspector shows of a packet or frame; each client has its own.
package protocol FrameRecord: Sendable {
    associatedtype Frame
    associatedtype Version: Sendable

    init(_ frame: Frame, size: Int, _ direction: FrameDirection, time: Int64, showsSecrets: Bool)
    /// Decodes whole frames, with their secrets, and the range of each.
    static func forEachFrame(
        in bytes: RawSpan, version: Version, _ body: (_ frame: Frame, _ range: Range<Int>) -> Void)
    /// The bytes of a frame with its secrets masked, up to `limit` of them.
    static func masked(_ frame: Frame, _ bytes: RawSpan, _ range: Range<Int>, limit: Int) -> [UInt8]
    /// The record as a log keeps it.
    ///
    /// - Parameters:
    ///   - frame: with its secrets.
    ///   - topic: what a frame without one is about, if that is known.
    func logged(_ frame: Frame, _ version: Version, topic: String?, instant: Int64, bytes: [UInt8]) -> LoggedFrame
    /// Bytes that are not a valid frame.
    static func invalid(_ frame: RawFrame, _ version: Version) -> LoggedFrame
}

extension FrameRecord {
    /// Decodes whole frames, each once, into what is wished of them; logs get them with their secrets masked.
    package static func read(
        _ bytes: RawSpan, version: Version, _ direction: FrameDirection, _ wishes: FrameWishes
    ) -> [InspectedFrame<Self>] {
        var frames: [InspectedFrame<Self>] = []
        forEachFrame(in: bytes, version: version) { frame, range in
            frames.append(inspected(frame, bytes, range, version, direction, wishes))
        }
        return frames
    }

    /// Makes the records of one decoded frame that the observers need; logs get it with its secrets masked.
    package static func inspected(
        _ frame: Frame, _ bytes: RawSpan, _ range: Range<Int>, _ version: Version, _ direction: FrameDirection,
        _ wishes: FrameWishes, topic: @autoclosure () -> String? = nil
    ) -> InspectedFrame<Self> {
        let time = WallClock.milliseconds
        var inspected = InspectedFrame<Self>()
        if wishes.complete {
            inspected.complete = Self(frame, size: range.count, direction, time: time, showsSecrets: true)
        }
        if wishes.masked || wishes.logLimit != nil {
            let record = Self(frame, size: range.count, direction, time: time, showsSecrets: false)
            inspected.masked = record
            inspected.logged = wishes.logLimit.map { limit in
                record.logged(
                    frame, version, topic: topic(), instant: MonotonicClock.now,
                    bytes: masked(frame, bytes, range, limit: limit))
            }
        }
        return inspected
    }
}

/// Decodes a client's frames when a log is read.
package struct RecordDecoder<Record: FrameRecord>: FrameDecoder {
    private let version: Record.Version
    private let topic: String?

    /// - Parameter topic: what a frame without one is about.
    package init(_ record: Record.Type, version: Record.Version, topic: String? = nil) {
        self.version = version
        self.topic = topic
    }

    package func decode(_ frame: RawFrame) -> LoggedFrame {
        var decoded: LoggedFrame?
        let moment = frame.moment
        // UInt8 has no padding, so all bytes are initialised.
        let bytes = unsafe frame.bytes.span.bytes
        Record.forEachFrame(in: bytes, version: version) { whole, range in
            let record = Record(
                whole, size: range.count, moment.direction, time: moment.time, showsSecrets: false)
            decoded = record.logged(
                whole, version, topic: topic, instant: moment.instant,
                bytes: Record.masked(whole, bytes, range, limit: range.count))
        }
        return decoded ?? Record.invalid(frame, version)
    }
}

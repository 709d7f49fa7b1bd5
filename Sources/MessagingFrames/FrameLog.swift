import Synchronization
import Transport

/// The last frames of one client or many, for showing, searching and exporting.
///
///     let log = FrameLog()
///     client.inspect(into: log)
///     for frame in log.snapshot().frames { print(frame.direction, frame.type, frame.destination ?? "") }
///
/// The log is bounded by number and by bytes; the oldest frames go first, and are counted. A client that has no log pays
/// nothing for it. A client with a log copies the bytes that it exchanges into the log's buffer, once for each read and
/// write, writes stars over the secrets in them, and never waits for a reader: frames are decoded each time that the
/// log is read, by the thread that reads it.
public final class FrameLog: Sendable {
    /// What a log held at one moment.
    public struct Snapshot: Sendable {
        /// Oldest first.
        public let frames: [LoggedFrame]
        /// The number of the newest frame that the log has ever kept: what to hand in as `since` the next time.
        public let cursor: UInt64
        /// Frames after `since` that had been dropped before anybody asked for them.
        public let missedCount: Int
        /// Frames that had to make room so far.
        public let droppedCount: Int
        /// Frames that passed by while the log was paused.
        public let skippedCount: Int
        /// How often the log was cleared: when it has changed, what was fetched before is gone.
        public let clearCount: Int
        /// Whether the log was paused.
        public let isPaused: Bool
    }

    private let state: Lock<FrameStore>

    /// Makes an empty log.
    ///
    /// - Parameters:
    ///   - limit: Frames that are kept, at least one.
    ///   - bytes: Bytes of frames that are kept, at least 4096.
    public convenience init(limit: Int = 1_000, bytes: Int = 1 << 20) {
        self.init(limit: limit, bytes: bytes, keepsSecrets: false)
    }

    package init(limit: Int, bytes: Int, keepsSecrets: Bool) {
        state = Lock(FrameStore(limit: max(1, limit), bytes: max(4096, bytes), keepsSecrets: keepsSecrets))
    }

    /// Whether frames pass by without being kept.
    public var isPaused: Bool { state.withLock { $0.isPaused } }

    /// Keeps the frames that it has, and ignores all others until ``resume()``.
    public func pause() {
        state.withLock { $0.isPaused = true }
    }

    /// Keeps frames again.
    public func resume() {
        state.withLock { $0.isPaused = false }
    }

    /// Forgets all frames; their numbers are not used again.
    public func clear() {
        state.withLock { $0.clear() }
    }

    /// What the log holds now.
    ///
    /// - Parameter since: A ``Snapshot/cursor``: only newer frames are returned. Calls that each pass the cursor of the one
    ///   before return every frame once.
    public func snapshot(since: UInt64 = 0) -> Snapshot {
        let (copy, make) = state.withLock { $0.snapshot(since: since) }
        // Decoded here, outside the lock that clients take.
        return make(copy.frames)
    }

    /// The frame with this number, unless it has been dropped.
    public func frame(_ number: UInt64) -> LoggedFrame? {
        state.withLock { $0.frame(number) }?.frames.first
    }

    /// The frames in which a text occurs, oldest first; see ``LoggedFrame/contains(_:)``.
    public func frames(containing text: String) -> [LoggedFrame] {
        snapshot().frames.filter { $0.contains(text) }
    }

    /// The frames since the last call, oldest first, and how many were dropped before they could be taken.
    package func take() -> (frames: [LoggedFrame], droppedCount: Int) {
        let (copy, droppedCount) = state.withLock { $0.take() }
        return (copy.frames, droppedCount)
    }

    // MARK: For clients

    /// Keeps the frames of one read or write.
    package func append(
        _ cuts: borrowing FrameCuts, of bytes: RawSpan, at moment: FrameMoment, from source: FrameLogSource
    ) {
        state.withLock { $0.append(cuts, of: bytes, at: moment, from: source) }
    }

    func ended(_ source: FrameLogSource) {
        state.withLock { $0.ended(source) }
    }

    /// The frames, and the openings of their connections that are no longer among them, by connection.
    func capture() -> (frames: [LoggedFrame], openings: [Int: LoggedFrame]) {
        let (copy, openings) = state.withLock { ($0.snapshot(since: 0).copy, $0.openings) }
        return (copy.frames, openings.mapValues(\.frame))
    }
}

/// One client's way into a log.
package final class FrameLogSource: Sendable {
    let name: String
    /// The present connection's number, 0 before the first; changed only under the log's lock.
    let connection = Atomic(0)

    package init(_ name: String) {
        self.name = name
    }
}

extension FrameLog {
    /// What the log holds as a capture file in the format pcapng, which Wireshark and tshark read.
    ///
    /// Each connection is a TCP connection to port 1883 or 61613 of an address for documentation, however the bytes
    /// really went; the first segment of each frame has its type and destination as comment. Secrets are masked, in the
    /// bytes, too.
    public func pcapng() -> [UInt8] {
        let (frames, openings) = capture()
        var file = CaptureFile(
            application: "swift-messaging", interface: "frames",
            description: "Frames of MQTT and STOMP clients, in TCP made up around them")
        var lastOf: [Int: Int] = [:]
        for (index, frame) in frames.enumerated() { lastOf[frame.connection] = index }
        var conversations: [Int: CapturedConversation] = [:]
        for (index, frame) in frames.enumerated() {
            var conversation =
                conversations.removeValue(forKey: frame.connection)
                ?? Self.begin(frame, opening: openings[frame.connection], in: &file)
            conversation.add(frame, to: &file)
            if lastOf[frame.connection] == index {
                conversation.close(in: &file)
            } else {
                conversations[frame.connection] = conversation
            }
        }
        return file.bytes
    }

    private static func begin(
        _ frame: LoggedFrame, opening: LoggedFrame?, in file: inout CaptureFile
    ) -> CapturedConversation {
        var conversation = CapturedConversation(number: frame.connection, protocolName: frame.protocolName)
        let first = frame.opensConnection ? frame : opening ?? frame
        conversation.open(at: first.time * 1_000, in: &file)
        if !frame.opensConnection, let opening {
            conversation.add(opening, remark: "; what came between it and the next was dropped from the log", to: &file)
        }
        return conversation
    }
}

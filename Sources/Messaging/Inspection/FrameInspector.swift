import Synchronization
import Transport
import Wire

/// One step of one message: it was sent, acknowledged or received.
public struct MessageEvent: Sendable, Equatable {
    /// The steps of a message.
    public enum Step: Sendable {
        /// It left the outbox.
        case sent
        /// The server has finally acknowledged it; with STOMP a receipt arrived, also for frames that are no messages.
        case acknowledged
        /// It arrived.
        case received
    }

    /// What happened.
    public let step: Step
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// The topic or destination; nil for an acknowledgement, and for a message of MQTT 5.0 that has a topic alias instead.
    public let destination: String?
    /// The packet identifier, or the receipt: an acknowledgement has that of its message. Nil without one.
    public let identifier: String?
    /// The bytes of the payload.
    public let payloadCount: Int

    package init(_ step: Step, time: Int64, destination: String? = nil, identifier: String?, payloadCount: Int = 0) {
        self.step = step
        self.time = time
        self.destination = destination
        self.identifier = identifier
        self.payloadCount = payloadCount
    }
}

extension MessageEvent: CustomStringConvertible {
    public var description: String {
        let place = destination.map { " \($0)" } ?? ""
        return "\(time) \(step)\(place)" + (identifier.map { " (\($0))" } ?? "")
            + (step == .acknowledged ? "" : ", \(OneLine.bytes(payloadCount))")
    }
}

/// Turns the bytes that a link exchanges into records of frames. Without an observer it costs one comparison.
///
/// Each observer has a bounded buffer and misses the oldest records when it is slow, and so has each log: a connection
/// never waits for them.
package final class FrameInspector<Record: Sendable>: LinkTap {
    /// Decodes whole frames, each once, into what is wished of them.
    package typealias Read =
        @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ wishes: FrameWishes) -> [InspectedFrame<Record>]

    /// Cuts bytes into whole frames for logs, without decoding more of them than that needs.
    package typealias Split =
        @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ limits: FrameLimits, _ cuts: inout FrameCuts) ->
        Void

    // Two, so that an observer without access to secrets does not receive them because another one has it.
    private let masked = Broadcaster<Record>(capacity: 1024)
    private let complete = Broadcaster<Record>(capacity: 1024)
    private let messages = Broadcaster<MessageEvent>(capacity: 1024)
    private let logs = Lock(Logs())
    // Used again and again; sending and receiving may happen at the same time.
    private let sentCuts = Lock(FrameCuts())
    private let receivedCuts = Lock(FrameCuts())
    private let decoding: Decoding

    private struct Logs: Sendable {
        var sources: [FrameLogSource] = [] {
            didSet {
                let sizes = sources.map(\.log.largestFrame)
                limits = FrameLimits(whole: sizes.min() ?? 0, kept: sizes.max() ?? 0)
            }
        }
        private(set) var limits = FrameLimits(whole: 0, kept: 0)
    }

    private struct Decoding: Sendable {
        let read: Read
        let split: Split
        let messageEvent: @Sendable (Record) -> MessageEvent?
    }

    /// - Parameter messageEvent: what a masked record means for a message.
    package init(
        messageEvent: @escaping @Sendable (Record) -> MessageEvent? = { _ in nil }, _ read: @escaping Read,
        split: @escaping Split
    ) {
        decoding = Decoding(read: read, split: split, messageEvent: messageEvent)
    }

    /// The steps of messages from now on.
    package var messageEvents: Updates<MessageEvent> { messages.updates }

    package func frames(showingSecrets: Bool) -> Updates<Record> {
        showingSecrets ? complete.updates : masked.updates
    }

    /// Feeds `log` from now on; once is enough.
    package func feed(_ log: FrameLog, as name: String) {
        logs.withLock { logs in
            guard !logs.sources.contains(where: { $0.log === log }) else { return }
            logs.sources.append(log.source(name))
        }
    }

    package func stopFeeding(_ log: FrameLog) {
        let source = logs.withLock { logs in
            logs.sources.firstIndex { $0.log === log }.map { logs.sources.remove(at: $0) }
        }
        if let source { log.ended(source) }
    }

    package func sent(_ bytes: RawSpan) {
        record(bytes, .sent, sentCuts)
    }

    package func received(_ bytes: RawSpan) {
        record(bytes, .received, receivedCuts)
    }

    private func record(_ bytes: RawSpan, _ direction: FrameDirection, _ reused: borrowing Lock<FrameCuts>) {
        let (sources, limits) = logs.withLock { ($0.sources, $0.limits) }
        let wishes = FrameWishes(
            masked: masked.hasListeners || messages.hasListeners, complete: complete.hasListeners,
            logLimit: sources.isEmpty ? nil : limits.kept)
        guard !wishes.isEmpty else { return }
        guard wishes.masked || wishes.complete else {
            return reused.withLock { cuts in
                cuts.removeAll()
                decoding.split(bytes, direction, limits, &cuts)
                append(cuts, of: bytes, direction, to: sources)
            }
        }
        var cuts = FrameCuts()
        for frame in decoding.read(bytes, direction, wishes) {
            if let record = frame.masked {
                masked.send(record)
                if let event = decoding.messageEvent(record) { messages.send(event) }
            }
            if let record = frame.complete { complete.send(record) }
            if let logged = frame.logged { cuts.add(logged) }
        }
        append(cuts, of: bytes, direction, to: sources)
    }

    private func append(
        _ cuts: borrowing FrameCuts, of bytes: RawSpan, _ direction: FrameDirection, to sources: [FrameLogSource]
    ) {
        let moment = FrameMoment(direction)
        for source in sources { source.log.append(cuts, of: bytes, at: moment, from: source) }
    }

    package func finish() {
        masked.finish()
        complete.finish()
        messages.finish()
        let sources = logs.withLock { logs in
            defer { logs.sources = [] }
            return logs.sources
        }
        for source in sources { source.log.ended(source) }
    }
}

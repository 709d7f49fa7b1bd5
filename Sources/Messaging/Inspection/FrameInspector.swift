import Synchronization
import Transport

/// Turns what a link exchanges into records of frames, for whoever looks on; costs nothing but a look while nobody does.
///
/// Each onlooker has a bounded buffer and misses the oldest records when it is slow, and so has each log: a connection
/// never waits for them.
package final class FrameInspector<Record: Sendable>: LinkTap {
    /// Reads whole frames.
    package typealias Decode =
        @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ showsSecrets: Bool) -> [Record]
    /// Reads whole frames for logs, with the octets of those that are not larger than `limit`.
    package typealias Log =
        @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ limit: Int) -> [LoggedFrame]

    // Two, so that who may not see secrets does not get them because somebody else may.
    private let masked = Broadcaster<Record>(capacity: 1024)
    private let complete = Broadcaster<Record>(capacity: 1024)
    private let logs = Lock<[FrameLogSource]>([])
    private let decode: Wrapped

    private struct Wrapped: Sendable {
        let call: Decode
        let log: Log
    }

    package init(_ decode: @escaping Decode, log: @escaping Log) {
        self.decode = Wrapped(call: decode, log: log)
    }

    package func frames(showingSecrets: Bool) -> Updates<Record> {
        showingSecrets ? complete.updates : masked.updates
    }

    /// Feeds `log` from now on; once is enough.
    package func feed(_ log: FrameLog, as name: String) {
        logs.withLock { logs in
            guard !logs.contains(where: { $0.log === log }) else { return }
            logs.append(log.source(name))
        }
    }

    package func stopFeeding(_ log: FrameLog) {
        let source = logs.withLock { logs in
            logs.firstIndex { $0.log === log }.map { logs.remove(at: $0) }
        }
        if let source { log.ended(source) }
    }

    package func sent(_ bytes: RawSpan) {
        record(bytes, .sent)
    }

    package func received(_ bytes: RawSpan) {
        record(bytes, .received)
    }

    private func record(_ bytes: RawSpan, _ direction: FrameDirection) {
        show(bytes, direction, to: masked, showsSecrets: false)
        show(bytes, direction, to: complete, showsSecrets: true)
        for source in logs.withLock({ $0 }) {
            source.log.append(decode.log(bytes, direction, source.log.largestFrame), from: source)
        }
    }

    private func show(
        _ bytes: RawSpan, _ direction: FrameDirection, to audience: Broadcaster<Record>, showsSecrets: Bool
    ) {
        guard audience.hasListeners else { return }
        for record in decode.call(bytes, direction, showsSecrets) { audience.send(record) }
    }

    package func finish() {
        masked.finish()
        complete.finish()
        let sources = logs.withLock { logs in
            defer { logs = [] }
            return logs
        }
        for source in sources { source.log.ended(source) }
    }
}

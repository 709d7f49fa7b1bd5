import Synchronization
import Transport

/// Turns the bytes that a link exchanges into records of frames. Without an observer it costs one comparison.
///
/// Each onlooker has a bounded buffer and misses the oldest records when it is slow, and so has each log: a connection
/// never waits for them.
package final class FrameInspector<Record: Sendable>: LinkTap {
    /// Decodes whole frames, each once, into what is wished of them.
    package typealias Read =
        @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ wishes: FrameWishes) -> [InspectedFrame<Record>]

    /// Cuts bytes into whole frames for logs, without decoding more of them than that needs.
    ///
    /// Frames of more than `limit` bytes, of which only the beginning is kept, are decoded at once.
    package typealias Split = @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ limit: Int) -> [KeptFrame]

    // Two, so that an observer without access to secrets does not receive them because another one has it.
    private let masked = Broadcaster<Record>(capacity: 1024)
    private let complete = Broadcaster<Record>(capacity: 1024)
    private let logs = Lock<[FrameLogSource]>([])
    private let decoding: Decoding

    private struct Decoding: Sendable {
        let read: Read
        let split: Split
    }

    package init(_ read: @escaping Read, split: @escaping Split) {
        decoding = Decoding(read: read, split: split)
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
        let sources = logs.withLock { $0 }
        let wishes = FrameWishes(
            masked: masked.hasListeners, complete: complete.hasListeners,
            logLimit: sources.map(\.log.largestFrame).max())
        guard !wishes.isEmpty else { return }
        if let limit = wishes.logLimit, !wishes.masked, !wishes.complete {
            return append(decoding.split(bytes, direction, limit), to: sources)
        }
        let frames = decoding.read(bytes, direction, wishes)
        for frame in frames {
            if let record = frame.masked { masked.send(record) }
            if let record = frame.complete { complete.send(record) }
        }
        append(frames.compactMap { $0.logged.map(KeptFrame.init) }, to: sources)
    }

    private func append(_ frames: [KeptFrame], to sources: [FrameLogSource]) {
        for source in sources {
            let limit = source.log.largestFrame
            source.log.append(frames.map { $0.limited(to: limit) }, from: source)
        }
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

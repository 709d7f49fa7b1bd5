import Synchronization
import Testing

@testable import Messaging

struct FrameInspectorTests {
    private struct Content: FrameContent {
        var fields: [LoggedFrame.Field] { [] }
        var note: String { "" }
        var payloadPreview: String? { nil }
    }

    /// Counts the frames that it decodes.
    private final class Decoder: FrameDecoder {
        let count = Atomic(0)

        func decode(_ frame: KeptFrame.Undecoded) -> LoggedFrame {
            count.add(1, ordering: .relaxed)
            return LoggedFrame(
                frame.direction, time: frame.time, protocolName: "", type: "SEND", size: frame.bytes.count,
                destination: nil, qos: nil, payloadCount: 0, bytes: frame.bytes, opensConnection: false,
                endsConnection: false, instant: frame.instant, content: Content())
        }
    }

    /// Counts how often bytes are decoded, and with what wishes.
    private final class Reader: Sendable {
        let wishes = Mutex<[FrameWishes]>([])
        let decoder = Decoder()

        func inspector() -> FrameInspector<String> {
            FrameInspector { bytes, direction, wishes in
                self.wishes.withLock { $0.append(wishes) }
                let size = bytes.byteCount
                let kept = wishes.logLimit.map { FrameBytes.keptCount(of: size, limit: $0) } ?? 0
                return [
                    InspectedFrame(
                        masked: wishes.masked ? "***" : nil, complete: wishes.complete ? "secret" : nil,
                        logged: wishes.logLimit.map { _ in
                            LoggedFrame(
                                direction, time: 0, protocolName: "", type: "SEND", size: size, destination: nil,
                                qos: nil, payloadCount: 0, bytes: FrameBytes.copy(bytes, 0..<kept),
                                opensConnection: false, endsConnection: false, content: Content())
                        })
                ]
            } split: { bytes, direction, limit in
                let frame = KeptFrame.Undecoded(
                    FrameBytes.copy(bytes, 0..<bytes.byteCount), direction, time: 1, instant: 2, decoder: self.decoder)
                return [KeptFrame(frame)]
            }
        }
    }

    @Test func `decodes nothing while nobody looks`() {
        let reader = Reader()
        let inspector = reader.inspector()
        inspector.sent([UInt8](repeating: 1, count: 10).span.bytes)
        #expect(reader.wishes.withLock { $0.count } == 0)
    }

    @Test func `a log decodes a frame when it is read, and once, however many logs keep it`() {
        let reader = Reader()
        let inspector = reader.inspector()
        let (log, other) = (FrameLog(limit: 10), FrameLog(limit: 1_000))
        inspector.feed(log, as: "a")
        inspector.feed(other, as: "b")
        for size in 1...100 { inspector.sent([UInt8](repeating: 1, count: size).span.bytes) }
        func decoded() -> Int { reader.decoder.count.load(ordering: .relaxed) }
        // Frames that had to make room are never decoded.
        #expect(decoded() == 0)
        #expect(log.undecodedCount == 10 && other.undecodedCount == 100)
        #expect(log.frame(100)?.size == 100)
        #expect(decoded() == 1)
        #expect(log.snapshot().frames.map(\.size) == Array(91...100))
        #expect(decoded() == 10)
        #expect(other.snapshot(since: 90).frames.map(\.size) == Array(91...100))
        #expect(decoded() == 10)
        #expect(other.snapshot().frames.count == 100)
        #expect(decoded() == 100)
        #expect(other.pcapng().count > 0 && decoded() == 100)
        #expect(reader.wishes.withLock { $0.isEmpty })
    }

    @Test func `decodes each frame once, however many logs and readers there are`() async {
        let reader = Reader()
        let inspector = reader.inspector()
        let (small, large) = (FrameLog(bytes: 1 << 13), FrameLog(bytes: 1 << 20))
        inspector.feed(small, as: "a")
        inspector.feed(large, as: "b")
        inspector.feed(large, as: "again")
        var masked = inspector.frames(showingSecrets: false).makeAsyncIterator()
        var other = inspector.frames(showingSecrets: false).makeAsyncIterator()
        var complete = inspector.frames(showingSecrets: true).makeAsyncIterator()
        inspector.received([UInt8](repeating: 1, count: 20_000).span.bytes)
        #expect(reader.wishes.withLock { $0.count } == 1)
        #expect(reader.wishes.withLock { $0.first?.logLimit } == 1 << 17)
        #expect(await masked.next() == "***")
        #expect(await other.next() == "***")
        #expect(await complete.next() == "secret")
        // Each log keeps what its own bound allows.
        #expect(large.snapshot().frames.map(\.bytes.count) == [20_000])
        #expect(small.snapshot().frames.map(\.bytes.count) == [1_024])
        #expect(small.snapshot().frames.map(\.client) == ["a"])
        inspector.stopFeeding(small)
        inspector.stopFeeding(large)
        inspector.received([UInt8](repeating: 1, count: 5).span.bytes)
        #expect(reader.wishes.withLock { $0.map(\.logLimit) } == [1 << 17, nil])
        #expect(large.snapshot().frames.count == 1)
    }
}

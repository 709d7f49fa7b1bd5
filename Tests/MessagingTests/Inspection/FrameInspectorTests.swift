import Synchronization
import Testing
import Wire

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

        func decode(_ frame: RawFrame) -> LoggedFrame {
            count.add(1, ordering: .relaxed)
            return LoggedFrame(
                frame.moment.direction, time: frame.moment.time, protocolName: "", type: "SEND",
                size: frame.bytes.count, destination: nil, qos: nil, payloadCount: 0, bytes: frame.bytes,
                opensConnection: false, endsConnection: false, instant: frame.moment.instant, content: Content())
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
            } split: { bytes, direction, limits, cuts in
                // Each byte of 0 ends a frame.
                cuts.begin(at: 0, decoder: self.decoder)
                for (offset, byte) in FrameBytes.copy(bytes, 0..<bytes.byteCount).enumerated() where byte == 0 {
                    cuts.add(endingAt: offset + 1)
                }
            }
        }
    }

    @Test func `decodes nothing while nobody looks`() {
        let reader = Reader()
        let inspector = reader.inspector()
        inspector.sent([UInt8](repeating: 0, count: 10).span.bytes)
        #expect(reader.wishes.withLock { $0.count } == 0)
    }

    /// A frame of that many bytes.
    private func frame(_ size: Int) -> [UInt8] { [UInt8](repeating: 1, count: size - 1) + [0] }

    @Test func `a log decodes the frames that are read, and no others`() {
        let reader = Reader()
        let inspector = reader.inspector()
        let (log, other) = (FrameLog(limit: 10), FrameLog(limit: 1_000))
        inspector.feed(log, as: "a")
        inspector.feed(other, as: "b")
        for size in 1...50 {
            let bytes = frame(size)
            inspector.sent(bytes.span.bytes)
        }
        let read = (51...100).flatMap { frame($0) }
        inspector.received(read.span.bytes)
        func decoded() -> Int { reader.decoder.count.exchange(0, ordering: .relaxed) }
        #expect(log.undecodedCount == 10 && other.undecodedCount == 100)
        #expect(decoded() == 0)
        #expect(log.frame(100)?.size == 100)
        #expect(decoded() == 1)
        #expect(log.snapshot().frames.map(\.size) == Array(91...100))
        #expect(decoded() == 10)
        let newest = other.snapshot(since: 90).frames
        #expect(newest.map(\.size) == Array(91...100) && newest.map(\.bytes) == (91...100).map { frame($0) })
        #expect(newest.allSatisfy { $0.direction == .received && $0.client == "b" && $0.connection == 1 })
        #expect(decoded() == 10)
        #expect(other.snapshot().frames.map(\.number) == Array(1...100))
        #expect(decoded() == 100)
        #expect(reader.wishes.withLock { $0.isEmpty })
    }

    @Test func `keeps of a read what its bounds allow, and counts the rest`() {
        let reader = Reader()
        let inspector = reader.inspector()
        let (few, small) = (FrameLog(limit: 3), FrameLog(limit: 1_000, bytes: 4_096))
        inspector.feed(few, as: "a")
        inspector.feed(small, as: "b")
        let read = (1...200).flatMap { frame($0) }
        inspector.received(read.span.bytes)
        #expect(few.snapshot().frames.map(\.size) == [198, 199, 200])
        #expect(few.snapshot().droppedCount == 197)
        // 200 + 199 + … + 180 bytes.
        #expect(small.snapshot().frames.map(\.size) == Array(180...200))
        #expect(small.snapshot().droppedCount == 179 && small.snapshot().cursor == 200)
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
        inspector.received([UInt8](repeating: 0, count: 5).span.bytes)
        #expect(reader.wishes.withLock { $0.map(\.logLimit) } == [1 << 17, nil])
        #expect(large.snapshot().frames.count == 1)
    }
}

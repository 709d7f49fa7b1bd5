import MessagingWire
import Synchronization
import TestSupport
import Testing

@testable import MessagingFrames
@testable import MessagingShell

@Suite(.turns)
struct FrameInspectorTests {
    /// A record of a frame that ends with a byte of 0.
    private struct Record: FrameContent, Equatable {
        let size: Int
        let text: String
        let showsSecrets: Bool
        var protocolName: String { "" }
        var typeName: String { "SEND" }
        var fields: [LoggedFrame.Field] { [] }
        var note: String { "" }
        var payloadPreview: String? { nil }
        var messageEvent: MessageEvent? {
            size.isMultiple(of: 2) ? MessageEvent(.sent, time: 0, identifier: nil, payloadCount: size) : nil
        }
    }

    /// Counts how often bytes are cut, and how many frames are decoded.
    private final class Reader: FrameDecoder {
        let cuts = Atomic(0)
        let frames = Atomic(0)

        func inspector() -> FrameInspector<Record> {
            FrameInspector { bytes, _, cuts in
                self.cuts.add(1, ordering: .relaxed)
                cuts.begin(at: 0, decoder: self)
                for offset in 0..<bytes.byteCount where bytes.byte(at: offset) == 0 {
                    cuts.add(endingAt: offset + 1)
                }
            }
        }

        func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent {
            frames.add(1, ordering: .relaxed)
            return Record(
                size: frame.size, text: String(decoding: frame.bytes.dropLast(), as: UTF8.self),
                showsSecrets: showsSecrets)
        }

        /// Frames that were decoded since the last call.
        func decoded() -> Int { frames.exchange(0, ordering: .relaxed) }
    }

    /// A frame of that many bytes.
    private func frame(_ size: Int) -> [UInt8] { [UInt8](repeating: 65, count: size - 1) + [0] }

    private func sent(_ bytes: [UInt8], _ inspector: FrameInspector<Record>) {
        inspector.sent(bytes.span.bytes)
    }

    private func received(_ bytes: [UInt8], _ inspector: FrameInspector<Record>) {
        inspector.received(bytes.span.bytes)
    }

    @Test func `cuts nothing while nobody looks`() {
        let reader = Reader()
        let inspector = reader.inspector()
        sent(frame(10), inspector)
        do {
            let (log, records) = (FrameLog(), inspector.records(showingSecrets: false))
            inspector.feed(log, as: "a")
            sent(frame(10), inspector)
            withExtendedLifetime((log, records)) { #expect(reader.cuts.load(ordering: .relaxed) == 1) }
        }
        // Nobody can read these any more.
        sent(frame(10), inspector)
        #expect(reader.cuts.load(ordering: .relaxed) == 1 && reader.decoded() == 0)
    }

    @Test func `a log decodes the frames that are read, and no others`() {
        let reader = Reader()
        let inspector = reader.inspector()
        let (log, other) = (FrameLog(limit: 10), FrameLog(limit: 1_000))
        inspector.feed(log, as: "a")
        inspector.feed(other, as: "b")
        inspector.feed(other, as: "again")
        for size in 1...50 {
            sent(frame(size), inspector)
        }
        let read = (51...100).flatMap { frame($0) }
        received(read, inspector)
        #expect(reader.cuts.load(ordering: .relaxed) == 51)
        #expect(reader.decoded() == 0)
        #expect(log.frame(100)?.size == 100)
        #expect(reader.decoded() == 1)
        #expect(log.snapshot().frames.map(\.size) == Array(91...100))
        #expect(reader.decoded() == 10)
        let newest = other.snapshot(since: 90).frames
        #expect(newest.map(\.size) == Array(91...100) && newest.map(\.bytes) == (91...100).map { frame($0) })
        #expect(newest.allSatisfy { $0.direction == .received && $0.client == "b" && $0.connection == 1 })
        #expect(reader.decoded() == 10)
        #expect(other.snapshot().frames.map(\.number) == Array(1...100))
        #expect(reader.decoded() == 100)
        inspector.stopFeeding(log)
        sent(frame(7), inspector)
        #expect(log.snapshot().cursor == 100 && other.snapshot().cursor == 101)
    }

    @Test func `keeps of a read what its bounds allow, and counts the rest`() {
        let inspector = Reader().inspector()
        let (few, small) = (FrameLog(limit: 3), FrameLog(limit: 1_000, bytes: 4_096))
        inspector.feed(few, as: "a")
        inspector.feed(small, as: "b")
        let read = (1...200).flatMap { frame($0) }
        received(read, inspector)
        #expect(few.snapshot().frames.map(\.size) == [198, 199, 200])
        #expect(few.snapshot().droppedCount == 197)
        // 200 + 199 + … + 180 bytes.
        #expect(small.snapshot().frames.map(\.size) == Array(180...200))
        #expect(small.snapshot().droppedCount == 179 && small.snapshot().cursor == 200)
    }

    @Test func `each log keeps of a large frame what its own bound allows`() {
        let inspector = Reader().inspector()
        let (small, large) = (FrameLog(bytes: 1 << 13), FrameLog(bytes: 1 << 20))
        inspector.feed(small, as: "a")
        inspector.feed(large, as: "b")
        received(frame(5) + frame(20_000) + frame(6), inspector)
        #expect(large.snapshot().frames.map(\.bytes.count) == [5, 20_000, 6])
        #expect(small.snapshot().frames.map(\.bytes.count) == [5, 1_024, 6])
        #expect(small.snapshot().frames.map(\.size) == [5, 20_000, 6])
        #expect(small.snapshot().frames.map(\.isWhole) == [true, false, true])
    }

    @Test func `sequences bring every record in the order of both directions, decoded when they are read`() async {
        let reader = Reader()
        let inspector = reader.inspector()
        var masked = inspector.records(showingSecrets: false).makeAsyncIterator()
        var complete = inspector.records(showingSecrets: true).makeAsyncIterator()
        var events = inspector.messageEvents.makeAsyncIterator()
        for round in 0..<100 {
            sent(frame(round * 4 + 1) + frame(round * 4 + 2), inspector)
            received(frame(round * 4 + 3) + frame(round * 4 + 4), inspector)
        }
        #expect(reader.decoded() == 0)
        for size in 1...400 { #expect(await masked.next()?.size == size) }
        #expect(reader.decoded() == 400)
        let first = await complete.next()
        #expect(first == Record(size: 1, text: "", showsSecrets: true))
        for size in 1...200 { #expect(await events.next()?.payloadCount == 2 * size) }
        #expect(masked.missedCount == 0 && complete.missedCount == 0 && events.missedCount == 0)
    }

    @Test func `a slow reader of a sequence misses the oldest records, and counts them`() async {
        let inspector = Reader().inspector()
        var records = inspector.records(showingSecrets: false).makeAsyncIterator()
        for _ in 0..<30 { sent((1...100).flatMap { frame($0) }, inspector) }
        inspector.finish()
        var sizes: [Int] = []
        while let record = await records.next() { sizes.append(record.size) }
        #expect(sizes == Array((0..<30).flatMap { _ in 1...100 }.suffix(1_024)))
        #expect(records.missedCount == 3_000 - 1_024)
    }

    @Test func `a waiting reader gets what comes, and ends with the client`() async {
        let inspector = Reader().inspector()
        let (records, late) = (inspector.records(showingSecrets: false), inspector.messageEvents)
        let reading = Task {
            var sizes: [Int] = []
            for await record in records { sizes.append(record.size) }
            return sizes
        }
        for size in 1...500 {
            received(frame(size), inspector)
            await Task.yield()
        }
        inspector.finish()
        #expect(await reading.value == Array(1...500))
        #expect(await late.reduce(0) { sum, _ in sum + 1 } == 250)
        #expect(await inspector.records(showingSecrets: false).first { _ in true } == nil)
    }
}

import MessagingWire
import Synchronization
import TestSupport
import Testing

@testable import MessagingFrames
@testable import MessagingShell

struct FrameLogTests {
    /// A frame of text, which is its payload.
    private struct Frame: FrameDecoder, FrameContent {
        let bytes: [UInt8]
        let direction: FrameDirection
        let opensConnection: Bool
        let endsConnection: Bool
        var secrets: [Range<Int>] = []
        var text = ""

        func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent {
            var content = self
            content.text = String(decoding: frame.bytes, as: UTF8.self)
            return content
        }

        var protocolName: String { "STOMP 1.2" }
        var typeName: String { opensConnection ? "CONNECT" : "SEND" }
        var destination: String? { "/topic/\(text.prefix(8))" }
        var payloadCount: Int { bytes.count }
        var fields: [LoggedFrame.Field] { [.init("Text", text)] }
        var note: String { "" }
        var payloadPreview: String? { text }
    }

    private func frame(
        _ text: String, _ direction: FrameDirection = .sent, opens: Bool = false, ends: Bool = false
    ) -> Frame {
        Frame(bytes: Array(text.utf8), direction: direction, opensConnection: opens, endsConnection: ends)
    }

    private func append(_ frames: [Frame], to log: FrameLog, from source: FrameLogSource) {
        for frame in frames {
            var cuts = FrameCuts()
            cuts.add(
                0..<frame.bytes.count, decoder: frame, opensConnection: frame.opensConnection, hiding: frame.secrets)
            log.append(
                cuts, of: frame.bytes.span.bytes, at: FrameMoment(frame.direction, time: 1_700_000_000_123),
                from: source)
        }
    }

    private func texts(_ snapshot: FrameLog.Snapshot) -> [String] { snapshot.frames.compactMap(\.payload) }

    @Test func `keeps the newest, and counts what had to go`() {
        let log = FrameLog(limit: 3)
        let source = FrameLogSource("a")
        for text in ["1", "2", "3", "4", "5"] { append([frame(text)], to: log, from: source) }
        let snapshot = log.snapshot()
        #expect(texts(snapshot) == ["3", "4", "5"])
        #expect(snapshot.frames.map(\.number) == [3, 4, 5])
        #expect(snapshot.droppedCount == 2)
        #expect(log.frame(2) == nil)
        #expect(log.frame(3)?.payload == "3")
        #expect(log.frame(6) == nil)
    }

    @Test func `the largest number of frames is no bound`() {
        let log = FrameLog(limit: .max, bytes: 4096)
        let source = FrameLogSource("a")
        append([frame("1")], to: log, from: source)
        // One read, of which the log has no room for all.
        let large = frame(String(repeating: "x", count: 500))
        var (cuts, bytes) = (FrameCuts(), [UInt8]())
        cuts.begin(at: 0, decoder: large)
        for _ in 0..<20 {
            bytes += large.bytes
            cuts.add(endingAt: bytes.count)
        }
        log.append(cuts, of: bytes.span.bytes, at: FrameMoment(.sent, time: 0), from: source)
        #expect(log.snapshot().frames.count == 8)
    }

    @Test func `keeps no more bytes than it may`() {
        let log = FrameLog(limit: 1000, bytes: 4096)
        let source = FrameLogSource("a")
        for index in 0..<200 {
            append([frame(String(repeating: "x", count: 100 + index))], to: log, from: source)
            #expect(log.snapshot().frames.reduce(0) { $0 + $1.bytes.count } <= 4096)
        }
        let snapshot = log.snapshot()
        #expect(snapshot.frames.last?.size == 299)
        #expect(snapshot.frames.count == 14)
        #expect(snapshot.droppedCount == 186)
    }

    @Test func `holds exactly the last frames within both bounds, whatever their sizes and however they come`() {
        var random = SeededGenerator(seed: Campaign.seed)
        let log = FrameLog(limit: 40, bytes: 5_000)
        let source = FrameLogSource("a")
        var all: [[UInt8]] = []
        var firstKept = 0
        for round in 0..<400 {
            var cuts = FrameCuts()
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                if Int.random(in: 0..<4, using: &random) == 0 {
                    // Larger ones than the log keeps whole.
                    let text = String(repeating: "d", count: Int.random(in: 1...900, using: &random))
                    let (alone, start) = (frame(text), bytes.count)
                    bytes += alone.bytes
                    cuts.add(start..<bytes.count, decoder: alone, hiding: [])
                    all.append(Array(alone.bytes.prefix(625)))
                } else {
                    cuts.begin(at: bytes.count, decoder: frame(""))
                    // Now and then more than fit together.
                    let (most, size) = round % 20 == 0 ? (60, 600) : (5, 300)
                    for _ in 0..<Int.random(in: 0...most, using: &random) {
                        let count = Int.random(in: 1...size, using: &random)
                        let frame = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                        bytes += frame
                        all.append(frame)
                        cuts.add(endingAt: bytes.count)
                    }
                }
            }
            log.append(cuts, of: bytes.span.bytes, at: FrameMoment(.sent), from: source)
            firstKept = max(firstKept, all.count - 40)
            while all[firstKept...].reduce(0, { $0 + $1.count }) > 5_000 { firstKept += 1 }
            let snapshot = log.snapshot()
            // As single values, because lists of bytes would not explain a failure.
            let isRight = snapshot.frames.map(\.bytes) == Array(all[firstKept...])
            #expect(isRight, "round \(round)")
            #expect(snapshot.frames.first.map { Int($0.number) } ?? firstKept + 1 == firstKept + 1)
            #expect(snapshot.droppedCount == firstKept && Int(snapshot.cursor) == all.count)
            let since = UInt64.random(in: 0...snapshot.cursor, using: &random)
            let isRightSince =
                log.snapshot(since: since).frames.map(\.bytes) == Array(all[max(firstKept, Int(since))...])
            #expect(isRightSince, "round \(round), since \(since)")
            let isRightAlone = log.frame(snapshot.cursor)?.bytes == all.last
            #expect(isRightAlone, "round \(round)")
        }
        log.clear()
        #expect(log.snapshot().frames.isEmpty)
    }

    @Test func `tells each frame once to who asks with the last cursor, and what was missed`() {
        let log = FrameLog(limit: 3)
        let source = FrameLogSource("a")
        append([frame("1"), frame("2")], to: log, from: source)
        let first = log.snapshot()
        #expect(first.cursor == 2)
        #expect(texts(log.snapshot(since: first.cursor)) == [])
        append([frame("3")], to: log, from: source)
        let second = log.snapshot(since: first.cursor)
        #expect(texts(second) == ["3"])
        #expect(second.missedCount == 0)
        append((4...8).map { frame("\($0)") }, to: log, from: source)
        let third = log.snapshot(since: second.cursor)
        #expect(texts(third) == ["6", "7", "8"])
        #expect(third.missedCount == 2)
        #expect(texts(log.snapshot(since: .max)) == [])
    }

    @Test func `lets frames pass while it is paused, and forgets them when it is cleared`() {
        let log = FrameLog()
        let source = FrameLogSource("a")
        append([frame("1")], to: log, from: source)
        log.pause()
        append([frame("2")], to: log, from: source)
        #expect(log.isPaused)
        #expect(texts(log.snapshot()) == ["1"])
        #expect(log.snapshot().skippedCount == 1)
        log.resume()
        append([frame("3")], to: log, from: source)
        #expect(texts(log.snapshot()) == ["1", "3"])
        log.clear()
        let empty = log.snapshot()
        #expect(texts(empty) == [])
        #expect(empty.cursor == 2)
        #expect(empty.clearCount == 1)
        append([frame("4")], to: log, from: source)
        #expect(log.snapshot(since: empty.cursor).frames.map(\.number) == [3])
    }

    @Test func `writes stars over secrets before it keeps them`() {
        let log = FrameLog(limit: 3, bytes: 4_096)
        let source = FrameLogSource("a")
        var (opening, large) = (frame("hush!", opens: true), frame(String(repeating: "hush", count: 500)))
        (opening.secrets, large.secrets) = ([0..<4], [0..<4, 4..<2_000])
        append([opening], to: log, from: source)
        #expect(texts(log.snapshot()) == ["****!"])
        append([large, frame("2"), frame("3")], to: log, from: source)
        #expect(texts(log.snapshot()) == [String(repeating: "*", count: 512), "2", "3"])
        #expect(log.capture().openings[1]?.payload == "****!")
        // Over the end of the ring, too.
        for index in 0..<2_000 {
            var secret = frame("\(index) hush")
            secret.secrets = [secret.bytes.count - 4..<secret.bytes.count]
            append([secret], to: log, from: source)
            #expect(log.snapshot().frames.last?.payload == "\(index) ****")
        }
    }

    @Test func `finds a text in what is shown, whatever its case`() {
        let log = FrameLog()
        append([frame("Kitchen"), frame("cellar")], to: log, from: FrameLogSource("Phone"))
        #expect(log.frames(containing: "KITCH").map(\.payload) == ["Kitchen"])
        #expect(log.frames(containing: "text: cell").count == 1)
        #expect(log.frames(containing: "phone").count == 2)
        #expect(log.frames(containing: "attic").isEmpty)
    }

    @Test func `counts connections over all of its clients`() {
        let log = FrameLog()
        let (a, b) = (FrameLogSource("a"), FrameLogSource("b"))
        append([frame("1", opens: true)], to: log, from: a)
        append([frame("2", opens: true)], to: log, from: b)
        append([frame("3"), frame("4", opens: true)], to: log, from: a)
        #expect(log.snapshot().frames.map(\.connection) == [1, 2, 1, 3])
        #expect(log.snapshot().frames.map(\.client) == ["a", "b", "a", "a"])
    }

    @Test func `holds the first frame of a connection as long as it is of use`() {
        let log = FrameLog(limit: 2)
        let source = FrameLogSource("a")
        append([frame("1", opens: true)] + (2...9).map { frame("\($0)") }, to: log, from: source)
        #expect(log.capture().openings[1]?.payload == "1")
        log.clear()
        #expect(log.capture().openings[1]?.payload == "1")
        append([frame("10", opens: true), frame("11")], to: log, from: source)
        #expect(log.capture().openings[1] == nil)
        append([frame("12"), frame("13")], to: log, from: source)
        #expect(log.capture().openings[2]?.payload == "10")
        log.ended(source)
        #expect(log.capture().openings.count == 1)
        log.clear()
        #expect(log.capture().openings.isEmpty)
    }

    @Test(.requires(program: "tshark", "capinfos"))
    func `a capture of a torn log still has whole TCP connections`() async throws {
        let log = FrameLog(limit: 6)
        let (a, b) = (FrameLogSource("a"), FrameLogSource("b"))
        let long = String(repeating: "0123456789", count: 700)
        append([frame("CONNECT a", opens: true)] + (1...9).map { frame("\($0)") }, to: log, from: a)
        append([frame("CONNECT b", opens: true)], to: log, from: b)
        append(
            [
                frame(long), frame("cut " + String(repeating: "c", count: 1 << 20), .received),
                frame("after", .received),
            ], to: log, from: a)
        append([frame("bye", ends: true)], to: log, from: b)
        let capture = try Capture(log.pcapng())
        #expect(try await capture.problems() == [])
        #expect(try await capture.information().contains("File encapsulation:  Raw IP"))
        let comments = try await capture.packets("frame.comment", fields: ["tcp.stream", "frame.comment", "tcp.len"])
        #expect(
            comments == [
                [
                    "0",
                    "CONNECT /topic/CONNECT  (a); what came between it and the next was dropped from the log", "9",
                ],
                ["0", "SEND /topic/9 (a)", "1"], ["1", "CONNECT /topic/CONNECT  (b)", "9"],
                ["0", "SEND /topic/01234567 (a)", "1460"],
                ["0", "SEND /topic/cut cccc (a); left out, as only 4096 of its 1048580 bytes were kept", "0"],
                ["0", "SEND /topic/after (a)", "5"], ["1", "SEND /topic/bye (b)", "3"],
            ])
        let lengths = try await capture.packets("tcp.len > 100", fields: ["tcp.len"]).compactMap { Int($0[0]) }
        #expect(lengths == [1460, 1460, 1460, 1460, 1160])
        let ends = try await capture.packets("tcp.flags.fin == 1", fields: ["tcp.stream"])
        #expect(ends == [["1"], ["1"]])
    }
}

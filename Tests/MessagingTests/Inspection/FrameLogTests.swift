import Synchronization
import TestSupport
import Testing
import Wire

@testable import Messaging

struct FrameLogTests {
    private struct Content: FrameContent {
        let text: String
        var fields: [LoggedFrame.Field] { [.init("Text", text)] }
        var note: String { "" }
        var payloadPreview: String? { text }
    }

    private func frame(
        _ text: String, _ direction: FrameDirection = .sent, size: Int? = nil, opens: Bool = false, ends: Bool = false
    ) -> LoggedFrame {
        let bytes = Array(text.utf8)
        return LoggedFrame(
            direction, time: 1_700_000_000_123, protocolName: "STOMP 1.2", type: opens ? "CONNECT" : "SEND",
            size: size ?? bytes.count, destination: "/topic/\(text.prefix(8))", qos: nil, payloadCount: bytes.count,
            bytes: bytes, opensConnection: opens, endsConnection: ends, content: Content(text: text))
    }

    private func texts(_ snapshot: FrameLog.Snapshot) -> [String] { snapshot.frames.compactMap(\.payload) }

    @Test func `keeps the newest, and counts what had to go`() {
        let log = FrameLog(limit: 3)
        let source = log.source("a")
        for text in ["1", "2", "3", "4", "5"] { log.append([frame(text)], from: source) }
        let snapshot = log.snapshot()
        #expect(texts(snapshot) == ["3", "4", "5"])
        #expect(snapshot.frames.map(\.number) == [3, 4, 5])
        #expect(snapshot.droppedCount == 2)
        #expect(log.frame(2) == nil)
        #expect(log.frame(3)?.payload == "3")
        #expect(log.frame(6) == nil)
    }

    @Test func `keeps no more bytes than it may`() {
        let log = FrameLog(limit: 1000, bytes: 4096)
        let source = log.source("a")
        for index in 0..<200 {
            log.append([frame(String(repeating: "x", count: 100 + index))], from: source)
            #expect(log.snapshot().frames.reduce(0) { $0 + $1.bytes.count } <= 4096)
        }
        let snapshot = log.snapshot()
        #expect(snapshot.frames.last?.size == 299)
        #expect(snapshot.frames.count == 14)
        #expect(snapshot.droppedCount == 186)
    }

    private struct Decoder: FrameDecoder {
        func decode(_ frame: RawFrame) -> LoggedFrame {
            LoggedFrame(
                frame.moment.direction, time: 0, protocolName: "", type: "SEND", size: frame.bytes.count,
                destination: nil, qos: nil, payloadCount: 0, bytes: frame.bytes, opensConnection: false,
                endsConnection: false, content: Content(text: ""))
        }
    }

    @Test func `holds exactly the last frames within both bounds, whatever their sizes and however they come`() {
        var random = SeededGenerator(seed: Campaign.seed)
        let log = FrameLog(limit: 40, bytes: 5_000)
        let source = log.source("a")
        var all: [[UInt8]] = []
        var firstKept = 0
        for round in 0..<400 {
            var cuts = FrameCuts()
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                if Int.random(in: 0..<4, using: &random) == 0 {
                    let text = String(repeating: "d", count: Int.random(in: 0...600, using: &random))
                    cuts.add(frame(text))
                    all.append(Array(text.utf8))
                } else {
                    cuts.begin(at: bytes.count, decoder: Decoder())
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
        #expect(log.snapshot().frames.isEmpty && log.undecodedCount == 0)
    }

    @Test func `tells each frame once to who asks with the last cursor, and what was missed`() {
        let log = FrameLog(limit: 3)
        let source = log.source("a")
        log.append([frame("1"), frame("2")], from: source)
        let first = log.snapshot()
        #expect(first.cursor == 2)
        #expect(texts(log.snapshot(since: first.cursor)) == [])
        log.append([frame("3")], from: source)
        let second = log.snapshot(since: first.cursor)
        #expect(texts(second) == ["3"])
        #expect(second.missedCount == 0)
        log.append((4...8).map { frame("\($0)") }, from: source)
        let third = log.snapshot(since: second.cursor)
        #expect(texts(third) == ["6", "7", "8"])
        #expect(third.missedCount == 2)
        #expect(texts(log.snapshot(since: .max)) == [])
    }

    @Test func `lets frames pass while it is paused, and forgets them when it is cleared`() {
        let log = FrameLog()
        let source = log.source("a")
        log.append([frame("1")], from: source)
        log.pause()
        log.append([frame("2")], from: source)
        #expect(log.isPaused)
        #expect(texts(log.snapshot()) == ["1"])
        #expect(log.snapshot().skippedCount == 1)
        log.resume()
        log.append([frame("3")], from: source)
        #expect(texts(log.snapshot()) == ["1", "3"])
        log.clear()
        let empty = log.snapshot()
        #expect(texts(empty) == [])
        #expect(empty.cursor == 2)
        #expect(empty.clearCount == 1)
        log.append([frame("4")], from: source)
        #expect(log.snapshot(since: empty.cursor).frames.map(\.number) == [3])
    }

    @Test func `finds a text in what is shown, whatever its case`() {
        let log = FrameLog()
        log.append([frame("Kitchen"), frame("cellar")], from: log.source("Phone"))
        #expect(log.frames(containing: "KITCH").map(\.payload) == ["Kitchen"])
        #expect(log.frames(containing: "text: cell").count == 1)
        #expect(log.frames(containing: "phone").count == 2)
        #expect(log.frames(containing: "attic").isEmpty)
    }

    @Test func `counts connections over all of its clients`() {
        let log = FrameLog()
        let (a, b) = (log.source("a"), log.source("b"))
        log.append([frame("1", opens: true)], from: a)
        log.append([frame("2", opens: true)], from: b)
        log.append([frame("3"), frame("4", opens: true)], from: a)
        #expect(log.snapshot().frames.map(\.connection) == [1, 2, 1, 3])
        #expect(log.snapshot().frames.map(\.client) == ["a", "b", "a", "a"])
    }

    @Test func `holds the first frame of a connection as long as it is of use`() {
        let log = FrameLog(limit: 2)
        let source = log.source("a")
        log.append([frame("1", opens: true)] + (2...9).map { frame("\($0)") }, from: source)
        #expect(log.capture().openings[1]?.payload == "1")
        log.clear()
        #expect(log.capture().openings[1]?.payload == "1")
        log.append([frame("10", opens: true), frame("11")], from: source)
        #expect(log.capture().openings[1] == nil)
        log.append([frame("12"), frame("13")], from: source)
        #expect(log.capture().openings[2]?.payload == "10")
        log.ended(source)
        #expect(log.capture().openings.count == 1)
        log.clear()
        #expect(log.capture().openings.isEmpty)
    }

    @Test(.requires(program: "tshark", "capinfos"))
    func `a capture of a torn log still has whole TCP connections`() async throws {
        let log = FrameLog(limit: 6)
        let (a, b) = (log.source("a"), log.source("b"))
        let long = String(repeating: "0123456789", count: 700)
        log.append([frame("CONNECT a", opens: true)] + (1...9).map { frame("\($0)") }, from: a)
        log.append([frame("CONNECT b", opens: true)], from: b)
        log.append([frame(long), frame("cut", .received, size: 1 << 20), frame("after", .received)], from: a)
        log.append([frame("bye", ends: true)], from: b)
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
                ["0", "SEND /topic/cut (a); left out, as only 3 of its 1048576 bytes were kept", "0"],
                ["0", "SEND /topic/after (a)", "5"], ["1", "SEND /topic/bye (b)", "3"],
            ])
        let lengths = try await capture.packets("tcp.len > 100", fields: ["tcp.len"]).compactMap { Int($0[0]) }
        #expect(lengths == [1460, 1460, 1460, 1460, 1160])
        let ends = try await capture.packets("tcp.flags.fin == 1", fields: ["tcp.stream"])
        #expect(ends == [["1"], ["1"]])
    }
}

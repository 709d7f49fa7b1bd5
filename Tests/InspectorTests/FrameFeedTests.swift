import Foundation
import MessagingShell
import MessagingWire
import Synchronization
import Testing
import Transport

@testable import Inspector

/// What open pages cost, and how often they are updated; in virtual time.
struct FrameFeedTests {
    /// Counts how often it is put into words.
    private final class Count: Sendable {
        let count = Atomic(0)
    }

    private struct Content: FrameContent, FrameDecoder {
        let words: Count
        let opensConnection: Bool
        let exchange: FrameExchange

        func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent { self }

        var protocolName: String { "MQTT 5.0" }
        var typeName: String { "PUBLISH" }
        var destination: String? { "a" }
        var qos: Int? { 1 }
        var fields: [LoggedFrame.Field] { [] }
        var payloadPreview: String? { nil }

        var note: String {
            words.count.add(1, ordering: .relaxed)
            return ""
        }
    }

    private struct Frames {
        let log: FrameLog
        let source = FrameLogSource("a")
        let content = Count()

        init(limit: Int = 10_000) {
            log = FrameLog(limit: limit)
        }

        func add(
            _ count: Int = 1, _ direction: FrameDirection = .sent, opens: Bool = false,
            _ exchange: FrameExchange = FrameExchange(), at instant: Int64 = 0
        ) {
            var cuts = FrameCuts()
            let content = Content(words: content, opensConnection: opens, exchange: exchange)
            for index in 0..<count { cuts.add(index..<index + 1, decoder: content, opensConnection: opens, hiding: []) }
            let bytes = [UInt8](repeating: 0, count: count)
            log.append(
                cuts, of: bytes.span.bytes, at: FrameMoment(direction, time: 0, instant: instant), from: source)
        }
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func `puts no frame into words without a page, and each once for many`() throws {
        let frames = Frames()
        let feed = FrameFeed(frames.log)
        frames.add(10)
        #expect(frames.content.count.load(ordering: .relaxed) == 0)
        let readers = try (0..<3).map { _ in try #require(feed.reader(since: FramePosition(cursor: 0), hello: "{}")) }
        for round in 1...3 {
            for reader in readers {
                var output: [UInt8] = []
                #expect(reader.appendUpdate(to: &output, at: Int64(round)))
                #expect(text(output).components(separatedBy: "\"number\"").count == 11)
            }
            #expect(frames.content.count.load(ordering: .relaxed) == 10 * round)
            frames.add(10)
        }
        // The last page gone, nothing is kept and nothing is read.
        for reader in readers { reader.leave() }
        frames.add(10)
        #expect(frames.content.count.load(ordering: .relaxed) == 30)
        #expect(feed.update(since: FramePosition(cursor: 0))?.rows.isEmpty != false)
        #expect(frames.content.count.load(ordering: .relaxed) == 30)
    }

    @Test func `sends at most twenty updates a second, and none while nothing happens`() throws {
        let frames = Frames()
        let router = PageRouter(frames: FrameService(frames.log), content: nil)
        var machine = PageMachine(router, LateReply(), PagePlaces(1).take()!)
        let afterLock = PageMachine.AfterLock()
        let head = Array("GET /\(router.token.text)/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
        machine.connectionOpened(at: 0, into: afterLock)
        let consumed = machine.receive(head.span.bytes, at: 0, into: afterLock)
        #expect(consumed == head.count)
        machine.output = []
        var updates = 0
        // A frame in every millisecond of a second, and the machine is asked as often.
        for millisecond in 0..<1_000 {
            frames.add()
            let now = Int64(millisecond) * 1_000_000
            if now >= machine.nextDeadline {
                machine.handleTimeout(at: now, progress: OutputProgress(), into: afterLock)
            }
            updates += text(machine.output).components(separatedBy: "\nid: ").count - 1
            updates += machine.output.starts(with: "id: ".utf8) ? 1 : 0
            machine.output = []
        }
        #expect(updates == 20)
        #expect(frames.content.count.load(ordering: .relaxed) > 900)
        // Caught up, and then silent but for a sign of life.
        var now: Int64 = 1_000_000_000
        machine.handleTimeout(at: now, progress: OutputProgress(), into: afterLock)
        machine.output = []
        while now < 14_000_000_000 {
            now = max(now + 1, machine.nextDeadline)
            machine.handleTimeout(at: now, progress: OutputProgress(), into: afterLock)
        }
        let (output, wantsClose) = (machine.output, machine.wantsClose)
        #expect(output == [])
        #expect(!wantsClose)
    }

    @Test func `a page that does not read gets nothing more until it has`() throws {
        let frames = Frames()
        let router = PageRouter(frames: FrameService(frames.log), content: nil)
        var machine = PageMachine(router, LateReply(), PagePlaces(1).take()!)
        let afterLock = PageMachine.AfterLock()
        let head = Array("GET /\(router.token.text)/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
        machine.connectionOpened(at: 0, into: afterLock)
        _ = machine.receive(head.span.bytes, at: 0, into: afterLock)
        machine.output = []
        frames.add(3_000)
        machine.handleTimeout(at: machine.nextDeadline, progress: OutputProgress(), into: afterLock)
        let size = machine.output.count
        // An update has a bounded number of frames; the others follow.
        let first = text(machine.output)
        #expect(first.components(separatedBy: "\"number\"").count == 501)
        for _ in 0..<100 {
            machine.handleTimeout(at: machine.nextDeadline, progress: OutputProgress(), into: afterLock)
        }
        let sizeAfter = machine.output.count
        #expect(sizeAfter == size)
        var count = 500
        for _ in 0..<5 {
            machine.output = []
            machine.handleTimeout(at: machine.nextDeadline, progress: OutputProgress(), into: afterLock)
            count += text(machine.output).components(separatedBy: "\"number\"").count - 1
        }
        #expect(count == 3_000)
    }

    @Test func `counts the frames that a page missed, and not those that were cleared`() throws {
        let frames = Frames(limit: 100)
        let feed = FrameFeed(frames.log)
        frames.add(10)
        let first = try #require(feed.reader(since: FramePosition(cursor: 0), hello: "{}"))
        defer { first.leave() }
        let start = try #require(feed.update(since: FramePosition(cursor: 0)))
        #expect(start.rows.count == 10 && start.missedCount == 0)
        frames.add(250)
        let later = try #require(feed.update(since: start.position))
        #expect(later.rows.count == 100)
        #expect(later.missedCount == 150)
        frames.add(5)
        frames.log.clear()
        frames.add(2)
        let cleared = try #require(feed.update(since: later.position))
        #expect(cleared.rows.count == 2)
        #expect(cleared.missedCount == 0)
        #expect(cleared.position.cursor == 267)
    }

    @Test func `a page that connects again receives how many frames it missed, unless they were cleared`() throws {
        let frames = Frames(limit: 100)
        frames.add(260)
        let router = PageRouter(frames: FrameService(frames.log), content: nil)
        for (query, missed) in [("since=10&clears=0", 150), ("since=10&clears=1", 0), ("since=10", 0), ("since=0", 0)] {
            var machine = PageMachine(router, LateReply(), PagePlaces(1).take()!)
            let afterLock = PageMachine.AfterLock()
            let head = Array("GET /\(router.token.text)/events?\(query) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
            machine.connectionOpened(at: 0, into: afterLock)
            _ = machine.receive(head.span.bytes, at: 0, into: afterLock)
            machine.output = []
            machine.handleTimeout(at: machine.nextDeadline, progress: OutputProgress(), into: afterLock)
            let output = text(machine.output)
            #expect(output.contains(#""cursor":260,"missed":\#(missed),"#), "\(query)")
        }
    }

    @Test func `finds what a frame answers on its own connection, in the other direction`() {
        let frames = Frames()
        frames.add(1, .sent, opens: true, FrameExchange(asks: "CONNECT"), at: 100)
        frames.add(1, .received, FrameExchange(answers: "CONNECT"), at: 350)
        frames.add(1, .sent, FrameExchange(asks: "7"), at: 1_000)
        frames.add(1, .received, FrameExchange(asks: "7"), at: 2_000)
        frames.add(1, .received, FrameExchange(answers: "7"), at: 5_000)
        frames.add(1, .received, FrameExchange(answers: "7"), at: 6_000)
        frames.add(1, .sent, FrameExchange(asks: "8"), at: 7_000)
        frames.add(1, .sent, opens: true, FrameExchange(asks: "CONNECT"), at: 8_000)
        frames.add(1, .received, FrameExchange(answers: "8"), at: 9_000)
        var exchanges = FrameExchanges()
        let answers = frames.log.snapshot().frames.map { exchanges.answer(by: $0) }
        #expect(
            answers == [
                nil, .init(number: 1, duration: 250), nil, nil, .init(number: 3, duration: 4_000), nil, nil, nil, nil,
            ])
    }

    @Test func `marks the connections that a client opens again`() throws {
        let frames = Frames()
        let feed = FrameFeed(frames.log)
        let reader = try #require(feed.reader(since: FramePosition(cursor: 0), hello: "{}"))
        defer { reader.leave() }
        frames.add(1, opens: true)
        frames.add(2)
        frames.add(1, opens: true)
        frames.add(1)
        let update = try #require(feed.update(since: FramePosition(cursor: 0)))
        #expect(update.rows.map { $0.contains("\"reconnect\":true") } == [false, false, false, true, false])
    }
}

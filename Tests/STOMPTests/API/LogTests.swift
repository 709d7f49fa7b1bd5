import ClientTestSupport
import LoopbackBroker
import MessagingShell
import MessagingWire
import STOMPRecords
import TestSupport
import Testing

@testable import STOMP

@Suite(.turns)
struct LogTests {
    private func configuration() -> STOMPConfiguration {
        var configuration = STOMPConfiguration()
        configuration.clientID = "car"
        configuration.credentials = Credentials(userName: "ann", password: "hush-hush")
        configuration.outgoingHeartBeat = .zero
        configuration.incomingHeartBeat = .zero
        return configuration
    }

    /// Puts bytes into a log as a client's inspector does.
    private func log(_ bytes: [UInt8], _ direction: FrameDirection = .sent, bytes limit: Int = 1 << 20) -> FrameLog {
        let log = FrameLog(bytes: limit)
        var cuts = FrameCuts()
        STOMPRecordDecoder.cut(bytes.span.bytes, version: .v12, into: &cuts)
        log.append(cuts, of: bytes.span.bytes, at: FrameMoment(direction), from: FrameLogSource("c"))
        return log
    }

    private func logged(_ text: String, bytes limit: Int = 1 << 20) -> [LoggedFrame] {
        log(Array(text.utf8), bytes: limit).snapshot().frames
    }

    @Test(.requires(program: "tshark", "capinfos"))
    func `a capture holds each frame as TCP, with its command and destination as comment`() async throws {
        let broker = try await LoopbackBroker.judged()
        let log = FrameLog()
        let client = STOMPClient("stomp://127.0.0.1:\(broker.ports.stomp ?? 0)", configuration: configuration())
        client.inspect(into: log)
        try await client.connect()
        let long = String(repeating: "0123456789", count: 500)
        let messages = try await client.subscribe(to: "/topic/a", acknowledgement: .clientIndividual)
        try await client.sendAndConfirm(long, to: "/topic/a")
        for try await message in messages {
            try message.acknowledge()
            break
        }
        try await messages.unsubscribe()
        await client.disconnect()
        await broker.stop()
        let frames = log.snapshot().frames
        #expect(
            Set(frames.map(\.type)).isSuperset(
                of: [
                    "CONNECT", "CONNECTED", "SUBSCRIBE", "SEND", "RECEIPT", "MESSAGE", "ACK", "UNSUBSCRIBE",
                    "DISCONNECT",
                ]))
        #expect(frames.first { $0.type == "SEND" }?.destination == "/topic/a")
        #expect(frames.allSatisfy { $0.isWhole && $0.client == "car" && $0.protocolName.hasPrefix("STOMP 1.") })

        let capture = try Capture(log.pcapng())
        #expect(try await capture.problems() == [])
        let comments = try await capture.packets("tcp.port == 61613 && frame.comment", fields: ["frame.comment"])
        #expect(
            comments.map { $0[0] }
                == frames.map { "\($0.type)\($0.destination.map { " " + $0 } ?? "") (car)" })
        // The bytes of both directions, one after the other, are those of the frames.
        for (direction, filter) in [(FrameDirection.sent, "tcp.dstport"), (.received, "tcp.srcport")] {
            let payloads = try await capture.packets("\(filter) == 61613 && tcp.len > 0", fields: ["tcp.payload"])
            let digits = frames.filter { $0.direction == direction }.flatMap(\.bytes)
                .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            #expect(payloads.map { $0[0] }.joined() == digits)
        }
    }

    @Test(arguments: ["\n", "\r\n"]) func `masks secrets in headers and bytes`(lineEnd: String) throws {
        let lines = [
            "", "CONNECT", "login:ann", "passcode:hush:hush", "Authorization:secret", "passcode:", "x:y", "", "",
        ]
        let frame = try #require(logged(lines.joined(separator: lineEnd) + "\0\n").first)
        let text = String(decoding: frame.bytes, as: UTF8.self)
        let masked = [
            "", "CONNECT", "login:***", "passcode:*********", "Authorization:******", "passcode:", "x:y", "", "",
        ]
        #expect(text == masked.joined(separator: lineEnd) + "\0")
        #expect(frame.fields.contains(.init("passcode", "***")))
        #expect(!frame.contains("hush") && !frame.contains("secret"))
    }

    @Test func `leaves a body alone that looks like a header`() throws {
        let frame = try #require(logged("SEND\ndestination:/a\ntoken:t\n\npasscode:seen\n\0").first)
        #expect(String(decoding: frame.bytes, as: UTF8.self) == "SEND\ndestination:/a\ntoken:*\n\npasscode:seen\n\0")
        #expect(frame.payload == "\"passcode:seen\n\"")
    }

    @Test func `masks secrets in every frame, also where heads repeat`() {
        let send = "SEND\ndestination:/a\nX-Token:secret\ncontent-length:4\n\n"
        let frames = [
            "CONNECT\nlogin:ann\npasscode:hush\n\n\0", "\n\(send)body\0", "\n\n\(send)BODY\0", "\(send)last\0",
        ]
        let log = log(Array((frames.joined() + "\n").utf8))
        let kept = log.snapshot().frames
        #expect(kept.map(\.type) == ["CONNECT", "SEND", "SEND", "SEND"])
        #expect(kept.compactMap(\.payload) == ["\"body\"", "\"BODY\"", "\"last\""])
        let masked = frames.map {
            $0.replacing("secret", with: "******").replacing("hush", with: "****").replacing("ann", with: "***")
        }
        #expect(kept.map { String(decoding: $0.bytes, as: UTF8.self) } == masked)
        let capture = String(decoding: log.pcapng(), as: UTF8.self)
        #expect(!capture.contains("hush") && !capture.contains("secret"))
    }

    @Test(arguments: ["", "content-length:100000\n"])
    func `keeps the start of a frame that is too large`(contentLength: String) throws {
        let body = String(repeating: "0123456789", count: 10_000)
        let frame = try #require(
            logged("MESSAGE\ndestination:/a\n\(contentLength)\n\(body)\0", bytes: 400_000).first)
        #expect(frame.type == "MESSAGE" && frame.destination == "/a" && frame.payloadCount == 100_000)
        #expect(frame.bytes.count == 4_096 && !frame.isWhole)
        #expect(frame.payload?.hasPrefix("\"0123456789") == true)
    }

    @Test func `a log keeps frames with equal heads apart, and line ends between them`() {
        let head = "MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/topic/a\ncontent-length:5\n\n"
        let open = "MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/topic/a\n\n"
        let frames = ["\(head)ab\0cd\0", "\n\(head)12345\0", "\(open)x\0", "\(open)longer\0", "\(head)67890\0"]
        let bytes = Array((frames.joined() + "\n").utf8)
        let log = log(bytes, .received)
        let kept = log.snapshot().frames
        #expect(kept.map { String(decoding: $0.bytes, as: UTF8.self) } == frames)
        #expect(kept.allSatisfy { $0.type == "MESSAGE" && $0.destination == "/topic/a" })
    }

    @Test func `logs heart-beats`() throws {
        let beat = try #require(logged("\n").first)
        #expect(beat.type == "heart-beat")
        #expect(beat.size == 1)
    }
}

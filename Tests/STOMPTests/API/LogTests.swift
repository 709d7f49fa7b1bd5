import LoopbackBroker
import Messaging
import TestSupport
import Testing
import Wire

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

    @Test(.requires(program: "tshark", "capinfos"))
    func `a capture holds each frame as TCP, with its command and destination as comment`() async throws {
        let broker = try await LoopbackBroker.start()
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
        let bytes = Array((lines.joined(separator: lineEnd) + "\0\n").utf8)
        let frame = try #require(
            STOMPFrameRecord.read(bytes.span.bytes, version: .v12, .sent, FrameWishes(logLimit: 4096)).compactMap(
                \.logged
            ).first)
        let text = String(decoding: frame.bytes, as: UTF8.self)
        let masked = [
            "", "CONNECT", "login:***", "passcode:*********", "Authorization:******", "passcode:", "x:y", "", "",
        ]
        #expect(text == masked.joined(separator: lineEnd) + "\0")
        #expect(frame.fields.contains(.init("passcode", "***")))
        #expect(!frame.contains("hush") && !frame.contains("secret"))
    }

    @Test func `leaves a body alone that looks like a header`() throws {
        let bytes = Array("SEND\ndestination:/a\ntoken:t\n\npasscode:seen\n\0".utf8)
        let frame = try #require(
            STOMPFrameRecord.read(bytes.span.bytes, version: .v12, .sent, FrameWishes(logLimit: 4096)).compactMap(
                \.logged
            ).first)
        #expect(String(decoding: frame.bytes, as: UTF8.self) == "SEND\ndestination:/a\ntoken:*\n\npasscode:seen\n\0")
        #expect(frame.payload == "\"passcode:seen\n\"")
    }

    @Test func `a log decodes and masks frames when it is read, and those of a handshake at once`() {
        let text = "CONNECT\nlogin:ann\npasscode:hush\n\n\0\nSEND\ndestination:/a\ntoken:secret\n\nbody\0\n"
        let bytes = Array(text.utf8)
        var cuts = FrameCuts()
        let limits = FrameLimits(whole: 4096, kept: 4096)
        STOMPKeptFrames.split(bytes.span.bytes, version: .v12, .sent, limits, into: &cuts)
        let log = FrameLog()
        log.append(cuts, of: bytes.span.bytes, at: FrameMoment(.sent), from: log.source("c"))
        #expect(log.undecodedCount == 1)
        #expect(log.snapshot().frames.map(\.type) == ["CONNECT", "SEND"])
        #expect(log.snapshot().frames.last?.payload == "\"body\"")
        let capture = String(decoding: log.pcapng(), as: UTF8.self)
        #expect(!capture.contains("hush") && !capture.contains("secret"))
    }

    @Test func `a log keeps frames with equal heads apart, and line ends between them`() {
        let head = "MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/topic/a\ncontent-length:5\n\n"
        let open = "MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/topic/a\n\n"
        let frames = ["\(head)ab\0cd\0", "\n\(head)12345\0", "\(open)x\0", "\(open)longer\0", "\(head)67890\0"]
        let bytes = Array((frames.joined() + "\n").utf8)
        var cuts = FrameCuts()
        STOMPKeptFrames.split(
            bytes.span.bytes, version: .v12, .received, FrameLimits(whole: 4096, kept: 4096), into: &cuts)
        let log = FrameLog()
        log.append(cuts, of: bytes.span.bytes, at: FrameMoment(.received), from: log.source("c"))
        let kept = log.snapshot().frames
        #expect(kept.map { String(decoding: $0.bytes, as: UTF8.self) } == frames)
        #expect(kept.allSatisfy { $0.type == "MESSAGE" && $0.destination == "/topic/a" })
    }

    @Test func `logs heart-beats`() throws {
        let beat = try #require(
            STOMPFrameRecord.read(([10] as [UInt8]).span.bytes, version: .v12, .received, FrameWishes(logLimit: 4096))
                .compactMap(\.logged).first)
        #expect(beat.type == "heart-beat")
        #expect(beat.size == 1)
    }
}

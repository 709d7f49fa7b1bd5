import ClientTestSupport
import LoopbackBroker
import MessagingShell
import MessagingWire
import STOMPCore
import STOMPRecords
import TestSupport
import Testing

@testable import STOMP

@Suite(.turns)
struct InspectionTests {
    @Test(arguments: [false, true])
    func `shows every frame of both directions, with login and passcode masked unless asked for`(
        showsSecrets: Bool
    ) async throws {
        let broker = try await LoopbackBroker.judged()
        var configuration = STOMPConfiguration()
        configuration.credentials = Credentials(userName: "ann", password: "hush")
        configuration.outgoingHeartBeat = .zero
        configuration.incomingHeartBeat = .zero
        let client = STOMPClient("stomp://127.0.0.1:\(broker.ports.stomp ?? 0)", configuration: configuration)
        var frames = client.inspect(showingSecrets: showsSecrets).makeAsyncIterator()
        try await client.connect()
        // A line feed in a header value: only the version that was agreed on says how it is escaped.
        let options = STOMPSendOptions(headers: ["note": "two\nlines"])
        try await client.sendAndConfirm("on", to: "/topic/a", options: options)
        await client.disconnect()
        var lines: [String] = []
        while let frame = await frames.next() {
            lines.append("\(frame.direction == .sent ? ">" : "<") \(frame)")
            if lines.last?.hasPrefix("> DISCONNECT") == true { break }
        }
        await broker.stop()
        let (login, passcode) = showsSecrets ? ("ann", "hush") : ("***", "***")
        #expect(lines[0].hasPrefix("> CONNECT accept-version:1.0,1.1,1.2 host:/ login:\(login) passcode:\(passcode)"))
        #expect(lines[1].hasPrefix("< CONNECTED version:1.2"))
        #expect(lines[2].hasPrefix("> SEND destination:/topic/a"))
        #expect(lines[2].contains("note:two\nlines"))
        #expect(lines[2].hasSuffix("\"on\" (2 bytes)"))
        #expect(lines[3].hasPrefix("< RECEIPT receipt-id:"))
    }

    @Test func `takes line ends for heart-beats only where no frame is near`() {
        func records(_ bytes: [UInt8]) -> [String] {
            let log = FrameLog()
            var cuts = FrameCuts()
            STOMPRecordDecoder.cut(bytes.span.bytes, version: .v12, into: &cuts)
            log.append(cuts, of: bytes.span.bytes, at: FrameMoment(.received), from: FrameLogSource("c"))
            return log.snapshot().frames.map { "\($0.type) \($0.note)" }
        }
        #expect(records([10]) == ["heart-beat "])
        #expect(records(Array("RECEIPT\nreceipt-id:7\n\n\0\n".utf8)) == ["RECEIPT receipt-id:7"])
        #expect(records(Array("RECEIPT\nreceipt-id:7\n\n\0\nERROR\n\nno\0".utf8)).count == 2)
        #expect(records([]) == [])
    }

    @Test func `keeps the start of headers and bodies`() throws {
        let long = String(repeating: "x", count: 10_000)
        let frame = STOMPFrame(.message, headers: ["h": long], body: Array(long.utf8))
        let raw = RawFrame(bytes: Array(repeating: 0, count: 20_000), size: 20_000, moment: FrameMoment(.received))
        let record = STOMPFrameRecord(frame, of: raw, version: .v12, showsSecrets: false)
        let kept = try #require(record.frame)
        #expect(kept.body.count == 256)
        #expect(record.bodyCount == 10_000)
        #expect("\(record)".utf8.count < 600)
    }
}

import TestSupport
import Testing

@testable import MessagingWebSocketCore

@Suite(.heavy) struct FrameVectorTests {
    @Test(arguments: FrameVectors.all)
    func `is read the same however it arrives`(vector: FrameVector) throws {
        let results = Split.allCases.map {
            transcript(of: $0.pieces(of: vector.bytes), role: vector.receiver, configuration: vector.configuration)
        }
        let result = results[0]
        #expect(results.allSatisfy { $0 == result })
        #expect(result.plaintext == vector.plaintext)
        #expect(result.events.messages == vector.messages)
        #expect(result.events.pings == vector.pings && result.events.pongs == vector.pongs)
        #expect(result.violation?.closeCode == vector.violation)

        var sent = answers(in: result.output)
        if let code = vector.violation {
            let last = sent.popLast()
            let close = try #require(last)
            #expect(Array(close.prefix(3)) == answer(8, closing(code.rawValue)), "tells the peer why")
            #expect(close.count > 3)
            #expect(
                result.closure?.code == code && result.closure?.initiator == .us && result.closure?.isClean == false)
        } else {
            #expect(result.closure?.code == vector.closed)
        }
        #expect(sent == vector.answers)
        #expect((result.phase == .closed) == (vector.violation != nil || vector.closed != nil))
    }

    @Test func `there are enough of them`() {
        #expect(FrameVectors.all.count >= 200)
    }

    // RFC 6455 section 5.7.
    @Test(
        arguments: [
            ("81 05 48 65 6c 6c 6f", WebSocketRole.client),
            ("81 85 37 fa 21 3d 7f 9f 4d 51 58", .server),
            ("01 03 48 65 6c 80 02 6c 6f", .client),
        ]
    )
    func `reads the examples of the specification`(hex: String, receiver: WebSocketRole) {
        let result = transcript(of: [[UInt8](hex: hex)], role: receiver)
        #expect(result.plaintext == text("Hello"))
        #expect(result.events.messages == [WebSocketEvents.Message(kind: .text, byteCount: 5)])
    }

    @Test func `answers the ping of the specification with its pong`() {
        #expect(transcript(of: [[UInt8](hex: "89 05 48 65 6c 6c 6f")], role: .client).events.pings == 1)
        let pong = transcript(of: [[UInt8](hex: "8a 85 37 fa 21 3d 7f 9f 4d 51 58")], role: .server)
        #expect(pong.events.pongs == 1 && pong.output.isEmpty)
    }
}

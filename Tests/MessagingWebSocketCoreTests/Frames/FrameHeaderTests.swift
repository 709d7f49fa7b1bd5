import MessagingWire
import TestSupport
import Testing

@testable import MessagingWebSocketCore

@Suite(.heavy) struct FrameHeaderTests {
    @Test(arguments: [0, 1, 125, 126, 127, 65535, 65536, 70000], [WebSocketRole.client, .server])
    func `writes each length in its shortest form`(count: Int, sender: WebSocketRole) throws {
        let payload = [UInt8](repeating: 0x5A, count: count)
        let key: UInt32? = sender == .client ? 0x3D21_FA37 : nil
        let header = WebSocketFrameHeader(opcode: .binary, payloadCount: count, maskingKey: key)
        var output: [UInt8] = []
        header.write(payload.span.bytes, into: &output)
        #expect(output == frame(2, payload, from: sender))
        #expect(output.count == header.size + count)
        #expect(try WebSocketFrameHeader.parse(output.span.bytes, sentBy: sender) == header)
    }

    @Test(arguments: WebSocketOpcode.allCases)
    func `asks for more bytes until the header is whole`(opcode: WebSocketOpcode) throws {
        let count = opcode.isControl ? 125 : 65536
        let bytes = frame(opcode.rawValue, from: .client, claims: UInt64(count))
        for length in 0..<bytes.count {
            let part = Array(bytes[..<length])
            #expect(try WebSocketFrameHeader.parse(part.span.bytes, sentBy: .client) == nil)
        }
        let header = try #require(try WebSocketFrameHeader.parse(bytes.span.bytes, sentBy: .client))
        #expect(header.opcode == opcode && header.payloadCount == count && header.maskingKey == 0x3D21_FA37)
    }

    @Test func `takes the largest length that there is`() throws {
        let bytes = frame(2, from: .server, claims: UInt64(Int64.max))
        #expect(try WebSocketFrameHeader.parse(bytes.span.bytes, sentBy: .server)?.payloadCount == Int.max)
    }
}

import MessagingWire
import TestSupport
import Testing

@testable import MessagingWebSocketCore

@Suite(.heavy) struct ConnectionTests {
    private func code(_ body: () throws -> Void) -> WebSocketError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? WebSocketError)?.code
        }
    }

    /// A connection with what a test looks at.
    private struct Side: ~Copyable {
        var connection: WebSocketConnection
        var plaintext: [UInt8] = []
        var events = WebSocketEvents()
        var output: [UInt8] = []
        var keys = SeededGenerator(seed: 7)

        init(_ role: WebSocketRole, _ configuration: WebSocketConfiguration = WebSocketConfiguration()) {
            connection = WebSocketConnection(role: role, configuration: configuration)
        }

        mutating func receive(_ bytes: [UInt8]) throws {
            try connection.receive(bytes.span.bytes, into: &plaintext, events: &events, output: &output, using: &keys)
        }

        mutating func send(_ bytes: [UInt8], as kind: WebSocketMessageKind = .binary) throws {
            try connection.send(bytes.span.bytes, as: kind, into: &output, using: &keys)
        }

        mutating func fragment(_ bytes: [UInt8], as kind: WebSocketMessageKind, isFinal: Bool) throws {
            try connection.sendFragment(bytes.span.bytes, as: kind, isFinal: isFinal, into: &output, using: &keys)
        }

        mutating func close(_ code: WebSocketCloseCode? = .normal, _ reason: String = "") throws {
            try connection.close(code, reason: reason, into: &output, using: &keys)
        }
    }

    @Test func `a server sends unmasked frames, a client masks each with a key of its own`() throws {
        var server = Side(.server)
        try server.send(text("Hello"), as: .text)
        #expect(server.output == [UInt8](hex: "81 05 48 65 6c 6c 6f"))
        var client = Side(.client)
        try client.send(text("Hello"))
        try client.send(text("Hello"))
        #expect(client.output.count == 2 * 11 && client.output[1] == 0x85)
        #expect(client.output[2..<6] != client.output[13..<17])
        try server.receive(client.output)
        #expect(server.plaintext == text("HelloHello"))
    }

    @Test func `splits long messages into frames of the size asked for`() throws {
        var configuration = WebSocketConfiguration()
        configuration.outgoingFrameSize = 2
        var server = Side(.server, configuration)
        try server.send(text("Hello"), as: .text)
        #expect(server.output == [UInt8](hex: "01 02 48 65 00 02 6c 6c 80 01 6f"))
    }

    @Test func `sends a message in parts, with characters cut between them`() throws {
        var server = Side(.server)
        try server.fragment([0xE2], as: .text, isFinal: false)
        #expect(code { try server.send([1]) } == .messageUnfinished)
        #expect(code { try server.fragment([1], as: .binary, isFinal: true) } == .messageUnfinished)
        #expect(code { try server.fragment([0x82], as: .text, isFinal: true) } == .textIsNotUTF8)
        try server.connection.ping(into: &server.output, using: &server.keys)
        try server.fragment([0x82, 0xAC], as: .text, isFinal: true)
        try server.send(text("ok"), as: .text)
        let result = transcript(of: [server.output], role: .client)
        #expect(result.plaintext == text("€ok") && result.events.messages.map(\.byteCount) == [3, 2])
        #expect(result.violation == nil && result.events.pings == 1)
    }

    @Test func `refuses to send text that is not UTF-8, and writes nothing`() {
        var client = Side(.client)
        #expect(code { try client.send([0x41, 0xFF], as: .text) } == .textIsNotUTF8)
        #expect(code { try client.send([0xE2], as: .text) } == .textIsNotUTF8)
        #expect(client.output.isEmpty && code { try client.send([0x41], as: .text) } == nil)
    }

    @Test func `the closing handshake that we begin takes late data and ends with the peer's frame`() throws {
        var client = Side(.client)
        try client.close(.goingAway, "enough")
        #expect(client.connection.phase == .closing)
        #expect(answers(in: client.output) == [answer(8, closing(1001, "enough"))])
        #expect(code { try client.send([1]) } == .notOpen)
        #expect(code { try client.connection.ping(into: &client.output, using: &client.keys) } == .notOpen)
        let sent = client.output
        try client.close(.normal)
        try client.receive(frame(2, [1, 2], from: .server) + frame(9, from: .server))
        #expect(client.plaintext == [1, 2] && client.output == sent, "no frame follows a Close frame")
        try client.receive(frame(8, closing(1001), from: .server))
        let expected = WebSocketClosure(initiator: .us, code: .goingAway, reason: "", isClean: true)
        #expect(client.connection.closure == expected && client.connection.phase == .closed)
        #expect(client.output == sent)
        client.connection.streamEnded()
        #expect(client.connection.closure == expected)
    }

    @Test func `the closing handshake that the peer begins is answered once, and a server ends the stream`() throws {
        var server = Side(.server)
        try server.receive(frame(8, closing(4321, "tschüß"), from: .client))
        #expect(
            server.connection.closure
                == WebSocketClosure(
                    initiator: .peer, code: WebSocketCloseCode(rawValue: 4321), reason: "tschüß", isClean: true))
        #expect(server.output == frame(8, closing(4321), from: .server))
        #expect(server.connection.phase == .closed)
        #expect(code { try server.send([1]) } == .notOpen)
        try server.close()
        try server.receive(frame(2, [1], from: .client))
        #expect(server.output.count == 4 && server.plaintext.isEmpty)
    }

    @Test func `a violation while closing sends no second Close frame`() throws {
        var client = Side(.client)
        try client.close()
        let sent = client.output
        #expect(throws: WebSocketProtocolError.self) { try client.receive([0xFF]) }
        #expect(client.output == sent && client.connection.phase == .closed)
    }

    @Test func `a stream that just ends is an abnormal closure`() {
        var client = Side(.client)
        client.connection.streamEnded()
        #expect(client.connection.closure?.code == .abnormal && client.connection.closure?.isClean == false)
        #expect(client.connection.phase == .closed)
    }

    @Test(arguments: [0, 999, 1004, 1005, 1006, 1015, 2999, 5000] as [UInt16])
    func `refuses to send a close code that is not for the wire`(number: UInt16) {
        var client = Side(.client)
        #expect(code { try client.close(WebSocketCloseCode(rawValue: number)) } == .invalidClosure)
        #expect(client.output.isEmpty && client.connection.phase == .open)
    }

    @Test func `refuses reasons that do not fit into a Close frame`() {
        var client = Side(.client)
        #expect(code { try client.close(.normal, String(repeating: "é", count: 62)) } == .controlPayloadTooLong)
        #expect(code { try client.close(nil, "why") } == .invalidClosure)
        #expect(client.output.isEmpty && code { try client.close(.normal, String(repeating: "é", count: 61)) } == nil)
    }

    @Test func `a pong answers its ping and those before, and nothing else does`() throws {
        var client = Side(.client)
        var server = Side(.server)
        for _ in 0..<3 { try client.connection.ping(into: &client.output, using: &client.keys) }
        try client.receive(frame(10, text("x"), from: .server))
        try client.receive(frame(10, [0, 0, 0, 0, 0, 0, 0, 9], from: .server))
        try client.receive(frame(10, [0, 0, 0, 0, 0, 0, 0, 2], from: .server))
        #expect(client.connection.pingsSent == 3 && client.connection.pingsAnswered == 2)
        try server.receive(client.output)
        try client.receive(server.output)
        #expect(client.connection.pingsAnswered == 3 && client.events.pongs == 6)
    }

    @Test func `while the output is long, only the newest ping is answered, later`() throws {
        var configuration = WebSocketConfiguration()
        configuration.pongBacklog = 10
        var server = Side(.server, configuration)
        server.output = [UInt8](repeating: 0, count: 11)
        try server.receive((1...50).flatMap { frame(9, [$0], from: .client) })
        #expect(server.output.count == 11 && server.events.pings == 50)
        server.output = []
        server.connection.answerPing(into: &server.output, using: &server.keys)
        #expect(server.output == frame(10, [50], from: .server))
        server.connection.answerPing(into: &server.output, using: &server.keys)
        #expect(server.output.count == 3)
    }

    @Test func `a byte stream answers pings when the caller can write, and only the newest`() throws {
        var server = Side(.server, .byteStream(acceptsText: false))
        for number in 1...50 as ClosedRange<UInt8> { try server.receive(frame(9, [number], from: .client)) }
        let owesOne = server.connection.owesPong
        #expect(owesOne && server.output.isEmpty)
        server.connection.answerPing(into: &server.output, using: &server.keys)
        let owesNone = !server.connection.owesPong
        #expect(owesNone && server.output == frame(10, [50], from: .server))
        try server.receive(frame(9, [51], from: .client))
        try server.close()
        let sent = server.output
        server.connection.answerPing(into: &server.output, using: &server.keys)
        let owesNoneAfterClose = !server.connection.owesPong
        #expect(owesNoneAfterClose && server.output == sent, "no frame follows a Close frame")
    }

    @Test func `events keep their capacity and forget the rest`() throws {
        var server = Side(.server)
        try server.receive(frame(2, [1], from: .client) + frame(9, from: .client) + frame(10, from: .client))
        server.events.removeAll()
        #expect(server.events == WebSocketEvents())
    }
}

import STOMPCore
import TestSupport
import Testing

/// What breaks the protocol ends the connection at once, in the versions whose specification requires it.
@Suite(.heavy) struct ProtocolErrorTests {
    static let message = ["destination": "/q", "message-id": "7", "subscription": "0"]

    private static func frame(_ command: String, _ headers: [String: String]) -> String {
        let lines = headers.map { "\($0.key):\($0.value)\n" }.sorted().joined()
        return "\(command)\n\(lines)\n\0"
    }

    @Test(arguments: [STOMPVersion.v11, .v12], message.keys.sorted())
    func messageWithoutARequiredHeaderEndsTheConnection(_ version: STOMPVersion, _ missing: String) throws {
        let client = try ScriptedEngine.connected(version)
        try client.engine.subscribe(id: "0", destination: "/q", token: 5, at: 0)
        client.receive(Self.frame("MESSAGE", Self.message))
        #expect(client.takeLog() == ["message 5 /q "])
        client.receive(Self.frame("MESSAGE", Self.message.filter { $0.key != missing }))
        #expect(client.takeLog() == ["failed violation(missingHeader)", "close"])
    }

    @Test func version10NeedsNoSubscriptionHeader() throws {
        let client = try ScriptedEngine.connected(.v10)
        try client.engine.subscribe(id: "0", destination: "/q", token: 5, at: 0)
        client.receive(Self.frame("MESSAGE", ["destination": "/q", "message-id": "7"]))
        #expect(client.takeLog() == ["message 5 /q "])
    }

    @Test(arguments: [STOMPVersion.v11, .v12])
    func receiptWithoutReceiptIDEndsTheConnection(_ version: STOMPVersion) throws {
        let client = try ScriptedEngine.connected(version)
        client.receive("RECEIPT\nfoo:bar\n\n\0")
        #expect(client.takeLog() == ["failed violation(missingHeader)", "close"])
    }

    @Test(arguments: ["\0", "\rX", "\r\r", "X\0", "X Y", "X\rY", "\u{7F}", "\u{E9}"])
    func bytesThatBeginNoFrameEndTheConnectionBeforeTheLineDoes(_ bytes: String) throws {
        let client = try ScriptedEngine.connected()
        client.receive(bytes)
        #expect(client.takeLog() == ["failed violation(malformedCommand)", "close"])
        let split = try ScriptedEngine.connected()
        for byte in bytes.utf8 where !split.engine.shouldClose { split.receive([byte]) }
        #expect(split.takeLog() == ["failed violation(malformedCommand)", "close"])
        let server = try ScriptedEngine.serving()
        server.receive(bytes)
        #expect(server.takeLog() == ["failed violation(malformedCommand)", "close"])
        #expect(server.takeOutput().hasPrefix("ERROR\n"))
    }

    @Test func carriageReturnInsideAHeaderEndsTheConnectionIn12Only() throws {
        for version in [STOMPVersion.v11, .v12] {
            let client = try ScriptedEngine.connected(version)
            try client.engine.subscribe(id: "0", destination: "/q", token: 5, at: 0)
            client.receive("MESSAGE\ndestination:/q\nmessage-id:7\nsubscription:0\nx:a\rb\n\n\0")
            #expect(
                client.takeLog()
                    == (version == .v12 ? ["failed violation(malformedHeader)", "close"] : ["message 5 /q "]))
        }
        let server = try ScriptedEngine.serving()
        server.receive("SEND\ndestination:/q\nx:a\rb\n\n\0")
        #expect(server.takeLog() == ["failed violation(malformedHeader)", "close"])
    }

    @Test func unknownCommandsStayAnEvent() throws {
        let client = try ScriptedEngine.connected()
        client.receive("NEWS\nfoo:bar\n\n\0")
        #expect(client.takeLog() == ["unknown NEWS"])
    }
}

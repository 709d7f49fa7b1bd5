import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct ServerTests {
    private func opened() -> ScriptedEngine {
        let server = ScriptedEngine(server: STOMPEngineConfiguration())
        server.open()
        return server
    }

    @Test(arguments: [
        ("CONNECT\n\n\0", "1.0"), ("STOMP\naccept-version:1.1\nhost:h\n\n\0", "1.1"), ("CONNECT\r\n\r\n\0\r\n", "1.0"),
        ("CONNECT\naccept-version:1.0,1.1,1.2,9.0\nhost:h\n\n\0", "1.2"),
        ("CONNECT\naccept-version:1.0, 1.1\n\n\0", "1.1"),
    ])
    func picksTheHighestCommonVersion(_ text: String, _ version: String) throws {
        let server = opened()
        server.receive(text)
        #expect(server.takeLog() == ["CONNECT \(version)"])
        try server.engine.accept(session: "s", server: "test/1", at: 0)
        #expect(server.takeOutput() == "CONNECTED\nversion:\(version)\nsession:s\nserver:test/1\n\n\0")
    }

    @Test func noCommonVersionIsAnError() {
        let server = opened()
        server.receive("CONNECT\naccept-version:3.0\n\n\0")
        #expect(server.takeLog() == ["failed versionMismatch", "close"])
        #expect(server.takeOutput().hasPrefix("ERROR\nversion:1.0,1.1,1.2\nmessage:"))
    }

    @Test func framesSentWithoutWaitingForConnectedAreRead() throws {
        let server = opened()
        server.receive(
            "CONNECT\naccept-version:1.2\n\n\0SUBSCRIBE\nid:1\ndestination:/a\\cb\n\n\0SEND\ndestination:/q\n\nx\0")
        #expect(server.takeLog() == ["CONNECT 1.2", "SUBSCRIBE 1 /a:b auto", "message 0 /q x"])
    }

    @Test func refusalIsAnErrorAndAClose() throws {
        let server = opened()
        server.receive("CONNECT\n\n\0")
        try server.engine.refuse(message: "invalid user credentials", body: Array("no".utf8), at: 0)
        #expect(server.takeOutput() == "ERROR\nmessage:invalid user credentials\ncontent-length:2\n\nno\0")
        #expect(server.engine.phase == .closing)
        // At once: no timeout has to come first.
        let shouldClose = server.engine.shouldClose
        #expect(shouldClose && server.deadline == nil)
    }

    @Test(arguments: STOMPVersion.allCases)
    func readsWhatClientsAsk(_ version: STOMPVersion) throws {
        let server = try ScriptedEngine.serving(version)
        server.receive(
            "SUBSCRIBE\r\nid:1\r\ndestination:/q\r\nack:client\r\n\r\n\0\r\nUNSUBSCRIBE\nid:1\n\n\0"
                + "ACK\nid:1\nmessage-id:1\nsubscription:s\n\n\0BEGIN\ntransaction:t\n\n\0COMMIT\ntransaction:t\n\n\0"
                + "ABORT\ntransaction:t\n\n\0DISCONNECT\nreceipt:9\n\n\0")
        #expect(
            server.takeLog() == [
                "SUBSCRIBE 1 /q client", "UNSUBSCRIBE 1", "ACK 1", "BEGIN t", "COMMIT t", "ABORT t", "DISCONNECT 9",
            ])
        try server.engine.sendReceipt("9", at: 0)
        #expect(server.takeOutput() == "RECEIPT\nreceipt-id:9\n\n\0")
    }

    @Test func eventsKeepTheirPlaceAmongMessages() throws {
        let server = try ScriptedEngine.serving()
        server.receive(
            "SEND\ndestination:/a\n\n1\0BEGIN\ntransaction:t\n\n\0SEND\ndestination:/b\ntransaction:t\nreceipt:r\n\n2\0COMMIT\ntransaction:t\n\n\0"
        )
        #expect(server.takeLog() == ["message 0 /a 1", "BEGIN t", "message 0 /b 2", "COMMIT t"])
    }

    @Test func sendRecordsTellOfReceiptAndTransaction() throws {
        let server = try ScriptedEngine.serving()
        let text = Array("SEND\ndestination:/a\nreceipt:r\n\n\0SEND\ndestination:/a\ntransaction:t\n\n\0".utf8)
        _ = server.engine.receive(text.span.bytes, at: 0, into: &server.effects)
        #expect(server.effects.messages.map(\.flags) == [.receipt, .transaction])
    }

    @Test func oneDotZeroMaySubscribeWithoutIDAndUnsubscribeByDestination() throws {
        let server = try ScriptedEngine.serving(.v10)
        server.receive("SUBSCRIBE\ndestination:/q\n\n\0UNSUBSCRIBE\ndestination:/q\n\n\0ACK\nmessage-id:1\n\n\0")
        #expect(server.takeLog() == ["SUBSCRIBE - /q auto", "UNSUBSCRIBE /q", "ACK 1"])
        try server.engine.deliver(subscription: nil, destination: "/q", messageID: "1", body: Array("x".utf8), at: 0)
        #expect(server.takeOutput() == "MESSAGE\nmessage-id:1\ndestination:/q\ncontent-length:1\n\nx\0")
    }

    @Test(arguments: [
        (STOMPVersion.v12, "SUBSCRIBE\ndestination:/q\nreceipt:5\n\n\0"),
        (.v11, "SUBSCRIBE\ndestination:/q\nreceipt:5\n\n\0"),
        (.v12, "SEND\nreceipt:5\n\n\0"), (.v12, "ACK\nmessage-id:1\nreceipt:5\n\n\0"),
        (.v11, "ACK\nmessage-id:1\nreceipt:5\n\n\0"), (.v11, "NACK\nsubscription:1\nreceipt:5\n\n\0"),
        (.v10, "ACK\nid:1\nreceipt:5\n\n\0"), (.v12, "BEGIN\nreceipt:5\n\n\0"),
        (.v12, "UNSUBSCRIBE\ndestination:/q\nreceipt:5\n\n\0"),
    ])
    func missingHeaderIsAnErrorThatNamesTheReceipt(_ version: STOMPVersion, _ text: String) throws {
        let server = try ScriptedEngine.serving(version)
        server.receive(text)
        #expect(server.takeLog() == ["failed violation(missingHeader)", "close"])
        #expect(server.takeOutput().contains("\nreceipt-id:5\n"))
    }

    @Test func errorNamesTheFirstOfRepeatedReceipts() throws {
        let server = try ScriptedEngine.serving()
        server.receive("BEGIN\nreceipt:5\nreceipt:6\n\n\0")
        #expect(server.takeOutput().contains("\nreceipt-id:5\n"))
    }

    @Test(arguments: [
        (STOMPVersion.v10, "NACK\nmessage-id:1\n\n\0"), (.v12, "CONNECT\n\n\0"), (.v12, "MESSAGE\n\n\0"),
        (.v12, "HELLO\n\n\0"),
    ])
    func unexpectedFramesAreAnErrorAndTheEnd(_ version: STOMPVersion, _ text: String) throws {
        let server = try ScriptedEngine.serving(version)
        server.receive(text)
        #expect(server.takeLog().suffix(2) == ["failed violation(unexpectedFrame)", "close"])
        #expect(server.takeOutput().hasPrefix("ERROR\n"))
    }

    @Test func bogusAckModeIsAnError() throws {
        let server = try ScriptedEngine.serving(.v10)
        server.receive("SUBSCRIBE\ndestination:/q\nack:client-individual\n\n\0")
        #expect(server.takeLog() == ["failed violation(invalidHeader)", "close"])
    }

    @Test func framesBeforeConnectAreAnError() {
        let server = opened()
        server.receive("SEND\ndestination:/q\n\n")
        #expect(server.takeLog() == ["failed violation(unexpectedFrame)", "close"])
    }

    @Test func connectMustComeInTime() {
        let server = opened()
        server.advance(to: 30_000)
        #expect(server.takeLog() == ["failed connectTimeout", "close"])
    }

    @Test func messageIsRelayedWithoutWhatWasForTheServerAlone() throws {
        let server = try ScriptedEngine.serving()
        try server.engine.deliver(
            subscription: "s:1", destination: "/q", messageID: "m", ackID: "a",
            headers: [
                "destination": "/x", "receipt": "1", "transaction": "t", "content-length": "9", "ack": "z", "a": "b",
                "message-id": "z",
            ],
            body: Array("hi".utf8), at: 0)
        #expect(
            server.takeOutput()
                == "MESSAGE\nsubscription:s\\c1\nmessage-id:m\ndestination:/q\nack:a\na:b\ncontent-length:2\n\nhi\0")
    }

    @Test func relayedHeadersThatAVersionCannotCarryAreWrittenWithBlanks() throws {
        let server = try ScriptedEngine.serving(.v10)
        try server.engine.deliver(
            subscription: "s", destination: "/q", messageID: "m", headers: ["a:b": "c\nd", "e": "f\r"], body: [], at: 0)
        #expect(server.takeOutput() == "MESSAGE\nsubscription:s\nmessage-id:m\ndestination:/q\na b:c d\ne:f \n\n\0")
    }

    @Test func clientThatDisconnectedIsClosedSoonAfter() throws {
        let server = try ScriptedEngine.serving()
        server.receive("DISCONNECT\nreceipt:1\n\n\0")
        _ = server.takeLog()
        server.advance(to: 1_000)
        #expect(server.takeLog() == ["disconnected", "close"])
        let other = try ScriptedEngine.serving()
        other.receive("DISCONNECT\n\n\0")
        other.close()
        #expect(other.takeLog() == ["DISCONNECT -", "disconnected"])
    }

    @Test func errorCanLeaveTheSessionOpenAsRabbitMQDoes() throws {
        let server = try ScriptedEngine.serving()
        try server.engine.sendError(message: "bad", closes: false, at: 0)
        try server.engine.sendReceipt("1", at: 0)
        #expect(server.takeOutput() == "ERROR\nmessage:bad\n\n\0RECEIPT\nreceipt-id:1\n\n\0")
    }
}

import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct DisconnectTests {
    @Test func receiptOfDisconnectIsTheEnd() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        _ = client.takeOutput()
        try client.engine.disconnect(at: 0)
        #expect(client.takeOutput() == "DISCONNECT\nreceipt:2\n\n\0")
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == ["receipt 1 received"])
        client.receive("RECEIPT\nreceipt-id:2\n\n\0")
        #expect(client.takeLog() == ["disconnected", "close"])
        client.close()
        #expect(client.takeLog() == [])
    }

    @Test func endOfStreamAfterDisconnectIsSuccess() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.disconnect(at: 0)
        client.close()
        #expect(client.takeLog() == ["disconnected"])
    }

    @Test func errorAfterDisconnectIsTheEndToo() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.disconnect(at: 0)
        client.receive("ERROR\nmessage:late\n\n\0")
        #expect(client.takeLog() == ["error late", "disconnected", "close"])
    }

    @Test func errorThatNamesDisconnectIsTheEndAndBlamesNobody() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.disconnect(at: 0)
        client.receive("ERROR\nreceipt-id:1\nmessage:late\n\n\0")
        #expect(client.takeLog() == ["error late", "disconnected", "close"])
    }

    @Test func disconnectNeverHangs() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        try client.engine.disconnect(at: 0)
        #expect(client.deadline == 5_000)
        client.advance(to: 5_000)
        #expect(client.takeLog() == ["disconnected", "receipt 1 disconnected", "close"])
    }

    @Test func nothingIsSentAfterDisconnect() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", acknowledgement: .client, token: 1, at: 0)
        try client.engine.disconnect(at: 0)
        _ = client.takeOutput()
        let headers = Array("subscription:a\nack:1\n".utf8)
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.send(destination: "/q", body: [], at: 0) }
                == .disconnecting)
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.unsubscribe(id: "a", at: 0) } == .disconnecting)
        #expect(client.misuse { e throws(STOMPUsageError) in _ = try e.engine.begin(at: 0) } == .disconnecting)
        #expect(
            client.misuse { e throws(STOMPUsageError) in
                try e.engine.ack(messageHeaders: headers.span.bytes, connection: 1, at: 0)
            } == .disconnecting)
        try client.engine.disconnect(at: 0)
        #expect(client.takeOutput() == "")
    }

    @Test func messagesMayStillComeAfterDisconnect() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", token: 1, at: 0)
        try client.engine.disconnect(at: 0)
        client.receive("MESSAGE\nsubscription:a\nmessage-id:7\ndestination:/q\n\nx\0RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == ["message 1 /q x", "disconnected", "close"])
    }

    @Test func disconnectBeforeConnectedClosesAtOnce() throws {
        let client = try ScriptedEngine()
        client.open()
        _ = client.takeOutput()
        try client.engine.disconnect(at: 0)
        client.advance(to: 0)
        #expect(client.takeLog() == ["disconnected", "close"])
        #expect(client.takeOutput() == "")
    }

    @Test func disconnectOfflineDoesNothing() throws {
        let client = try ScriptedEngine()
        try client.engine.disconnect(at: 0)
        #expect(client.takeOutput() == "" && client.deadline == nil)
    }
}

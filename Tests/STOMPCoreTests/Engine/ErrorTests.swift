import STOMPCore
import TestSupport
import Testing
import Wire

@Suite(.heavy) struct ErrorTests {
    private func client(waits: Int) throws -> ScriptedEngine {
        let client = try ScriptedEngine.connected()
        for token in 0..<waits {
            try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token + 1), at: 0)
        }
        return client
    }

    @Test func errorWithReceiptIDFailsThatWaiterAndEndsTheSession() throws {
        let client = try client(waits: 3)
        client.receive("ERROR\nreceipt-id:2\nmessage:no\n\nwhy\0")
        #expect(
            client.takeLog() == [
                "error no", "failed error", "receipt 2 refused", "receipt 1 sessionEnded", "receipt 3 sessionEnded",
                "close",
            ])
    }

    @Test func errorWithoutReceiptIDFailsTheOnlyWaiter() throws {
        let client = try client(waits: 1)
        client.receive("ERROR\nmessage:no\n\n\0")
        #expect(client.takeLog() == ["error no", "failed error", "receipt 1 refused", "close"])
    }

    @Test func errorWithoutReceiptIDMostLikelyMeansTheOldestOfSeveral() throws {
        let client = try client(waits: 2)
        client.receive("ERROR\nmessage:no\n\n\0")
        #expect(
            client.takeLog() == [
                "error no", "failed error", "receipt 1 presumablyRefused", "receipt 2 sessionEnded", "close",
            ])
    }

    @Test func errorForSomebodyUnknownBlamesNobody() throws {
        let client = try client(waits: 1)
        client.receive("ERROR\nreceipt-id:77\nmessage:no\n\n\0")
        #expect(client.takeLog() == ["error no", "failed error", "receipt 1 sessionEnded", "close"])
    }

    @Test func laterReceiptDoesNotOverturnAnError() throws {
        let client = try client(waits: 2)
        client.receive("ERROR\nmessage:no\n\n\0\nRECEIPT\nreceipt-id:1\n\n\0\nRECEIPT\nreceipt-id:2\n\n\0\n")
        let log = client.takeLog()
        #expect(!log.contains { $0.hasSuffix("received") })
        client.receive("RECEIPT\nreceipt-id:1\n\n\0MESSAGE\ndestination:/q\n\n\0")
        #expect(client.takeLog() == [])
    }

    @Test func sessionIsOverForUsThoughTheStreamStaysOpen() throws {
        let client = try client(waits: 0)
        client.receive("ERROR\nmessage:no\n\n\0")
        #expect(client.engine.shouldClose && client.engine.phase == .closing)
        let send: (ScriptedEngine) throws(STOMPUsageError) -> Void = { e throws(STOMPUsageError) in
            try e.engine.send(destination: "/q", body: [], at: 0)
        }
        #expect(client.misuse(send) == .notConnected)
        #expect(client.deadline == nil)
        _ = client.takeLog()
        client.close()
        #expect(client.takeLog() == [], "the end is told once")
    }

    @Test func errorShowsMessageBodyAndHeaders() throws {
        let client = try ScriptedEngine.connected()
        let text = Array("ERROR\nmessage:m\nversion:1.0,1.1,1.2\nreceipt-id:9\n\nline one\nline two\0".utf8)
        _ = client.engine.receive(text.span.bytes, at: 0, into: &client.effects)
        guard case .errorReceived(let error)? = client.effects.events.first?.kind else {
            Issue.record("no error")
            return
        }
        #expect(error.message == "m" && error.receiptID == "9" && error.detail == "line one")
        #expect(error.headers["version"] == "1.0,1.1,1.2" && error.description == "m: line one")
        #expect(String(decoding: error.body, as: UTF8.self) == "line one\nline two")
    }

    @Test(arguments: [
        ("SEND\n\n\0", "unknown SEND"), ("HELLO\na:b\n\nx\0", "unknown HELLO"),
        ("SUBSCRIBE\nid:1\n\n\0", "unknown SUBSCRIBE"),
    ])
    func unknownServerFramesDoNotHarm(_ text: String, _ expected: String) throws {
        let client = try client(waits: 1)
        client.receive(text + "RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == [expected, "receipt 1 received"])
    }

    @Test(arguments: [
        ("MESSAGE\na:\\t\n\n\0", "undefinedEscape"), ("MESSAGE\ncontent-length:1\n\nab\0", "missingTerminator"),
        ("RECEIPT\nreceipt-id:1\n\nx\0", "unexpectedBody"),
        ("MESSAGE\ncontent-length:-1\n\n\0", "invalidContentLength"),
    ])
    func violationsEndTheSessionAndAllWaits(_ text: String, _ code: String) throws {
        let client = try client(waits: 1)
        client.receive(text)
        #expect(client.takeLog() == ["failed violation(\(code))", "receipt 1 sessionEnded", "close"])
    }

    @Test func announcedBodyBeyondTheLimitIsRefusedFromItsHeaderAlone() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.limits.maximumBodyBytes = 1_000
        let client = try ScriptedEngine.connected(configuration: configuration)
        client.receive("MESSAGE\ncontent-length:1001\n\n")
        #expect(client.takeLog() == ["failed violation(limitExceeded)", "close"])
    }
}

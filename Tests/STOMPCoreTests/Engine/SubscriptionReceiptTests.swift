import STOMPCore
import TestSupport
import Testing

/// Servers that send the messages of a subscription and no RECEIPT for it, as Spring's simple broker does. Times are
/// milliseconds.
@Suite(.heavy) struct SubscriptionReceiptTests {
    private func connected(_ change: (inout STOMPEngineConfiguration) -> Void = { _ in }) throws -> ScriptedEngine {
        var configuration = STOMPEngineConfiguration()
        change(&configuration)
        return try ScriptedEngine.connected(configuration: configuration)
    }

    /// A receipt is late after 5,000 ms; the connection does not end for it.
    private func connectedForReceipts() throws -> ScriptedEngine {
        try connected {
            $0.receiptTimeout = 5_000_000_000
            $0.acknowledgementTimeout = .max
        }
    }

    private func subscribe(
        _ client: ScriptedEngine, _ id: String = "s", token: UInt64 = 7, receipt: UInt64? = 1,
        mode: STOMPAckMode = .auto
    ) throws {
        try client.engine.subscribe(
            id: id, destination: "/topic/\(id)", acknowledgement: mode, token: token, receiptToken: receipt,
            at: client.nanoseconds)
    }

    private func message(_ id: String = "s") -> String {
        "MESSAGE\nsubscription:\(id)\nmessage-id:1\ndestination:/topic/\(id)\nack:a\n\nx\0"
    }

    @Test(arguments: [STOMPAckMode.auto, .client, .clientIndividual])
    func `a message proves its subscription, once, and its late RECEIPT changes nothing`(mode: STOMPAckMode) throws {
        let client = try connected()
        try subscribe(client, mode: mode)
        client.receive(message())
        #expect(client.takeLog() == ["message 7 /topic/s x", "receipt 1 received"])
        client.receive(message())
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == ["message 7 /topic/s x"])
        client.advance(to: 300_000)
        #expect(client.engine.phase == .connected && client.engine.pendingReceipts == 0)
        #expect(client.engine.unansweredCount == (mode == .auto ? 0 : 2))
    }

    @Test func `a message proves neither another subscription nor an unknown one`() throws {
        let client = try connected()
        try subscribe(client, "s", token: 7, receipt: 1)
        try subscribe(client, "t", token: 8, receipt: 2)
        client.receive(message("u"))
        client.receive(message("t"))
        #expect(client.takeLog() == ["message - /topic/u x", "message 8 /topic/t x", "receipt 2 received"])
        #expect(client.engine.pendingReceipts == 1)
    }

    @Test func `a message of STOMP 1.0 that names no subscription proves none`() throws {
        let client = try ScriptedEngine.connected(.v10)
        try subscribe(client)
        client.receive("MESSAGE\nmessage-id:1\ndestination:/topic/s\n\nx\0")
        #expect(client.takeLog() == ["message 7 /topic/s x"])
        #expect(client.engine.pendingReceipts == 1)
    }

    @Test func `a proved subscription neither shortens nor lengthens the wait for other receipts`() throws {
        let client = try connected { $0.receiptTimeout = 600_000_000_000 }
        try subscribe(client)
        client.advance(to: 10_000)
        try client.engine.send(destination: "/q", body: [], receiptToken: 2, at: client.nanoseconds)
        client.advance(to: 20_000)
        client.receive(message())
        #expect(client.takeLog() == ["message 7 /topic/s x", "receipt 1 received"])
        client.advance(to: 39_999)
        #expect(client.engine.phase == .connected)
        client.advance(to: 40_000)
        #expect(client.engine.phase == .closing)
        #expect(client.takeLog().contains("unacknowledged 2 30000"))
    }

    @Test func `without receipts nothing that asks for one is written`() throws {
        let client = try connected { $0.profile = .springSimple }
        try self.subscribe(client, receipt: nil)
        #expect(client.takeOutput() == "SUBSCRIBE\nid:s\ndestination:/topic/s\nack:auto\n\n\0")
        let send: (ScriptedEngine) throws(STOMPUsageError) -> Void = { client throws(STOMPUsageError) in
            try client.engine.send(destination: "/q", body: [], receiptToken: 2, at: 0)
        }
        let subscribe: (ScriptedEngine) throws(STOMPUsageError) -> Void = { client throws(STOMPUsageError) in
            try client.engine.subscribe(id: "t", destination: "/q", token: 8, receiptToken: 2, at: 0)
        }
        let unsubscribe: (ScriptedEngine) throws(STOMPUsageError) -> Void = { client throws(STOMPUsageError) in
            _ = try client.engine.unsubscribe(id: "s", receiptToken: 2, at: 0)
        }
        for operation in [send, subscribe, unsubscribe] { #expect(client.misuse(operation) == .unsupportedByBroker) }
        try client.engine.send(destination: "/q", body: [], at: 0)
        try client.engine.unsubscribe(id: "s", at: 0)
        _ = client.takeOutput()
        try client.engine.disconnect(at: 0)
        #expect(client.takeOutput().contains("receipt:"), "Spring confirms DISCONNECT")
    }

    @Test(arguments: [false, true])
    func `no receipt is late while we do not read`(byMessage: Bool) throws {
        let client = try connectedForReceipts()
        try subscribe(client)
        try client.engine.send(destination: "/q", body: [], receiptToken: 2, at: 0)
        client.engine.setReadingPaused(true, at: 0)
        client.advance(to: 6_000)
        #expect(client.takeLog().isEmpty && client.deadline == nil)
        client.engine.setReadingPaused(false, at: client.nanoseconds)
        client.receive("RECEIPT\nreceipt-id:2\n\n\0")
        // A message proves the subscription, which is reported once.
        let receipt = "RECEIPT\nreceipt-id:1\n\n\0"
        client.receive(byMessage ? message() + receipt : receipt + receipt)
        #expect(
            client.takeLog() == ["receipt 2 received"] + (byMessage ? ["message 7 /topic/s x"] : [])
                + ["receipt 1 received"])
    }

    @Test func `a receipt is late when we have read for long enough, in all`() throws {
        let client = try connectedForReceipts()
        client.advance(to: 2_000)
        try subscribe(client)
        for (time, isPaused) in [(3, true), (5, false), (8, true), (8, true), (9, false), (9, false)] {
            client.advance(to: Int64(time) * 1_000)
            client.engine.setReadingPaused(isPaused, at: client.nanoseconds)
        }
        // The time is over at 7 seconds, three of which we have read.
        client.advance(to: 9_999)
        #expect(client.takeLog().isEmpty)
        client.advance(to: 10_000)
        #expect(client.takeLog() == ["receipt 1 timedOut"])
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog().isEmpty)
        #expect(client.deadline == nil && client.engine.phase == .connected)
    }

    @Test func `what waits to be taken holds no clock, and what is taken begins the wait anew`() throws {
        let client = try connectedForReceipts()
        try subscribe(client)
        client.engine.setReadingHeldUp(true, at: 0)
        client.advance(to: 1_000)
        client.engine.setReadingPaused(true, at: client.nanoseconds)
        client.advance(to: 2_000)
        client.engine.setReadingHeldUp(false, at: client.nanoseconds)
        client.advance(to: 3_000)
        client.engine.setReadingPaused(false, at: client.nanoseconds)
        // Reading is held up no longer since the first second of listening, the second one of time.
        client.advance(to: 7_999)
        #expect(client.takeLog().isEmpty)
        client.advance(to: 8_000)
        #expect(client.takeLog() == ["receipt 1 timedOut"])
    }

    @Test func `a receipt behind a message that arrives slowly after a pause is waited for`() throws {
        let client = try connectedForReceipts()
        try subscribe(client)
        client.engine.setReadingPaused(true, at: 0)
        client.advance(to: 6_000)
        client.engine.setReadingPaused(false, at: client.nanoseconds)
        client.receive("MESSAGE\ndestination:/q\nmessage-id:1\nsubscription:0\ncontent-length:20\n\n")
        for second in 7...20 as ClosedRange<Int64> {
            client.receive("x")
            client.advance(to: second * 1_000)
        }
        #expect(client.takeLog().isEmpty)
        client.receive("xxxxxx\0RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog().last == "receipt 1 received")
    }

    @Test(arguments: [false, true])
    func `a receipt that was not read ends with its connection`(byDisconnect: Bool) throws {
        let client = try connectedForReceipts()
        try subscribe(client)
        client.engine.setReadingPaused(true, at: 0)
        client.advance(to: 6_000)
        if byDisconnect { try client.engine.disconnect(at: client.nanoseconds) } else { client.receive("ERROR\n\n\0") }
        client.advance(to: 60_000)
        #expect(client.engine.phase == .closing && client.deadline == nil)
        #expect(client.takeLog().filter { $0.hasPrefix("receipt") }.count == 1)
    }

    @Test func `a receipt that comes too late changes nothing, nor does one of an earlier connection`() throws {
        let client = try connectedForReceipts()
        try subscribe(client)
        client.advance(to: 6_000)
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == ["receipt 1 timedOut"])
        try subscribe(client, "t", receipt: 2)
        client.engine.setReadingPaused(true, at: client.nanoseconds)
        client.advance(to: 12_000)
        client.close()
        client.connect()
        _ = client.takeLog()
        client.receive("RECEIPT\nreceipt-id:2\n\n\0")
        #expect(client.takeLog().isEmpty)
    }
}

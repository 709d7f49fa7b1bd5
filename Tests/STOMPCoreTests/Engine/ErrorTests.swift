import MessagingWire
import STOMPCore
import TestSupport
import Testing

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

    @Test func `an error of ActiveMQ that names no receipt is about a frame without one, and refuses no other`() throws
    {
        let client = try ScriptedEngine.connected(server: "ActiveMQ/5.17.2")
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        try client.engine.send(destination: "/q", body: [], at: 0)
        client.receive("ERROR\nmessage:denied\n\n\0")
        #expect(client.takeLog() == ["error denied", "failed error", "receipt 1 sessionEnded", "close"])
    }

    /// What RabbitMQ sends although no frame of the client has failed.
    @Test(arguments: [
        ("connection_forced", "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"),
        ("AMQP connection died", "Reason: killed"), ("AMQP channel died", "Reason: killed"),
        ("precondition_failed", "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out."),
        ("Subscription not found", "There is no current subscription with tag 'T_sub-1'."),
        ("Server cancelled unknown subscription", "Consumer tag <<\"T_sub-1\">> is not associated with one."),
        ("connection_forced", "Credential expired"),
    ])
    func `an error of RabbitMQ about no frame refuses none`(message: String, body: String) throws {
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        client.receive("ERROR\nmessage:\(message)\n\n\(body)\0")
        #expect(client.takeLog() == ["error \(message)", "failed error", "receipt 1 sessionEnded", "close"])
    }

    @Test func `another error of RabbitMQ refuses the only frame that waits`() throws {
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        client.receive("ERROR\nmessage:access_refused\n\n\0")
        #expect(client.takeLog() == ["error access_refused", "failed error", "receipt 1 refused", "close"])
    }

    @Test func errorForSomebodyUnknownBlamesNobody() throws {
        let client = try client(waits: 1)
        client.receive("ERROR\nreceipt-id:77\nmessage:no\n\n\0")
        #expect(client.takeLog() == ["error no", "failed error", "receipt 1 sessionEnded", "close"])
    }

    /// Why the only connection of the log failed.
    ///
    /// - Parameter end: what ends it. Default: the end of the stream.
    private func failure(
        _ client: ScriptedEngine,
        end: (ScriptedEngine) -> Void = { $0.engine.connectionClosed(at: $0.nanoseconds, into: &$0.effects) }
    ) throws -> STOMPConnectionFailure {
        var failures: [STOMPConnectionFailure] = []
        end(client)
        for event in client.effects.events {
            if case .connectionFailed(let failure) = event.kind { failures.append(failure) }
        }
        #expect(failures.count == 1)
        return try #require(failures.first)
    }

    private static let cutOff =
        " The end of the server's ERROR frame did not arrive: see the server's log for the rest."

    @Test(arguments: [
        ("ERROR\nmessage:queue full\n", "", "queue full"), ("ERROR\nmessage:queue fu", "", "queue fu"),
        ("ERROR\nmessage:queue full\nreceip", "", "queue full"),
        ("ERROR\nmessage:queue full\nreceipt-id:1\n", "", "queue full"),
        ("ERROR\nreceipt-id:1\nmessage:queue full\n\n", "Its limit", "queue full: Its limit"),
        ("ERROR\nmessage:queue full\n\nIts limit", " is 10", "queue full: Its limit is 10"),
        ("ERROR\nmessage:queue full\ncontent-length:900\n\n", "Its limit", "queue full: Its limit"),
        ("ERROR\nmessage:queue full\ncontent-length:10\n\nIts limit\0", "", "queue full: Its limit"),
        ("ERR", "OR\nserver:x\n\nqueue full", "queue full"), ("ERROR\nsubscription:s\nmessage:no", "", "no"),
    ])
    func `what can be read of an ERROR that the end of the stream cuts off is the error's text, and refuses no frame`(
        first: String, second: String, text: String
    ) throws {
        let client = try client(waits: 1)
        client.receive("\n" + first)
        if !second.isEmpty { client.receive(second) }
        let failure = try failure(client)
        #expect(failure.reason == .error && failure.error?.description == text && failure.error?.receiptID == nil)
        #expect(failure.message == "The server ended the session: \(text).\(Self.cutOff)")
        #expect(client.effects.completions.map(\.outcome) == [.sessionEnded])
    }

    @Test func `an ERROR that is cut off far behind its beginning has the text at its beginning`() throws {
        let client = try client(waits: 1)
        client.receive("ERROR\nmessage:\(String(repeating: "x", count: 2_000))\nlast:1\n\nbody")
        let failure = try failure(client)
        #expect(failure.reason == .error && failure.error?.message == String(repeating: "x", count: 1_010))
        #expect(client.effects.completions.map(\.outcome) == [.sessionEnded])
    }

    @Test func `an ERROR that is cut off after DISCONNECT is the end that was asked for`() throws {
        let client = try client(waits: 1)
        try client.engine.disconnect(at: 0)
        client.receive("ERROR\nreceipt-id:1\nmessage:no\n")
        client.close()
        #expect(client.takeLog() == ["disconnected", "receipt 1 disconnected"])
    }

    /// A server of another protocol, such as memcached, writes it after a line that it does not know.
    @Test func `the word ERROR without a header does not refuse the connection`() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\r\n")
        #expect(try failure(client).reason == .closedBeforeConnected)
    }

    @Test func `an ERROR that is cut off before CONNECTED refuses the connection`() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\nmessage:Bad CONNECT\ncontent-length:30\n\nAccess refused for user 'bob'")
        let failure = try failure(client)
        #expect(failure.reason == .credentialsRefused)
        #expect(
            failure.message.hasPrefix(
                "The server refused the connection: Bad CONNECT: Access refused for user 'bob'."))
    }

    /// The server has counted NUL too, or has left it out, and keeps the connection open.
    @Test(arguments: ["content-length:30\n\nAccess refused for user 'bob'\0", "\nAccess refused for user 'bob'"])
    func `an ERROR without an end refuses the connection when CONNECTED is late`(rest: String) throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\nmessage:Bad CONNECT\n\(rest)")
        let failure = try failure(client) { $0.engine.handleTimeout(at: $0.engine.nextDeadline, into: &$0.effects) }
        #expect(failure.reason == .credentialsRefused)
        #expect(failure.message.contains("Bad CONNECT: Access refused for user 'bob'."))
        #expect(failure.message.hasSuffix(Self.cutOff))
    }

    @Test func `the word ERROR without a header is not what is late`() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\r\n")
        client.advance(to: 60_000)
        #expect(client.takeLog() == ["failed connectTimeout", "close"])
    }

    enum Silence: CaseIterable { case acknowledgement, heartBeat }

    @Test(arguments: Silence.allCases)
    func `an ERROR without an end is reported when the server stays silent`(silence: Silence) throws {
        var configuration = STOMPEngineConfiguration()
        configuration.acknowledgementTimeout = silence == .acknowledgement ? 20_000_000_000 : .max
        let client = try ScriptedEngine.connected(heartBeat: "10000,10000", configuration: configuration) {
            $0.heartBeat = STOMPHeartBeat(outgoing: 0, incoming: silence == .heartBeat ? 10_000 : 0)
        }
        for token in 1...2 {
            try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token), at: 0)
        }
        client.receive("ERROR\nreceipt-id:2\nmessage:not allowed\ncontent-length:900\n\nyou may not")
        client.advance(to: 59_000)
        let lines = client.takeLog().filter { !$0.hasPrefix("unacknowledged") }
        let waits = ["receipt 1 sessionEnded", "receipt 2 sessionEnded"]
        #expect(lines == ["error not allowed", "failed error"] + waits + ["close"])
    }

    /// The rest may be there.
    @Test func `an ERROR of which a part may be unread does not end the connection`() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 20_000_000_000
        let client = try ScriptedEngine.connected(configuration: configuration)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        client.receive("ERROR\nmessage:not allowed\n")
        client.engine.setReadingPaused(true, at: 0)
        client.advance(to: 100_000)
        #expect(client.takeLog().isEmpty)
        client.receive("receipt-id:1\n\n\0")
        #expect(client.takeLog() == ["error not allowed", "failed error", "receipt 1 refused", "close"])
    }

    /// The server has counted characters instead of bytes, or a line end behind NUL, or does not escape.
    @Test(arguments: [
        "content-length:5\n\nIts limit\0", "content-length:10\n\nIts limit\0\n", "path:C:\\temp\n\nIts limit\0",
        "content-length:many\n\nIts limit\0",
    ])
    func `the text of an ERROR that breaks the protocol is reported, and refuses no frame`(
        rest: String
    ) throws {
        let client = try client(waits: 2)
        let text = "ERROR\nreceipt-id:2\nmessage:queue full\n\(rest)"
        let failure = try failure(client) { client in
            let bytes = Array("\n\(text)".utf8)
            _ = client.engine.receive(bytes.span.bytes, at: 0, into: &client.effects)
        }
        #expect(failure.reason == .error && failure.error?.description == "queue full: Its limit")
        let start = "The server ended the session: queue full: Its limit. The server's ERROR frame is invalid: "
        #expect(failure.message.hasPrefix(start))
        #expect(client.effects.completions.map(\.outcome) == [.sessionEnded, .sessionEnded])
    }

    @Test func `an ERROR that breaks the protocol before CONNECTED refuses the connection`() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\nmessage:Bad CONNECT\ncontent-length:5\n\nAccess refused for user 'bob'\0")
        #expect(client.takeLog() == ["error Bad CONNECT", "failed credentialsRefused", "close"])
    }

    /// Heart-beats count as a part of its body.
    @Test func `a connection that ends within a message names it, and how much of it is missing`() throws {
        let client = try ScriptedEngine.connected()
        client.receive("MESSAGE\ndestination:/queue/a\nmessage-id:1\nsubscription:1\ncontent-length:1000\n\nhello\0")
        for _ in 0..<4 { client.receive("\n") }
        let text =
            "A message from '/queue/a' has not ended: 10 of the 1000 bytes that its content-length announces have"
        #expect(try failure(client).message.contains(text))
    }

    @Test func `a message that has ended is not named`() throws {
        let client = try ScriptedEngine.connected()
        client.receive("MESSAGE\ndestination:/queue/a\nmessage-id:1\nsubscription:1\ncontent-length:10\n\n")
        client.receive("hello")
        client.receive("hello\0")
        #expect(try !failure(client).message.contains("/queue/a"))
    }

    /// RabbitMQ sends it when a queue is deleted, or the node of the queue goes down.
    private static let cancelled =
        "ERROR\nmessage:Server cancelled subscription\nsubscription:s\ncontent-type:text/plain\n\nThe server has canceled.\0"

    @Test(arguments: [1, 2]) func `an error about a subscription refuses no other frame, and names its destination`(
        waits: Int
    ) throws {
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8")
        try client.engine.subscribe(id: "s", destination: "/queue/jobs", token: 7, at: 0)
        for token in 1...waits {
            try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token), at: 0)
        }
        let bytes = Array(Self.cancelled.utf8)
        _ = client.engine.receive(bytes.span.bytes, at: 0, into: &client.effects)
        #expect(client.effects.completions.map(\.outcome) == Array(repeating: .sessionEnded, count: waits))
        guard case .connectionFailed(let failure)? = client.effects.events.last?.kind else {
            Issue.record("the connection has not failed")
            return
        }
        #expect(failure.reason == .error)
        #expect(failure.message.contains("'/queue/jobs'") && failure.message.contains("Server cancelled subscription"))
    }

    @Test func `an error about a subscription whose SUBSCRIBE is unanswered refuses that, and no older frame`() throws {
        let client = try client(waits: 1)
        try client.engine.subscribe(id: "s", destination: "/queue/jobs", token: 7, receiptToken: 2, at: 0)
        client.receive(Self.cancelled)
        #expect(
            client.takeLog() == [
                "error Server cancelled subscription", "failed error", "receipt 2 refused", "receipt 1 sessionEnded",
                "close",
            ])
    }

    /// ActiveMQ escapes nothing in an ERROR before CONNECTED, so that the text of an exception may have several lines.
    @Test func `a line without a colon in an error continues the value before it`() throws {
        let client = try ScriptedEngine()
        client.open()
        let text = "ERROR\nmessage:LDAP says\nUser name [ann] or password is invalid.\r\n[code 49]\nlast:x\n\nbody\0"
        let bytes = Array(text.utf8)
        _ = client.engine.receive(bytes.span.bytes, at: 0, into: &client.effects)
        guard case .errorReceived(let error)? = client.effects.events.first?.kind else {
            Issue.record("no error")
            return
        }
        #expect(error.message == "LDAP says User name [ann] or password is invalid. [code 49]")
        #expect(error.headers["last"] == "x" && error.detail == "body")
        guard case .connectionFailed(let failure)? = client.effects.events.last?.kind else {
            Issue.record("the connection has not failed")
            return
        }
        #expect(failure.reason == .credentialsRefused)
    }

    @Test(arguments: [
        "ERROR\nno colon\nmessage:x\n\n\0", "ERROR\nmessage:x\nreceipt-id:1\nno colon\n\n\0",
        "CONNECTED\nversion:1.2\nno colon\n\n\0",
    ])
    func `other lines without a colon are refused`(frame: String) throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive(frame)
        #expect(client.takeLog().first == "failed violation(malformedHeader)")
    }

    @Test func `lines without a colon count as headers`() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.limits.maximumHeaders = 10
        let client = try ScriptedEngine.connected(configuration: configuration)
        client.receive("ERROR\nmessage:x\n" + String(repeating: "more\n", count: 10) + "\n\0")
        #expect(client.takeLog().first == "failed violation(limitExceeded)")
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

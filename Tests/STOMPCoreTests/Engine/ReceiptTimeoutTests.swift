import STOMPCore
import TestSupport
import Testing

/// A server that sends no RECEIPT. Times are milliseconds.
@Suite(.heavy) struct ReceiptTimeoutTests {
    private func connected(_ change: (inout STOMPEngineConfiguration) -> Void = { _ in }) throws -> ScriptedEngine {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 5_000_000_000
        change(&configuration)
        return try ScriptedEngine.connected(configuration: configuration)
    }

    private func send(_ client: ScriptedEngine, _ token: UInt64, to destination: String = "/q") throws {
        try client.engine.send(destination: destination, body: [], receiptToken: token, at: client.nanoseconds)
    }

    @Test func theConnectionEndsAfterThirtySecondsWithoutAReceiptAndNamesTheOldest() throws {
        let client = try connected()
        client.advance(to: 100_000)
        try send(client, 1)
        client.advance(to: 120_000)
        try send(client, 2)
        client.advance(to: 129_999)
        #expect(client.takeLog() == ["receipt 1 timedOut", "receipt 2 timedOut"])
        #expect(client.engine.phase == .connected)
        client.advance(to: 130_000)
        #expect(client.engine.phase == .closing)
        #expect(client.takeLog() == ["unacknowledged 1 30000", "failed acknowledgementTimeout", "close"])
    }

    @Test func aCallerThatWaitsLongerGetsTheEndOfTheConnection() throws {
        let client = try connected { $0.receiptTimeout = 60_000_000_000 }
        try send(client, 1)
        client.advance(to: 30_000)
        #expect(client.takeLog().first { $0.hasPrefix("receipt") } == "receipt 1 connectionLost")
    }

    @Test func anyReceiptIsProgressAlsoOneThatNobodyWaitsForAnyLonger() throws {
        let client = try connected()
        try send(client, 1)
        try send(client, 2)
        client.advance(to: 29_000)
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        client.advance(to: 300_000)
        #expect(client.engine.phase == .connected)
        try send(client, 3)
        client.advance(to: 329_999)
        #expect(client.engine.phase == .connected)
        client.advance(to: 330_000)
        #expect(client.engine.phase == .closing)
    }

    @Test func bytesThatThePeersSystemAcknowledgesAreProgress() throws {
        let client = try connected()
        try send(client, 1)
        var now: Int64 = 0
        func pass(_ seconds: ClosedRange<Int>, acknowledged: (Int) -> Int) {
            for second in seconds {
                now = Int64(second) * 1_000_000_000
                client.engine.handleTimeout(
                    at: now, progress: OutputProgress(total: 100_000, acknowledged: acknowledged(second)),
                    into: &client.effects)
            }
        }
        pass(1...100) { $0 * 1_000 }
        pass(101...129) { _ in 100_000 }
        #expect(client.engine.phase == .connected)
        pass(130...130) { _ in 100_000 }
        #expect(client.engine.phase == .closing)
    }

    @Test(arguments: [nil, "1000,0"])
    func `while nothing is read because of what waits, what the peer takes of it is progress`(heartBeat: String?) throws
    {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 5_000_000_000
        let client = try ScriptedEngine.connected(heartBeat: heartBeat, configuration: configuration) {
            $0.heartBeat = STOMPHeartBeat(outgoing: 0, incoming: 1_000)
        }
        try send(client, 1)
        func pass(_ seconds: ClosedRange<Int>, moved: (Int) -> Int) {
            for second in seconds {
                var progress = OutputProgress(total: 100_000, acknowledged: 0)
                progress.movedBytes = moved(second)
                client.engine.handleTimeout(
                    at: Int64(second) * 1_000_000_000, progress: progress, into: &client.effects)
            }
        }
        client.engine.setReadingHeldUp(true, at: 0)
        pass(1...100) { $0 }
        #expect(client.engine.phase == .connected)
        // The wait for a receipt begins when what waits is counted, every two seconds.
        let end = 100 + (heartBeat == nil ? 32 : 3)
        pass(101...(end - 1)) { _ in 100 }
        #expect(client.engine.phase == .connected)
        pass(end...end) { _ in 100 }
        #expect(client.engine.phase == .closing)
        guard case .connectionFailed(let failure) = client.effects.events.last?.kind else {
            Issue.record("no failure")
            return
        }
        #expect(failure.reason == (heartBeat == nil ? .acknowledgementTimeout : .heartBeatLost))
        #expect(failure.message.hasPrefix("The other end took none of the "))
    }

    /// A client that waits for the receipt of SEND, and receives a message of which a byte arrives each second.
    private func receivingSlowly(seconds: Int) throws -> ScriptedEngine {
        let client = try connected()
        try send(client, 1)
        client.receive("MESSAGE\ndestination:/q\nmessage-id:1\nsubscription:0\ncontent-length:100\n\n")
        for second in 1...seconds {
            client.receive("x")
            client.advance(to: Int64(second) * 1_000)
        }
        return client
    }

    @Test func aReceiptBehindAFrameThatArrivesSlowlyIsWaitedFor() throws {
        let client = try receivingSlowly(seconds: 90)
        #expect(client.takeLog().isEmpty)
        client.receive(String(repeating: "x", count: 10) + "\0RECEIPT\nreceipt-id:1\n\n\0")
        #expect(client.takeLog().last == "receipt 1 received")
        client.advance(to: 300_000)
        #expect(client.engine.phase == .connected)
    }

    @Test func aFrameThatStallsHidesNoReceipt() throws {
        let client = try receivingSlowly(seconds: 20)
        client.advance(to: 24_000)
        #expect(client.takeLog() == ["receipt 1 timedOut"])
        client.advance(to: 30_000)
        #expect(client.takeLog() == ["unacknowledged 1 30000", "failed acknowledgementTimeout", "close"])
    }

    @Test func theTimeDoublesUntilAReceiptArrives() throws {
        let client = try connected()
        var start: Int64 = 0
        for seconds: Int64 in [30, 60, 120] {
            try send(client, 1)
            client.advance(to: start + seconds * 1_000 - 1)
            #expect(client.engine.phase == .connected)
            client.advance(to: start + seconds * 1_000)
            #expect(client.engine.phase == .closing)
            start += seconds * 1_000
            client.close()
            client.connect()
        }
        client.advance(to: start)
        try send(client, 1)
        let id = client.takeOutput().split(separator: "receipt:").last?.prefix { $0 != "\n" }
        client.receive("RECEIPT\nreceipt-id:\(id ?? "")\n\n\0")
        try send(client, 2)
        client.advance(to: start + 30_000)
        #expect(client.engine.phase == .closing)
    }

    @Test func anOpenTransactionAwaitsNothingBecauseBrokersWithholdItsReceipts() throws {
        let client = try connected()
        let transaction = try client.engine.begin(at: 0)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, transaction: transaction, at: 0)
        client.advance(to: 600_000)
        #expect(client.engine.phase == .connected)
        try client.engine.commit(transaction, receiptToken: 2, at: client.nanoseconds)
        client.advance(to: 629_999)
        #expect(client.engine.phase == .connected)
        client.advance(to: 630_000)
        #expect(client.engine.phase == .closing)
    }

    @Test func whatAnAbortedTransactionOwesIsAwaitedFromItsEnd() throws {
        let client = try connected()
        let transaction = try client.engine.begin(at: 0)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, transaction: transaction, at: 0)
        client.advance(to: 600_000)
        try client.engine.abort(transaction, at: client.nanoseconds)
        client.advance(to: 629_999)
        #expect(client.engine.phase == .connected)
        client.advance(to: 630_000)
        #expect(client.engine.phase == .closing)
    }

    /// RabbitMQ forgets the frames of a transaction that is aborted, and never sends their receipts.
    @Test(arguments: [false, true])
    func `a broker that holds frames back owes nothing for those of an aborted transaction`(isLate: Bool) throws {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 5_000_000_000
        configuration.profile = .rabbitMQ
        let client = try ScriptedEngine.connected(configuration: configuration)
        let transaction = try client.engine.begin(at: 0)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, transaction: transaction, at: 0)
        try client.engine.send(destination: "/q", body: [], receiptToken: 2, transaction: transaction, at: 0)
        try client.engine.send(destination: "/q", body: [], transaction: transaction, at: 0)
        if isLate { client.advance(to: 6_000) }
        try client.engine.abort(transaction, receiptToken: 3, at: client.nanoseconds)
        #expect(client.engine.pendingReceipts == 1)
        client.advance(to: client.now)
        #expect(
            client.takeLog().filter { $0.hasPrefix("receipt") }
                == (isLate
                    ? ["receipt 1 timedOut", "receipt 2 timedOut"] : ["receipt 1 aborted", "receipt 2 aborted"]))
        client.receive("RECEIPT\nreceipt-id:3\n\n\0")
        client.advance(to: 600_000)
        #expect(client.engine.phase == .connected)
        // A receipt that it does owe is missed nevertheless.
        try send(client, 4)
        client.advance(to: 630_000)
        #expect(client.engine.phase == .closing)
    }

    /// The time of the caller's own receipt is over before COMMIT is written.
    @Test(arguments: [false, true])
    func `a COMMIT is complete when the receipt of its frame arrives late`(comesFirst: Bool) throws {
        let client = try connected { $0.profile = .rabbitMQ }
        let transaction = try client.engine.begin(at: 0)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, transaction: transaction, at: 0)
        client.advance(to: 6_000)
        #expect(client.takeLog() == ["receipt 1 timedOut"])
        try client.engine.commit(transaction, receiptToken: 2, at: client.nanoseconds)
        let answers = ["RECEIPT\nreceipt-id:2\n\n\0", "RECEIPT\nreceipt-id:1\n\n\0"]
        client.receive((comesFirst ? answers.reversed() : answers).joined())
        #expect(client.takeLog() == ["receipt 2 received"])
        client.advance(to: 600_000)
        #expect(client.engine.phase == .connected)
    }

    @Test func `the receipt that is missing longest is named as its frame named it`() throws {
        let client = try connected()
        try client.engine.subscribe(
            id: "1", destination: "/q", headers: ["receipt": "order-17"], token: 1, receiptToken: 1, at: 0)
        client.advance(to: 30_000)
        #expect(
            client.takeLog() == [
                "receipt 1 timedOut", "unacknowledged order-17 30000", "failed acknowledgementTimeout", "close",
            ])
    }

    @Test func `an id of the user's own whose wait is over may be used again`() throws {
        let client = try connected()
        for token: UInt64 in 1...3 {
            try client.engine.subscribe(
                id: "\(token)", destination: "/q", headers: ["receipt": "order-17"], token: token, receiptToken: token,
                at: client.nanoseconds)
            client.advance(to: Int64(token) * 6_000)
            #expect(client.takeLog() == ["receipt \(token) timedOut"])
        }
        try client.engine.subscribe(
            id: "4", destination: "/q", headers: ["receipt": "order-17"], token: 4, receiptToken: 4,
            at: client.nanoseconds)
        client.receive("RECEIPT\nreceipt-id:order-17\n\n\0")
        #expect(client.takeLog() == ["receipt 4 received"])
        #expect(client.engine.pendingReceipts == 0)
    }

    /// RabbitMQ may confirm COMMIT before the messages of its transaction.
    @Test(arguments: [5, 60], [false, true])
    func `a frame whose receipt is missing is named, and not its COMMIT, whose receipt arrived`(
        receiptSeconds: Int64, isAwaited: Bool
    ) throws {
        let client = try connected {
            $0.profile = .rabbitMQ
            $0.receiptTimeout = receiptSeconds * 1_000_000_000
        }
        let transaction = try client.engine.begin(at: 0)
        try client.engine.send(
            destination: "/q", body: [], receiptToken: isAwaited ? 1 : nil, transaction: transaction, at: 0)
        try client.engine.commit(transaction, receiptToken: 2, at: 0)
        let commit = client.takeOutput().split(separator: "receipt:").last?.prefix { $0 != "\n" }
        client.receive("RECEIPT\nreceipt-id:\(commit ?? "")\n\n\0")
        client.advance(to: 30_000)
        #expect(client.takeLog().contains("unacknowledged \(isAwaited ? "1" : "send-1") 30000"))
    }

    @Test func `waits for frames of an aborted transaction end when the connection does`() throws {
        let client = try connected { $0.profile = .rabbitMQ }
        let transaction = try client.engine.begin(at: 0)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, transaction: transaction, at: 0)
        try client.engine.abort(transaction, at: 0)
        client.close()
        #expect(client.takeLog().first { $0.hasPrefix("receipt") } == "receipt 1 aborted")
    }

    @Test func withoutALimitOrWhileWeDoNotReadNothingEndsIt() throws {
        let patient = try connected { $0.acknowledgementTimeout = .max }
        try send(patient, 1)
        patient.advance(to: 1_000_000)
        #expect(patient.engine.phase == .connected)
        let paused = try connected()
        try send(paused, 1)
        paused.engine.setReadingPaused(true, at: 0)
        paused.advance(to: 1_000_000)
        #expect(paused.engine.phase == .connected)
        paused.engine.setReadingPaused(false, at: paused.nanoseconds)
        paused.advance(to: 1_030_000)
        #expect(paused.engine.phase == .closing)
    }
}

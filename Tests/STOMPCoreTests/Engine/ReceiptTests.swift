import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct ReceiptTests {
    private func receipt(_ id: some CustomStringConvertible) -> String { "RECEIPT\nreceipt-id:\(id)\n\n\0\n" }

    @Test func receiptsAreMatchedByIdNotByOrder() throws {
        let client = try ScriptedEngine.connected()
        for token in 1...3 {
            try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token * 10), at: 0)
        }
        #expect(client.takeOutput().contains("SEND\ndestination:/q\nreceipt:2\n\n\0"))
        client.receive(receipt(3) + receipt(1))
        #expect(client.takeLog() == ["receipt 30 received", "receipt 10 received"])
        client.receive(receipt(2) + receipt(2) + receipt(99) + receipt("x"))
        #expect(client.takeLog() == ["receipt 20 received"])
        #expect(client.engine.pendingReceipts == 0)
    }

    @Test func repeatedReceiptBehindAWaitingOneEndsNothing() throws {
        let client = try ScriptedEngine.connected()
        for token in 1...3 { try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token), at: 0) }
        client.receive(receipt(2) + receipt(2))
        #expect(client.takeLog() == ["receipt 2 received"])
        #expect(client.engine.pendingReceipts == 2)
    }

    @Test func firstOfRepeatedReceiptIDsCounts() throws {
        let client = try ScriptedEngine.connected()
        for token in 1...2 { try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token), at: 0) }
        client.receive("RECEIPT\nreceipt-id:2\nreceipt-id:1\n\n\0")
        #expect(client.takeLog() == ["receipt 2 received"])
    }

    @Test func receiptsInARowEndTheSameWaitsHoweverTheyAreWrittenAndCut() throws {
        // The first form is read without a look at headers in general, the others are not.
        let forms: [(UInt64) -> String] = [
            { "RECEIPT\nreceipt-id:\($0)\n\n\0" }, { "RECEIPT\nreceipt-id:\($0)\n\n\0\n\r\n\n" },
            { "RECEIPT\r\nreceipt-id:\($0)\r\n\r\n\0\r\n" }, { "RECEIPT\nreceipt-id:\($0)\nextra:1\n\n\0" },
            { "RECEIPT\nreceipt-id:000\($0)\n\n\0" },
            { "RECEIPT\ncontent-length:0\nreceipt-id:\($0)\n\n\0" },
        ]
        var generator = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(20_000, least: 100) {
            let client = try ScriptedEngine.connected()
            let count = UInt64.random(in: 1...40, using: &generator)
            for token in 1...count { try client.engine.send(destination: "/q", body: [], receiptToken: token, at: 0) }
            var ids = Array(1...count)
            if round % 2 == 0 { ids.shuffle(using: &generator) }
            let mixes = round % 3 == 0
            var bytes = Array(
                ids.map { (mixes ? forms.randomElement(using: &generator)! : forms[0])($0) }.joined().utf8)
            while !bytes.isEmpty {
                let part = bytes.prefix(Int.random(in: 1...200, using: &generator))
                client.receive(Array(part))
                bytes.removeFirst(part.count)
            }
            #expect(client.takeLog() == ids.map { "receipt \($0) received" }, "seed \(Campaign.seed), round \(round)")
            #expect(client.engine.pendingReceipts == 0)
        }
    }

    @Test(arguments: [
        "12345678901234567890", "99999999999999999999999", "-1", "", "1x", " 1", "18446744073709551617",
    ])
    func whatIsNoNumberOfOursEndsNothing(id: String) throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(destination: "/q", body: [], receiptToken: 7, at: 0)
        client.receive(receipt(id) + receipt(id))
        #expect(client.takeLog().isEmpty && client.engine.pendingReceipts == 1)
        client.receive(receipt(1))
        #expect(client.takeLog() == ["receipt 7 received"])
    }

    @Test func thousandsAreInFlightAndEachEndsOnce() throws {
        var generator = SeededGenerator(seed: Campaign.seed)
        let client = try ScriptedEngine.connected()
        var waiting: [UInt64] = []
        var seen: Set<UInt64> = []
        let count: UInt64 = 5_000
        for token in 1...count {
            try client.engine.send(destination: "/q", body: [], receiptToken: token, at: 0)
            waiting.append(token)
        }
        #expect(client.engine.pendingReceipts == Int(count))
        waiting.shuffle(using: &generator)
        for id in waiting { client.receive(receipt(id)) }
        for line in client.takeLog() { seen.insert(UInt64(line.split(separator: " ")[1])!) }
        #expect(seen.count == Int(count) && client.engine.pendingReceipts == 0)
    }

    @Test func receiptsTimeOutOldestFirstAndALateOneIsPassedOver() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 1_000_000_000
        let client = try ScriptedEngine.connected(configuration: configuration)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        client.advance(to: 500)
        try client.engine.send(destination: "/q", body: [], receiptToken: 2, at: client.nanoseconds)
        #expect(client.deadline == 1_000)
        client.advance(to: 1_000)
        #expect(client.takeLog() == ["receipt 1 timedOut"])
        #expect(client.deadline == 1_500 && client.engine.phase == .connected)
        client.receive(receipt(1))
        #expect(client.takeLog() == [])
        client.receive(receipt(2))
        #expect(client.takeLog() == ["receipt 2 received"])
        #expect(client.deadline == nil)
    }

    @Test func usersMayChooseTheReceiptIDOfSubscribe() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(
            id: "1", destination: "/queue/a", headers: ["receipt": "dev:1-/queue/a"], token: 1, receiptToken: 7, at: 0)
        #expect(
            client.takeOutput() == "SUBSCRIBE\nid:1\ndestination:/queue/a\nack:auto\nreceipt:dev\\c1-/queue/a\n\n\0")
        try client.engine.send(destination: "/q", body: [], receiptToken: 8, at: 0)
        client.receive("RECEIPT\nreceipt-id:dev\\c1-/queue/a\n\n\0" + receipt(2))
        #expect(client.takeLog() == ["receipt 7 received", "receipt 8 received"])
    }

    @Test func chosenReceiptIDsMustBeFreeAndNotLookLikeOurs() throws {
        let client = try ScriptedEngine.connected()
        func subscribe(_ receipt: String, _ token: UInt64?) -> STOMPUsageError.Code? {
            client.misuse { e throws(STOMPUsageError) in
                try e.engine.subscribe(
                    id: "\(token ?? 0)", destination: "/q", headers: ["receipt": receipt], token: 1,
                    receiptToken: token,
                    at: 0)
            }
        }
        #expect(subscribe("a", 1) == nil)
        for id in ["a", "17", "", "send-", "send-17"] { #expect(subscribe(id, 2) == .invalidReceiptID) }
        #expect(subscribe("b", nil) == .reservedHeader)
        client.receive(receipt("a"))
        #expect(subscribe("a", 2) == nil)
        #expect(subscribe("send-17-a", 3) == nil)
    }

    @Test func `only SUBSCRIBE takes a receipt id of the user's own, and others say how to wait for one`() throws {
        let client = try ScriptedEngine.connected()
        let transaction = try client.engine.begin(at: 0)
        let own: STOMPHeaders = ["receipt": "order-17"]
        func expectRefusal(_ operation: (inout STOMPEngine) throws(STOMPUsageError) -> Void) {
            let error = #expect(throws: STOMPUsageError.self) { try operation(&client.engine) }
            #expect(error?.code == .reservedHeader)
            #expect(error?.message.contains("pass a receipt token") == true)
        }
        expectRefusal { e throws(STOMPUsageError) in
            try e.send(destination: "/q", headers: own, body: [], receiptToken: 1, at: 0)
        }
        expectRefusal { e throws(STOMPUsageError) in _ = try e.begin(headers: own, receiptToken: 1, at: 0) }
        expectRefusal { e throws(STOMPUsageError) in
            try e.commit(transaction, headers: own, receiptToken: 1, at: 0)
        }
        expectRefusal { e throws(STOMPUsageError) in try e.abort(transaction, headers: own, receiptToken: 1, at: 0) }
        expectRefusal { e throws(STOMPUsageError) in try e.disconnect(headers: own, at: 0) }
        #expect(client.engine.pendingReceipts == 0)
    }

    @Test func waitsAreBounded() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.maximumReceipts = 3
        let client = try ScriptedEngine.connected(configuration: configuration)
        func send() -> STOMPUsageError.Code? {
            client.misuse { e throws(STOMPUsageError) in
                try e.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
            }
        }
        for _ in 0..<3 { #expect(send() == nil) }
        #expect(send() == .tooManyReceipts)
        client.receive(receipt(3))
        #expect(send() == nil)
        #expect(send() == .tooManyReceipts)
        // There are as many of these as the program makes subscriptions; without them it would lose some.
        try client.engine.subscribe(id: "1", destination: "/q", token: 1, receiptToken: 2, at: 0)
        _ = try client.engine.unsubscribe(id: "1", receiptToken: 3, at: 0)
    }

    @Test(arguments: [nil, "order-17"])
    func `a receipt that holds up all later ones is named`(ownID: String?) throws {
        var configuration = STOMPEngineConfiguration()
        configuration.maximumReceipts = 2
        let client = try ScriptedEngine.connected(configuration: configuration)
        let transaction = try client.engine.begin(at: 0)
        if let ownID {
            try client.engine.subscribe(
                id: "1", destination: "/q", headers: ["receipt": ownID], token: 1, receiptToken: 1, at: 0)
        } else {
            try client.engine.send(destination: "/q", body: [], receiptToken: 1, transaction: transaction, at: 0)
        }
        for number: UInt64 in 2...32 {
            try client.engine.send(destination: "/q", body: [], receiptToken: number, at: 0)
            client.receive(receipt(number))
        }
        let error = #expect(throws: STOMPUsageError.self) {
            try client.engine.send(destination: "/q", body: [], receiptToken: 33, at: 0)
        }
        #expect(error?.code == .tooManyReceipts)
        #expect(error?.message.hasPrefix("The receipt '\(ownID ?? "1")' is still pending after 31 later ones") == true)
        // The end of its transaction may be what it waits for.
        try client.engine.commit(transaction, receiptToken: 33, at: 0)
        client.receive(receipt(ownID ?? "1"))
        try client.engine.send(destination: "/q", body: [], receiptToken: 34, at: 0)
    }

    @Test func `the largest number stands for no bound`() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.maximumReceipts = .max
        let client = try ScriptedEngine.connected(configuration: configuration)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        #expect(client.takeOutput().contains("receipt:1\n"))
    }

    @Test func endOfTheConnectionEndsAllWaits() throws {
        let client = try ScriptedEngine.connected()
        for token in 1...3 { try client.engine.send(destination: "/q", body: [], receiptToken: UInt64(token), at: 0) }
        client.close()
        #expect(
            client.takeLog() == [
                "failed closed", "receipt 1 connectionLost", "receipt 2 connectionLost", "receipt 3 connectionLost",
            ])
        #expect(client.deadline == nil)
    }

    @Test func receiptOfAnEarlierConnectionNeverFits() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        client.close()
        client.connect()
        try client.engine.send(destination: "/q", body: [], receiptToken: 2, at: 0)
        #expect(client.takeOutput().contains("receipt:2\n"))
        client.receive(receipt(1))
        #expect(client.takeLog() == [])
    }

    @Test func paddedReceiptOfOneDotZeroIsRead() throws {
        let client = try ScriptedEngine.connected(.v10)
        try client.engine.send(destination: "/q", body: [], receiptToken: 5, at: 0)
        client.receive(receipt(" 1 "))
        #expect(client.takeLog() == ["receipt 5 received"])
    }
}

import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct TransactionTests {
    @Test func framesOfATransactionCarryItsName() throws {
        let client = try ScriptedEngine.connected()
        let first = try client.engine.begin(receiptToken: 1, at: 0)
        let second = try client.engine.begin(at: 0)
        try client.engine.send(destination: "/q", body: [], transaction: first, at: 0)
        try client.engine.send(destination: "/q", body: [], at: 0)
        try client.engine.commit(first, at: 0)
        try client.engine.abort(second, at: 0)
        #expect(
            client.takeOutput()
                == "BEGIN\ntransaction:tx-1-1\nreceipt:1\n\n\0BEGIN\ntransaction:tx-1-2\n\n\0"
                + "SEND\ndestination:/q\ntransaction:tx-1-1\n\n\0SEND\ndestination:/q\n\n\0"
                + "COMMIT\ntransaction:tx-1-1\n\n\0ABORT\ntransaction:tx-1-2\n\n\0")
    }

    @Test func `a transaction has the name that its user gave it, escaped, in every frame`() throws {
        let client = try ScriptedEngine.connected()
        let named = try client.engine.begin(named: "order: 17", at: 0)
        try client.engine.send(destination: "/q", body: [], transaction: named, at: 0)
        try client.engine.commit(named, at: 0)
        let name = "transaction:order\\c 17\n"
        #expect(
            client.takeOutput()
                == "BEGIN\n\(name)\n\0SEND\ndestination:/q\n\(name)\n\0COMMIT\n\(name)\n\0")
        let open = try client.engine.begin(named: "order", at: 0)
        for name in ["order", "", "tx-1-3"] {
            #expect(
                client.misuse { e throws(STOMPUsageError) in _ = try e.engine.begin(named: name, at: 0) }
                    == .invalidOption)
        }
        try client.engine.abort(open, at: 0)
        _ = try client.engine.begin(named: "order", at: 0)
    }

    @Test func `the name of a transaction may be long, in every frame`() throws {
        let client = try ScriptedEngine.connected()
        let name = String(repeating: "a:", count: 500)
        let named = try client.engine.begin(named: name, at: 0)
        let message = Array("subscription:1\nmessage-id:2\nack:3\n".utf8)
        try client.engine.subscribe(id: "1", destination: "/q", acknowledgement: .clientIndividual, token: 1, at: 0)
        _ = client.takeOutput()
        try client.engine.send(
            destination: "/q", body: Array("body".utf8), receiptToken: 7, transaction: named, at: 0)
        try client.engine.ack(
            messageHeaders: message.span.bytes, connection: client.engine.connection, transaction: named,
            receiptToken: 8, at: 0)
        let line = "transaction:\(String(repeating: "a\\c", count: 500))\n"
        #expect(client.takeOutput().split(separator: line, omittingEmptySubsequences: false).count == 3)
    }

    @Test func transactionEndsOnce() throws {
        let client = try ScriptedEngine.connected()
        let transaction = try client.engine.begin(at: 0)
        try client.engine.commit(transaction, at: 0)
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.commit(transaction, at: 0) } == .transactionEnded)
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.abort(transaction, at: 0) } == .transactionEnded)
        #expect(
            client.misuse { e throws(STOMPUsageError) in
                try e.engine.send(destination: "/q", body: [], transaction: transaction, at: 0)
            } == .transactionEnded)
    }

    @Test func transactionDiesWithItsConnection() throws {
        let client = try ScriptedEngine.connected()
        let transaction = try client.engine.begin(at: 0)
        client.close()
        client.connect()
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.commit(transaction, at: 0) } == .transactionEnded)
        #expect(try client.engine.begin(at: 0).description == "tx-2-2")
    }
}

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

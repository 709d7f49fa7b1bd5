import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct AcknowledgementTests {
    private let headers = Array("subscription:s\\c1\nmessage-id:m\\c2\nack:a\\c3\ndestination:/q\n".utf8)

    private func client(_ version: STOMPVersion, _ mode: STOMPAckMode = .client) throws -> ScriptedEngine {
        let client = try ScriptedEngine.connected(version)
        try client.engine.subscribe(
            id: version == .v10 ? "s\\c1" : "s:1", destination: "/q", acknowledgement: mode, token: 1, at: 0)
        _ = client.takeOutput()
        return client
    }

    private func ack(
        _ client: ScriptedEngine, _ headers: [UInt8], nack: Bool = false, connection: UInt32 = 1
    ) -> STOMPUsageError.Code? {
        client.misuse { e throws(STOMPUsageError) in
            if nack {
                try e.engine.nack(messageHeaders: headers.span.bytes, connection: connection, at: 0)
            } else {
                try e.engine.ack(messageHeaders: headers.span.bytes, connection: connection, at: 0)
            }
        }
    }

    @Test(arguments: [
        (STOMPVersion.v10, "ACK\nmessage-id:m\\c2\n\n\0"),
        (.v11, "ACK\nmessage-id:m\\c2\nsubscription:s\\c1\n\n\0"),
        (.v12, "ACK\nid:a\\c3\n\n\0"),
    ])
    func ackNamesTheMessageByVersionByteByByte(_ version: STOMPVersion, _ expected: String) throws {
        let client = try client(version)
        #expect(ack(client, headers) == nil)
        #expect(client.takeOutput() == expected)
    }

    @Test func nackExistsFromOneDotOneOn() throws {
        #expect(ack(try client(.v10), headers, nack: true) == .unsupportedByVersion)
        let client = try client(.v12, .clientIndividual)
        #expect(ack(client, headers, nack: true) == nil)
        #expect(client.takeOutput() == "NACK\nid:a\\c3\n\n\0")
    }

    @Test(arguments: [true, false])
    func neverAcknowledgesInAutoMode(nack: Bool) throws {
        #expect(ack(try client(.v12, .auto), headers, nack: nack) == .acknowledgingAutoSubscription)
    }

    @Test func messageOfAnEarlierConnectionIsStale() throws {
        let client = try client(.v12)
        client.close()
        client.connect()
        try client.engine.subscribe(id: "s:1", destination: "/q", acknowledgement: .client, token: 1, at: 0)
        #expect(ack(client, headers, connection: 1) == .staleMessage)
        #expect(ack(client, headers, connection: 2) == nil)
    }

    @Test func messageOfAGoneSubscriptionCannotBeAcknowledged() throws {
        let client = try client(.v12)
        try client.engine.unsubscribe(id: "s:1", at: 0)
        #expect(ack(client, headers) == .unknownSubscription)
    }

    @Test func messageThatNamesNothingCannotBeAcknowledged() throws {
        #expect(ack(try client(.v12), Array("subscription:s\\c1\nmessage-id:1\n".utf8)) == .notAcknowledgeable)
        #expect(ack(try client(.v11), Array("message-id:1\n".utf8)) == .notAcknowledgeable)
        #expect(ack(try client(.v10), Array("subscription:s\\c1\n".utf8)) == .notAcknowledgeable)
        #expect(ack(try client(.v10), Array("message-id:1\n".utf8)) == nil)
    }

    @Test func ackTakesATransactionHeadersAndAReceipt() throws {
        let client = try client(.v12)
        let transaction = try client.engine.begin(at: 0)
        _ = client.takeOutput()
        try client.engine.nack(
            messageHeaders: headers.span.bytes, connection: 1, headers: ["requeue": "false"], transaction: transaction,
            receiptToken: 5, at: 0)
        #expect(client.takeOutput() == "NACK\nid:a\\c3\ntransaction:tx-1-1\nreceipt:1\nrequeue:false\n\n\0")
    }
}

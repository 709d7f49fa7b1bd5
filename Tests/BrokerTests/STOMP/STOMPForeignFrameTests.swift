import STOMP
import TestSupport
import Testing

/// What brokers answer to frames that this client never writes: why it refuses them before they are sent, and why an
/// ERROR or the mere end has to do as an answer.
@Suite(.serialized, .requires(anyOf: .activeMQ, .rabbitMQ), .turns)
struct STOMPForeignFrameTests {
    /// What comes back for a frame that asks for a receipt, and whether the connection can be used afterwards.
    struct Answer: Equatable, CustomTestStringConvertible {
        var error = false
        /// ERROR names the receipt.
        var namesReceipt = false
        var receipt = false
        var staysOpen = false

        static let accepted = Answer(receipt: true, staysOpen: true)
        static let refused = Answer(error: true, staysOpen: true)
        static let refusedByName = Answer(error: true, namesReceipt: true, staysOpen: true)
        static let closed = Answer()
        static let closedWithError = Answer(error: true)
        static let closedWithErrorByName = Answer(error: true, namesReceipt: true)

        var testDescription: String { "\(self)" }
    }

    struct Oddity: CustomTestStringConvertible {
        var testDescription: String
        /// Without its receipt.
        var frame: String
        var rabbitMQ: Answer
        var activeMQ: Answer

        init(_ name: String, _ frame: String, rabbitMQ: Answer, activeMQ: Answer) {
            testDescription = name
            self.frame = frame
            self.rabbitMQ = rabbitMQ
            self.activeMQ = activeMQ
        }
    }

    static let oddities = [
        Oddity(
            "undefined escape", "SEND\nreceipt:odd\ndestination:/topic/odd\na:\\t\n\n\0",
            rabbitMQ: .closed, activeMQ: .accepted),
        Oddity(
            "content-length too short", "SEND\nreceipt:odd\ndestination:/topic/odd\ncontent-length:1\n\nabc\0",
            rabbitMQ: .closed, activeMQ: .closedWithError),
        Oddity(
            "content-length that is none", "SEND\nreceipt:odd\ndestination:/topic/odd\ncontent-length:x\n\nabc\0",
            rabbitMQ: .closed, activeMQ: .closedWithError),
        Oddity(
            "second CONNECT", "CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0",
            rabbitMQ: .closed, activeMQ: .refused),
        Oddity(
            "unknown command", "HELLO\nreceipt:odd\n\n\0", rabbitMQ: .refused, activeMQ: .closedWithErrorByName),
        Oddity(
            "unknown transaction", "COMMIT\nreceipt:odd\ntransaction:none\n\n\0",
            rabbitMQ: .refused, activeMQ: .refusedByName),
        Oddity(
            "transaction begun twice", "BEGIN\ntransaction:t\n\n\0BEGIN\nreceipt:odd\ntransaction:t\n\n\0",
            rabbitMQ: .accepted, activeMQ: .refusedByName),
        Oddity("unknown message", "ACK\nreceipt:odd\nid:none\n\n\0", rabbitMQ: .refused, activeMQ: .refusedByName),
        Oddity("no destination", "SEND\nreceipt:odd\n\nx\0", rabbitMQ: .refused, activeMQ: .refusedByName),
        Oddity(
            "no exchange of that name", "SEND\nreceipt:odd\ndestination:/exchange/missing/x\n\n\0",
            rabbitMQ: .closedWithError, activeMQ: .accepted),
        Oddity(
            "subscription without an id", "SUBSCRIBE\nreceipt:odd\ndestination:/topic/odd\n\n\0",
            rabbitMQ: .accepted, activeMQ: .refusedByName),
        Oddity(
            "subscription id used twice",
            "SUBSCRIBE\nid:1\ndestination:/topic/a\n\n\0SUBSCRIBE\nreceipt:odd\nid:1\ndestination:/topic/b\n\n\0",
            rabbitMQ: Answer(error: true, receipt: true), activeMQ: .accepted),
        Oddity(
            "unknown ack mode", "SUBSCRIBE\nreceipt:odd\nid:1\nack:odd\ndestination:/topic/odd\n\n\0",
            rabbitMQ: .refused, activeMQ: .accepted),
    ]

    @Test(arguments: STOMPBroker.usable, oddities)
    func oddFrameIsAnsweredInTheBrokersWay(broker: STOMPBroker, oddity: Oddity) async throws {
        let expected = broker == .rabbitMQ ? oddity.rabbitMQ : oddity.activeMQ
        let connection = try await broker.rawConnection()
        // What follows in order shows that the answer is complete. A broker that closes must find nothing unread, or the
        // system throws its last words away.
        let after = expected.staysOpen ? "SEND\ndestination:/topic/nobody\nreceipt:after\n\n\0" : ""
        try await connection.send(oddity.frame + after)
        let bytes = try await connection.receive { bytes in
            String(decoding: bytes, as: UTF8.self).contains("receipt-id:after\n")
        }
        var answer = Answer()
        for part in bytes.split(separator: 0) {
            let frame = String(decoding: part.drop { $0 == UInt8(ascii: "\n") }, as: UTF8.self)
            if frame.hasPrefix("ERROR\n") {
                answer.error = true
                if frame.contains("\nreceipt-id:odd\n") { answer.namesReceipt = true }
                // Each kind of ERROR has its oddity, and neither is in the way.
                #expect(frame.contains("\nversion:1.0,1.1,1.2\n") == (broker == .rabbitMQ))
                #expect(frame.contains("\tat org.apache.activemq") == (broker == .activeMQ))
            }
            if frame.hasPrefix("RECEIPT\nreceipt-id:odd\n") { answer.receipt = true }
            if frame.hasPrefix("RECEIPT\nreceipt-id:after\n") { answer.staysOpen = true }
        }
        #expect(answer == expected)
    }

    @Test(arguments: STOMPBroker.usable)
    func framesBeforeConnectedAreTaken(broker: STOMPBroker) async throws {
        let connection = try await RawConnection.open(port: broker.port())
        try await connection.send(
            STOMPBroker.rawConnect + "SEND\ndestination:/topic/nobody\nreceipt:early\n\n\0")
        let bytes = try await connection.receive { bytes in
            String(decoding: bytes, as: UTF8.self).hasSuffix("receipt-id:early\n\n\0\n")
        }
        let frames = String(decoding: bytes, as: UTF8.self)
        #expect(frames.hasPrefix("CONNECTED\n"))
        // Both write a line end after each frame.
        #expect(frames.contains("\n\0\nRECEIPT\n"), "\(frames)")
    }

    @Test(arguments: STOMPBroker.usable)
    func clientRefusesToWriteThem(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        for name in ["content-length", "destination", "transaction", "message-id"] {
            await expectError(.invalidRequest) {
                try await client.send("x", to: "/topic/t", options: STOMPSendOptions(headers: [name: "x"]))
            }
        }
        for name in ["id", "ack", "destination"] {
            await expectError(.invalidRequest) {
                _ = try await client.subscribe(to: "/topic/t", options: STOMPSubscribeOptions(headers: [name: "x"]))
            }
        }
        await expectError(.invalidRequest) { try await client.send("x", to: "") }
        // The session is as it was.
        try await client.sendAndConfirm("x", to: "/topic/nobody")
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }
}

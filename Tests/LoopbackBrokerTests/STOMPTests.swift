import ClientTestSupport
import LoopbackBroker
import MessagingJudge
import TestSupport
import Testing

/// The STOMP side, spoken to in hand-written frames.
@Suite(.turns) struct STOMPTests {
    @Test func servesSomebodyWithTelnet() async throws {
        try await withBroker { broker in
            let client = try await RawClient.open(broker.ports.stomp)
            try await client.send("CONNECT\r\n\r\n\0\r\n")
            let connected = try await client.readFrame()
            #expect(connected.contains("version:1.0\n"))
            #expect(connected.contains("server:swift-messaging-loopback/"))
            try await client.send("SUBSCRIBE\r\ndestination:/topic/device.*.location\r\n\r\n\0\r\n")
            try await client.send("SEND\r\ndestination:/topic/device.B.location\r\n\r\nhello\0\r\n")
            let headers = try await client.expectMessage("hello")
            #expect(headers["destination"] == "/topic/device.B.location")
            #expect(headers["subscription"] == nil)
            #expect(headers["message-id"] != nil)
            try await client.send("UNSUBSCRIBE\r\ndestination:/topic/device.*.location\r\nreceipt:1\r\n\r\n\0")
            #expect(try await client.readFrame() == "RECEIPT\nreceipt-id:1\n\n")
            try await client.send("DISCONNECT\r\nreceipt:bye\r\n\r\n\0")
            #expect(try await client.readFrame() == "RECEIPT\nreceipt-id:bye\n\n")
            try await client.expectEnd()
        }
    }

    @Test func keepsHeadersAndBodiesAsTheyAre() async throws {
        try await withBroker { broker in
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait("SUBSCRIBE\nid:7\ndestination:/topic/t")
            try await client.send(
                "SEND\ndestination:/topic/t\ncontent-type:text/plain\na\\cb: x\\ny \ncontent-length:4\n\na\n\0b\0")
            let frame = try await client.read(1)
            #expect(frame == [UInt8(ascii: "M")])
            let rest = try await client.readFrame()
            #expect(rest.contains("content-type:text/plain\n") && rest.contains("a\\cb: x\\ny \n"))
            #expect(rest.contains("subscription:7\n") && rest.contains("content-length:4\n\na\n"))
            #expect(!rest.contains("receipt"))
            #expect(try await client.readFrame() == "b")
        }
    }

    @Test func hasAQueueKeepMessagesAndShareThemInTurns() async throws {
        try await withBroker { broker in
            let sender = try await RawClient.stomp(broker)
            for number in 0..<3 { try await sender.sendAndWait("SEND\ndestination:/queue/q", body: "kept \(number)") }
            let one = try await RawClient.stomp(broker)
            try await one.send("SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0")
            for number in 0..<3 { try await one.expectMessage("kept \(number)") }
            let two = try await RawClient.stomp(broker)
            try await two.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q")
            for number in 0..<4 { try await sender.sendAndWait("SEND\ndestination:/queue/q", body: "\(number)") }
            try await one.expectMessage("0")
            try await two.expectMessage("1")
            try await one.expectMessage("2")
            try await two.expectMessage("3")
        }
    }

    @Test func deliversAgainWhatWasNotAcknowledged() async throws {
        try await withBroker { broker in
            let sender = try await RawClient.stomp(broker)
            for number in 0..<3 { try await sender.sendAndWait("SEND\ndestination:/queue/q", body: "\(number)") }
            do {
                let first = try await RawClient.stomp(broker)
                try await first.send("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\n\n\0")
                let ids = [
                    try await first.expectMessage("0"), try await first.expectMessage("1"),
                    try await first.expectMessage("2"),
                ].map { $0["ack"] ?? "" }
                try await first.sendAndWait("ACK\nid:\(ids[1])")
            }
            let second = try await RawClient.stomp(broker)
            try await second.send("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\n\n\0")
            #expect(try await second.expectMessage("0")["redelivered"] == "true")
            let last = try await second.expectMessage("2")
            // Cumulative: for both.
            try await second.sendAndWait("ACK\nid:\(last["ack"] ?? "")")
            try await second.sendAndWait("UNSUBSCRIBE\nid:1")
            let third = try await RawClient.stomp(broker)
            try await third.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q")
        }
    }

    @Test(arguments: [false, true]) func dropsOrRedeliversOnceWhatIsRefused(redelivers: Bool) async throws {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = redelivers ? .redeliverOnce : .discard
        try await withBroker(options) { broker in
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual")
            try await client.send("SEND\ndestination:/queue/q\n\nx\0")
            let first = try await client.expectMessage("x")
            try await client.send("NACK\nid:\(first["ack"] ?? "")\n\n\0")
            if redelivers {
                let second = try await client.expectMessage("x")
                #expect(second["redelivered"] == "true")
                #expect(second["message-id"] == first["message-id"])
                try await client.send("NACK\nid:\(second["ack"] ?? "")\n\n\0")
            }
            try await client.sendAndWait("UNSUBSCRIBE\nid:1")
            #expect(broker.statistics.messagesDropped == 1)
        }
    }

    @Test func `a message that came back with a lost connection was not rejected yet`() async throws {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .redeliverOnce
        try await withBroker(options) { broker in
            do {
                let lost = try await RawClient.stomp(broker)
                try await lost.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual")
                try await lost.send("SEND\ndestination:/queue/q\n\nx\0")
                _ = try await lost.expectMessage("x")
            }
            let client = try await RawClient.stomp(broker)
            try await client.send("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\n\n\0")
            for _ in 0..<2 {
                let message = try await client.expectMessage("x")
                #expect(message["redelivered"] == "true")
                try await client.send("NACK\nid:\(message["ack"] ?? "")\n\n\0")
            }
            try await client.sendAndWait("UNSUBSCRIBE\nid:1")
            #expect(broker.statistics.messagesDropped == 1)
        }
    }

    @Test(arguments: ["", "/queue/", "/topic/dead", "/temp-queue/dead", "/queue/dead.>"])
    func `a dead-letter queue that is not one queue keeps the broker from starting`(name: String) async {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .deadLetterQueue(name)
        let error = await #expect(throws: TransportError.self) { try await LoopbackBroker.judged(options) }
        #expect(error?.code == .badURL)
        #expect(error?.message.contains("'\(name)'") == true)
    }

    @Test func `moves rejected messages to the dead-letter queue in their order, and drops what is rejected there`()
        async throws
    {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .deadLetterQueue("/queue/dead")
        try await withBroker(options) { broker in
            let worker = try await RawClient.stomp(broker)
            try await worker.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client")
            for text in ["1", "2", "3"] { try await worker.send("SEND\ndestination:/queue/q\nkey:7\n\n\(text)\0") }
            _ = try await worker.expectMessage("1")
            let second = try await worker.expectMessage("2")
            let third = try await worker.expectMessage("3")
            // Cumulative: for the first too.
            try await worker.sendAndWait("NACK\nid:\(second["ack"] ?? "")")
            try await worker.send("NACK\nid:\(third["ack"] ?? "")\nrequeue:true\n\n\0")
            #expect(try await worker.expectMessage("3")["redelivered"] == "true")
            let reader = try await RawClient.stomp(broker)
            try await reader.send("SUBSCRIBE\nid:1\ndestination:/queue/dead\nack:client-individual\n\n\0")
            let dead = try await reader.expectMessage("1")
            #expect(dead["key"] == "7")
            #expect(dead["destination"] == "/queue/dead")
            _ = try await reader.expectMessage("2")
            #expect(broker.statistics.messagesDropped == 0)
            try await reader.sendAndWait("NACK\nid:\(dead["ack"] ?? "")")
            #expect(broker.statistics.messagesDropped == 1)
        }
    }

    @Test func `what a subscription to a topic has not acknowledged waits, and what it rejects comes again`()
        async throws
    {
        try await withBroker { broker in
            let client = try await RawClient.stomp(broker)
            let sender = try await RawClient.stomp(broker)
            try await client.sendAndWait(
                "SUBSCRIBE\nid:1\ndestination:/topic/t.>\nack:client-individual\nprefetch-count:1\nselector:key = '7'")
            func send(_ text: String, key: String = "7") async throws {
                try await sender.sendAndWait("SEND\ndestination:/topic/t.\(text)\nkey:\(key)", body: text)
            }
            try await send("a")
            try await send("other", key: "8")
            try await send("b")
            let first = try await client.expectMessage("a")
            #expect(first["destination"] == "/topic/t.a")
            try await client.send("NACK\nid:\(first["ack"] ?? "")\nrequeue:true\n\n\0")
            let again = try await client.expectMessage("a")
            #expect(again["redelivered"] == "true")
            #expect(again["message-id"] == first["message-id"])
            try await client.send("ACK\nid:\(again["ack"] ?? "")\n\n\0")
            let second = try await client.expectMessage("b")
            #expect(second["redelivered"] == nil)
            #expect(broker.statistics.messagesDropped == 0)
            try await client.sendAndWait("NACK\nid:\(second["ack"] ?? "")")
            #expect(broker.statistics.messagesDropped == 1)
            // It ends with the subscription, together with what waits for it.
            try await send("c")
            try await client.expectMessage("c")
            try await client.sendAndWait("UNSUBSCRIBE\nid:1")
            try await client.sendAndWait("SUBSCRIBE\nid:1\ndestination:/topic/t.>\nack:client")
        }
    }

    @Test func `a message of a topic that is rejected goes where one of a queue goes`() async throws {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .deadLetterQueue("/queue/dead")
        try await withBroker(options) { broker in
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait("SUBSCRIBE\nid:1\ndestination:/topic/t\nack:client")
            await broker.publish("x", to: "t")
            let message = try await client.expectMessage("x")
            try await client.sendAndWait("NACK\nid:\(message["ack"] ?? "")")
            try await client.send("SUBSCRIBE\nid:2\ndestination:/queue/dead\n\n\0")
            #expect(try await client.expectMessage("x")["destination"] == "/queue/dead")
            #expect(broker.statistics.messagesDropped == 0)
        }
    }

    @Test func `the messages that wait for a subscription to a topic are bounded, and the oldest are dropped`()
        async throws
    {
        var options = LoopbackBrokerOptions()
        options.limits.maximumQueueMessages = 2
        try await withBroker(options) { broker in
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait("SUBSCRIBE\nid:1\ndestination:/topic/t\nack:client\nprefetch-count:1")
            for number in 0..<5 { await broker.publish("\(number)", to: "t") }
            let first = try await client.expectMessage("0")
            #expect(broker.statistics.messagesDropped == 2)
            try await client.send("ACK\nid:\(first["ack"] ?? "")\n\n\0")
            try await client.expectMessage("3")
        }
    }

    @Test func `a durable subscription keeps only what its selector accepts`() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumQueueMessages = 1
        try await withBroker(options) { broker in
            let durable = "SUBSCRIBE\nid:1\ndestination:/topic/t\ndurable-subscription-name:n\nselector:key = '7'"
            let client = try await RawClient.stomp(broker, "client-id:c\n")
            try await client.sendAndWait(durable)
            try await client.sendAndWait("UNSUBSCRIBE\nid:1")
            for key in ["7", "8"] { await broker.send(key, to: "/topic/t", headers: ["key": key]) }
            try await client.send("\(durable)\n\n\0")
            try await client.expectMessage("7")
            #expect(broker.statistics.messagesDropped == 0)
        }
    }

    @Test func understandsAcknowledgementsOfAllVersions() async throws {
        try await withBroker { broker in
            for (version, ack) in [("1.0", "message-id:M"), ("1.1", "message-id:M\nsubscription:1"), ("1.2", "id:A")] {
                let client = try await RawClient.open(broker.ports.stomp)
                try await client.send("CONNECT\naccept-version:\(version)\nhost:x\n\n\0")
                #expect(try await client.readFrame().contains("version:\(version)\n"))
                try await client.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client")
                try await client.send("SEND\ndestination:/queue/q\n\n\(version)\0")
                let headers = try await client.expectMessage(version)
                let filled = ack.replacing("M", with: headers["message-id"] ?? "")
                    .replacing("A", with: headers["ack"] ?? "")
                try await client.sendAndWait("ACK\n\(filled)")
                try await client.send("DISCONNECT\n\n\0")
                try await client.expectEnd()
            }
            let last = try await RawClient.stomp(broker)
            // Nothing came back.
            try await last.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q")
        }
    }

    @Test func keepsATransactionBackUntilItIsCommitted() async throws {
        try await withBroker(mayBreak: [.transactionUnknown]) { broker in
            let client = try await RawClient.stomp(broker)
            let other = try await RawClient.stomp(broker)
            try await other.sendAndWait("SUBSCRIBE\nid:1\ndestination:/topic/t")
            try await client.send("BEGIN\ntransaction:a\n\n\0BEGIN\ntransaction:b\n\n\0")
            try await client.sendAndWait("SEND\ndestination:/topic/t\ntransaction:a", body: "1")
            try await client.sendAndWait("SEND\ndestination:/topic/t\ntransaction:b", body: "never")
            try await client.sendAndWait("SEND\ndestination:/topic/t", body: "0")
            try await client.sendAndWait("ABORT\ntransaction:b")
            try await client.sendAndWait("COMMIT\ntransaction:a")
            try await other.expectMessage("0")
            let headers = try await other.expectMessage("1")
            #expect(headers["transaction"] == nil)
            try await client.send("COMMIT\ntransaction:a\nreceipt:r\n\n\0")
            let error = try await client.readFrame()
            #expect(error.hasPrefix("ERROR\n") && error.contains("receipt-id:r\n") && error.contains("'a'"))
            try await client.expectEnd()
        }
    }

    @Test func selectsByHeader() async throws {
        try await withBroker { broker in
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait(
                "SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:country IN ('FR', 'DE', 'IT')")
            try await client.send("SEND\ndestination:/topic/t\ncountry:US\n\nno\0SEND\ndestination:/topic/t\n\nno\0")
            try await client.send("SEND\ndestination:/topic/t\ncountry:FR\n\nyes\0")
            try await client.expectMessage("yes")
            try await client.send("SUBSCRIBE\nid:2\ndestination:/topic/t\nselector:price BETWEEN 1 AND 2\n\n\0")
            #expect(try await client.readFrame().contains("not supported"))
        }
    }

    @Test func answersToATemporaryQueue() async throws {
        try await withBroker { broker in
            let asking = try await RawClient.stomp(broker)
            try await asking.sendAndWait("SUBSCRIBE\nid:1\ndestination:/temp-queue/me")
            let answering = try await RawClient.stomp(broker)
            try await answering.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/work")
            try await asking.send("SEND\ndestination:/queue/work\nreply-to:/temp-queue/me\n\nask\0")
            let replyTo = try await answering.expectMessage("ask")["reply-to"] ?? ""
            #expect(replyTo.hasPrefix("/remote-temp-queue/"))
            try await answering.send("SEND\ndestination:\(replyTo)\n\nanswer\0")
            #expect(try await asking.expectMessage("answer")["destination"] == "/temp-queue/me")
            try await asking.send("DISCONNECT\n\n\0")
            try await asking.expectEnd()
            try await answering.send("SEND\ndestination:\(replyTo)\n\nlate\0")
            #expect(try await answering.readFrame().hasPrefix("ERROR\n"))
        }
    }

    @Test func keepsADurableSubscription() async throws {
        try await withBroker { broker in
            let durable = "SUBSCRIBE\nid:1\ndestination:/topic/t.>\ndurable-subscription-name:n"
            let first = try await RawClient.stomp(broker, "client-id:c\n")
            try await first.sendAndWait(durable)
            try await first.send("DISCONNECT\n\n\0")
            try await first.expectEnd()
            let sender = try await RawClient.stomp(broker)
            try await sender.sendAndWait("SEND\ndestination:/topic/t.x", body: "missed")
            let second = try await RawClient.stomp(broker, "client-id:c\n")
            try await second.send("\(durable)\n\n\0")
            #expect(try await second.expectMessage("missed")["destination"] == "/topic/t.x")
            try await second.sendAndWait("UNSUBSCRIBE\nid:1")
            try await sender.sendAndWait("SEND\ndestination:/topic/t.x", body: "away again")
            try await second.send("\(durable)\n\n\0")
            try await second.expectMessage("away again")
            try await second.sendAndWait("UNSUBSCRIBE\nid:1\ndurable-subscription-name:n")
            try await sender.sendAndWait("SEND\ndestination:/topic/t.x", body: "too late")
            try await second.sendAndWait(durable)
        }
    }

    @Test func `a durable subscription to another destination takes the place of one that nobody uses`() async throws {
        try await withBroker { broker in
            func durable(_ destination: String) -> String {
                "SUBSCRIBE\nid:1\ndestination:\(destination)\ndurable-subscription-name:n"
            }
            let client = try await RawClient.stomp(broker, "client-id:c\n")
            try await client.sendAndWait(durable("/topic/a"))
            try await client.sendAndWait("UNSUBSCRIBE\nid:1")
            let sender = try await RawClient.stomp(broker)
            try await sender.sendAndWait("SEND\ndestination:/topic/a", body: "of the old one")
            try await client.sendAndWait(durable("/topic/b"))
            try await sender.sendAndWait("SEND\ndestination:/topic/a", body: "too late")
            try await sender.sendAndWait("SEND\ndestination:/topic/b", body: "of the new one")
            try await client.expectMessage("of the new one")
            try await client.send(
                "SUBSCRIBE\nid:2\ndestination:/topic/c\ndurable-subscription-name:n\n\n\0")
            #expect(try await client.readFrame().contains("in use for another destination"))
        }
    }

    @Test func `a durable subscription with another selector takes the place of one that nobody uses`() async throws {
        try await withBroker { broker in
            func durable(_ key: String, id: Int = 1) -> String {
                "SUBSCRIBE\nid:\(id)\ndestination:/topic/t\ndurable-subscription-name:n\nselector:key = '\(key)'"
            }
            let client = try await RawClient.stomp(broker, "client-id:c\n")
            try await client.sendAndWait(durable("7"))
            try await client.sendAndWait("UNSUBSCRIBE\nid:1")
            let sender = try await RawClient.stomp(broker)
            func send(_ text: String, key: String) async throws {
                try await sender.sendAndWait("SEND\ndestination:/topic/t\nkey:\(key)", body: text)
            }
            try await send("of the old one", key: "7")
            try await client.sendAndWait(durable("8"))
            try await send("too late", key: "7")
            try await send("of the new one", key: "8")
            try await client.expectMessage("of the new one")
            // The same name and selector: another consumer of the same queue.
            try await client.sendAndWait(durable("8", id: 2))
            let other = try await RawClient.stomp(broker, "client-id:c\n")
            try await other.send("\(durable("7"))\n\n\0")
            #expect(try await other.readFrame().contains("in use with another selector"))
            for text in ["one", "two"] { try await send(text, key: "8") }
            #expect(
                try await client.expectMessage("one")["subscription"] != client.expectMessage("two")["subscription"])
        }
    }

    @Test func refusesWrongCredentialsAndWhatItDoesNotKnow() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "secret")]
        try await withBroker(options, mayBreak: [.frameOfServer]) { broker in
            _ = try await RawClient.stomp(broker, "login:ann\npasscode:secret\n")
            let wrong = try await RawClient.open(broker.ports.stomp)
            try await wrong.send(
                "CONNECT\naccept-version:1.2\nhost:x\nlogin:ann\npasscode:guess\n\n\0SEND\ndestination:/queue/q\n\n\0")
            #expect(try await wrong.readFrame().contains("message:invalid user credentials\n"))
            try await wrong.expectEnd()
            let strange = try await RawClient.stomp(broker, "login:ann\npasscode:secret\n")
            try await strange.send("HELLO\n\n\0")
            #expect(try await strange.readFrame().hasPrefix("ERROR\n"))
            try await strange.expectEnd()
        }
    }

    @Test func beatsItsHeart() async throws {
        var options = LoopbackBrokerOptions()
        options.heartBeat = (100, 100)
        try await withBroker(options) { broker in
            // One that need not beat, and one that has to.
            let listener = try await RawClient.stomp(broker, "heart-beat:0,100\n")
            #expect(try await listener.connection.receive(atLeast: 2).allSatisfy { $0 == UInt8(ascii: "\n") })
            // We never beat: the broker closes the connection.
            let silent = try await RawClient.stomp(broker, "heart-beat:100,0\n")
            let rest = try await silent.connection.receive { _ in false }
            #expect(rest.isEmpty || rest.contains(UInt8(ascii: "E")))
        }
    }
}

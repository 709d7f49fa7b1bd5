import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite(.turns) struct AcknowledgementTests {
    @Test(arguments: [STOMPVersion.v10, .v11, .v12])
    func clientAcksCoverAllMessagesOfTheirSubscriptionUpToThem(version: STOMPVersion) async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.versions = [version] }
            let acknowledged = try await client.subscribe(to: "/queue/a", acknowledgement: .client)
            let other = try await client.subscribe(to: "/queue/b", acknowledgement: .client)
            for number in 0..<5 {
                try await client.send("a\(number)", to: "/queue/a")
                try await client.send("b\(number)", to: "/queue/b")
            }
            let messages = try await acknowledged.first(5)
            _ = try await other.first(5)
            try messages[2].acknowledge()
            await client.disconnect()
            let second = try await broker.connected()
            #expect(try await second.subscribe(to: "/queue/a").texts(2) == ["a3", "a4"])
            #expect(try await second.subscribe(to: "/queue/b").texts(5) == (0..<5).map { "b\($0)" })
            await second.disconnect()
        }
    }

    @Test func rejectedMessageComesBackIfItIsAskedTo() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual)
            var iterator = messages.makeAsyncIterator()
            try await client.send("x", to: "/queue/q")
            try await iterator.next()?.reject(requeue: true)
            let again = try #require(try await iterator.next())
            #expect(again.text == "x")
            #expect(again.isRedelivered)
            try again.reject(requeue: false)
            try await client.sendAndConfirm("y", to: "/queue/q")
            #expect(try await iterator.next()?.text == "y")
            await client.disconnect()
        }
    }

    @Test(arguments: ["ActiveMQ/5.17.2", "coilmq/1.1"])
    func `a message that the broker would not give to anybody again is not rejected for that`(
        server: String
    ) async throws {
        let (client, connection) = try await FakeServer().connected(server: server)
        async let subscribing = client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual)
        let lines = try await connection.frame().split(separator: "\n")
        connection.send("RECEIPT\nreceipt-id:\(lines.value("receipt"))\n\n\0")
        let messages = try await subscribing
        for id in ["1", "2", "3"] {
            connection.send(
                "MESSAGE\nsubscription:\(lines.value("id"))\nmessage-id:\(id)\nack:\(id)\ndestination:/queue/q\n\n\0")
        }
        let received = try await messages.first(3)
        if server.hasPrefix("ActiveMQ") {
            await expectError(.unsupportedByBroker, containing: "ActiveMQ") { try received[0].reject(requeue: true) }
            // Nothing was written, and the message can still be answered.
            try received[0].acknowledge()
            #expect(try await connection.expect("ACK", "id") == "1")
        } else {
            try received[0].reject(requeue: true)
            #expect(try await connection.expect("NACK", "id") == "1")
        }
        try received[1].reject(requeue: false)
        #expect(try await connection.expect("NACK", "id") == "2")
        try received[2].reject()
        #expect(try await connection.expect("NACK", "id") == "3")
        connection.close()
        await client.disconnect()
    }

    @Test func automaticMessagesAreNotAcknowledged() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q")
            try await client.send("x", to: "/queue/q")
            let message = try #require(try await messages.first(1).first)
            await expectError(.invalidRequest) { try message.acknowledge() }
            await expectError(.invalidRequest) { try message.reject() }
            #expect(client.state.isConnected)
            await client.disconnect()
        }
    }

    @Test func oneDotZeroHasNoRejection() async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.versions = [.v10] }
            let messages = try await client.subscribe(to: "/queue/q", acknowledgement: .client)
            try await client.send("x", to: "/queue/q")
            let message = try #require(try await messages.first(1).first)
            await expectError(.invalidRequest) { try message.reject() }
            try message.acknowledge()
            await expectError(.invalidRequest) {
                _ = try await client.subscribe(to: "/queue/r", acknowledgement: .clientIndividual)
            }
            await client.disconnect()
        }
    }

    @Test func messagesAndTransactionsOfAnEarlierConnectionAreRefused() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual)
            var iterator = messages.makeAsyncIterator()
            try await client.send("x", to: "/queue/q")
            let old = try #require(try await iterator.next())
            #expect(!old.isStale)
            let automatic = try await client.subscribe(to: "/topic/t")
            try await client.send("t", to: "/topic/t")
            let unanswerable = try #require(try await automatic.first(1).first)
            let transaction = try client.begin()
            try await client.send("lost with its transaction", to: "/queue/q", in: transaction)
            await broker.dropAllConnections()
            let again = try #require(try await iterator.next())
            #expect(again.text == "x")
            #expect(again.isRedelivered)
            #expect(old.isStale && !again.isStale && !unanswerable.isStale)
            await expectError(.stale) { try old.acknowledge() }
            await expectError(.stale) { try old.reject() }
            await expectError(.stale) { try await client.send("y", to: "/queue/q", in: transaction) }
            await expectError(.stale) { try again.acknowledge(in: transaction) }
            await expectError(.stale) { try await client.commit(transaction) }
            await expectError(.stale) { try client.abort(transaction) }
            try again.acknowledge()
            try await client.sendAndConfirm("only this", to: "/queue/q")
            #expect(try await iterator.next()?.text == "only this")
            await client.disconnect()
            #expect(again.isStale && !unanswerable.isStale)
            await expectError(.stale) { try again.acknowledge() }
        }
    }

    @Test func `a transaction whose task is cancelled before the commit is aborted`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            var arrivals = broker.arrivals().makeAsyncIterator()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await client.withTransaction { try await client.send("1", to: "/queue/q", in: $0) }
            }
            await expectError(.cancelled) { try await task.value }
            try await client.sendAndConfirm("2", to: "/queue/other")
            var packets: [LoopbackPacket] = []
            while let arrival = await arrivals.next() {
                packets.append(arrival.packet)
                if arrival.topic == "/queue/other" { break }
            }
            #expect(packets == [.stomp(.begin), .stomp(.send), .stomp(.abort), .stomp(.send)])
            await client.disconnect()
        }
    }

    @Test func transactionsCountAllTogetherOrNotAtAll() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual)
            var iterator = messages.makeAsyncIterator()
            struct Changed: Error {}
            await #expect(throws: Changed.self) {
                try await client.withTransaction { transaction in
                    try await client.send("aborted", to: "/queue/q", in: transaction)
                    throw Changed()
                }
            }
            var last: STOMPTransactionHandle?
            try await client.withTransaction(named: "order 17") { transaction in
                last = transaction
                let batch = (0..<3).map { STOMPOutgoingMessage("\($0)", to: "/queue/q") }
                try await client.send(batch, in: transaction)
            }
            for number in 0..<3 {
                let message = try #require(try await iterator.next())
                #expect(message.text == "\(number)")
                try await client.withTransaction { try message.acknowledge(in: $0) }
            }
            let ended = try #require(last)
            await expectError(.stale) { try await client.commit(ended) }
            await client.disconnect()
            let second = try await broker.connected()
            try await second.sendAndConfirm("end", to: "/queue/q")
            #expect(try await second.subscribe(to: "/queue/q").texts(1) == ["end"])
            await second.disconnect()
        }
    }
}

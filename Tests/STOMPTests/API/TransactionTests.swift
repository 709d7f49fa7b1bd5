import LoopbackBroker
import STOMP
import TestSupport
import Testing
import Transport

/// A broker whose receipt of COMMIT comes before the messages are in their queues, as RabbitMQ's does.
@Suite(.turns) struct TransactionTests {
    private func connected(
        _ server: FakeServer, named name: String, clock: ManualClock? = nil
    ) async throws -> (STOMPClient, FakeConnection) {
        let client = server.client(clock: clock) {
            ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero)
            $0.requestTimeout = .seconds(30)
        }
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, server: name)
        try await connecting
        return (client, connection)
    }

    /// Sends two messages in a transaction and begins to commit it. Returns the receipts of its frames.
    private func commit(
        with client: STOMPClient, _ connection: FakeConnection
    ) async throws -> (committing: Task<Void, any Error>, sends: [String], commit: String) {
        let transaction = try client.begin()
        try await client.send("1", to: "/queue/q", in: transaction)
        try await client.send([STOMPOutgoingMessage("2", to: "/queue/q")], in: transaction)
        let committing = Task { try await client.commit(transaction) }
        try await connection.expect("BEGIN")
        let sends = [try await connection.expect("SEND"), try await connection.expect("SEND")]
        return (committing, sends, try await connection.expect("COMMIT"))
    }

    @Test func `a commit at RabbitMQ returns when every message of its transaction has its receipt`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "RabbitMQ/3.10.8")
        let (committing, sends, commit) = try await commit(with: client, connection)
        try #require(Set(sends).count == 2 && !sends.contains(""), "each SEND has a receipt of its own: \(sends)")
        connection.send("RECEIPT\nreceipt-id:\(commit)\n\n\0")
        connection.send("RECEIPT\nreceipt-id:\(sends[1])\n\n\0")
        // The answer to a later frame shows that the client has read these receipts.
        let other = Task { try await client.sendAndConfirm("3", to: "/queue/other") }
        try await connection.confirm("SEND")
        try await other.value
        #expect(client.backlog.messagesInFlight == 1, "COMMIT still waits")
        connection.send("RECEIPT\nreceipt-id:\(sends[0])\n\n\0")
        try await committing.value
        connection.close()
        await client.disconnect()
    }

    @Test func `a transaction that has ended after a commit without an answer may have happened`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "fake/1")
        let transaction = try client.begin()
        let committing = Task { try await client.commit(transaction) }
        try await connection.expect("BEGIN")
        try await connection.expect("COMMIT")
        await expectError(.stale, containing: "It was committed or aborted before.") { try client.abort(transaction) }
        connection.close()
        await expectError(.connectionLost) { try await committing.value }
        let next = try await server.accept(1)
        #expect(await eventually { client.state.isConnected })
        await expectError(.stale, containing: "unless a commit of it was sent") { try await client.commit(transaction) }
        next.close()
        await client.disconnect()
    }

    @Test func `a message that waits for its receipt in a transaction fails when that is aborted`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "RabbitMQ/3.10.8")
        let transaction = try client.begin()
        let receipt = try await client.sendForReceipt(STOMPOutgoingMessage("1", to: "/queue/q"), in: transaction)
        try client.abort(transaction)
        await expectError(.stale, containing: "had no effect") { try await receipt.confirmed() }
        #expect(client.backlog.messagesInFlight == 0)
        try await connection.expect("BEGIN")
        try await connection.expect("SEND")
        try await connection.expect("ABORT")
        connection.close()
        await client.disconnect()
    }

    @Test func `a message whose receipt is lost makes the result of its commit unknown`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "RabbitMQ/3.10.8")
        let (committing, sends, commit) = try await commit(with: client, connection)
        connection.send("RECEIPT\nreceipt-id:\(commit)\n\n\0RECEIPT\nreceipt-id:\(sends[0])\n\n\0")
        connection.close()
        await expectError(.connectionLost, containing: "unknown") { try await committing.value }
        await client.disconnect()
    }

    @Test func `a message whose receipt does not come lets its commit time out`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, connection) = try await connected(server, named: "RabbitMQ/3.10.8", clock: clock)
        let (committing, sends, commit) = try await commit(with: client, connection)
        connection.send("RECEIPT\nreceipt-id:\(commit)\n\n\0RECEIPT\nreceipt-id:\(sends[0])\n\n\0")
        await clock.advance(by: .seconds(31))
        await expectError(.timedOut, containing: "unknown") { try await committing.value }
        #expect(client.backlog.messagesInFlight == 0)
        connection.close()
        await client.disconnect()
    }

    @Test func `ERROR after the receipt of COMMIT makes the result unknown`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "RabbitMQ/3.10.8")
        let (committing, _, commit) = try await commit(with: client, connection)
        connection.send("RECEIPT\nreceipt-id:\(commit)\n\n\0ERROR\nmessage:no queue\n\n\0")
        await expectError(.connectionLost, containing: "unknown") { try await committing.value }
        connection.close()
        await client.disconnect()
    }

    @Test func `messages of an aborted transaction leave no receipt behind`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "RabbitMQ/3.10.8")
        let transaction = try client.begin()
        try await client.send("1", to: "/queue/q", in: transaction)
        try client.abort(transaction)
        for command in ["BEGIN", "SEND", "ABORT"] { try await connection.expect(command) }
        #expect(client.backlog.messagesInFlight == 0)
        let (committing, sends, commit) = try await commit(with: client, connection)
        for receipt in sends + [commit] { connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0") }
        try await committing.value
        connection.close()
        await client.disconnect()
    }

    @Test func `other brokers' messages in a transaction have no receipt`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(server, named: "ActiveMQ/5.17.2")
        let (committing, sends, commit) = try await commit(with: client, connection)
        #expect(sends == ["", ""])
        connection.send("RECEIPT\nreceipt-id:\(commit)\n\n\0")
        try await committing.value
        connection.close()
        await client.disconnect()
    }

    @Test func `a transaction as RabbitMQ takes it passes a broker that confirms at once`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.profile = .rabbitMQ }
            try await client.withTransaction { transaction in
                try await client.send("1", to: "/queue/q", in: transaction)
                try await client.sendAndConfirm("2", to: "/queue/q", in: transaction)
                try await client.sendAndConfirm(
                    [STOMPOutgoingMessage("3", to: "/queue/q")], in: transaction
                ).check()
            }
            #expect(try await client.subscribe(to: "/queue/q").texts(3) == ["1", "2", "3"])
            await client.disconnect()
        }
    }
}

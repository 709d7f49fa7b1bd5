import LoopbackBroker
import STOMP
import TestSupport
import Testing

/// A message is acknowledged or rejected once: brokers answer a second time with ERROR, which ends the connection.
@Suite(.turns) struct SecondAnswerTests {
    private func withMessages(
        _ mode: STOMPAckMode, _ version: STOMPVersion = .v12,
        _ body: (STOMPClient, STOMPSubscription, [STOMPMessage], LoopbackBroker) async throws -> Void
    ) async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.versions = [version] }
            let subscription = try await client.subscribe(to: "/queue/q", acknowledgement: mode)
            for number in 0..<4 { try await client.send("\(number)", to: "/queue/q") }
            try await body(client, subscription, try await subscription.first(4), broker)
            #expect(client.state.isConnected)
            await client.disconnect()
        }
    }

    @Test(arguments: [STOMPVersion.v11, .v12])
    func `a second answer to a message is refused before it is sent`(version: STOMPVersion) async throws {
        try await withMessages(.clientIndividual, version) { _, _, messages, _ in
            try messages[1].acknowledge()
            await expectError(.invalidRequest, containing: "already") { try messages[1].acknowledge() }
            await expectError(.invalidRequest, containing: "already") { try messages[1].reject() }
            try messages[0].reject(requeue: false)
            await expectError(.invalidRequest, containing: "already") { try messages[0].acknowledge() }
            try messages[3].acknowledge()
            try messages[2].acknowledge()
        }
    }

    @Test(arguments: [STOMPVersion.v10, .v11, .v12])
    func `in mode client an answer is for the messages before it too`(version: STOMPVersion) async throws {
        try await withMessages(.client, version) { _, _, messages, _ in
            try messages[2].acknowledge()
            for message in messages[...2] {
                await expectError(.invalidRequest, containing: "already") { try message.acknowledge() }
            }
            try messages[3].acknowledge()
        }
    }

    @Test(arguments: [STOMPAckMode.client, .clientIndividual])
    func `an answer in a transaction that was aborted may be repeated`(mode: STOMPAckMode) async throws {
        try await withMessages(mode) { client, _, messages, broker in
            let transaction = try client.begin()
            try messages[1].acknowledge(in: transaction)
            await expectError(.invalidRequest, containing: "already") { try messages[1].acknowledge() }
            try client.abort(transaction)
            try messages[1].acknowledge()
            let second = try client.begin()
            try messages[2].acknowledge(in: second)
            try await client.commit(second)
            await expectError(.invalidRequest, containing: "already") { try messages[2].acknowledge() }
        }
    }

    @Test func `a message of a loop that another one has followed is answered once`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let subscription = try await client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual)
            var (one, other) = (subscription.makeAsyncIterator(), subscription.makeAsyncIterator())
            for number in 1...2 { try await client.send("\(number)", to: "/queue/q") }
            let first = try #require(try await one.next())
            let second = try #require(try await other.next())
            #expect(first.text == "1" && second.text == "2")
            await expectError(.cancelled, containing: "subscribe once for each") { _ = try await one.next() }
            for message in [second, first] {
                try message.acknowledge()
                await expectError(.invalidRequest, containing: "already") { try message.acknowledge() }
            }
            await client.disconnect()
        }
    }

    @Test func `a rejected message that comes back is answered anew`() async throws {
        try await withMessages(.clientIndividual, .v11) { _, subscription, messages, _ in
            try messages[0].reject(requeue: true)
            let again = try #require(try await subscription.first(1).first)
            #expect(again.text == "0")
            try again.acknowledge()
        }
    }
}

import MessagingWire
import TestSupport
import Testing

@testable import STOMPCore

@Suite(.heavy) struct UnansweredMessageTests {
    /// What is answered, one number for each message.
    private struct Model {
        let mode: STOMPAckMode
        var received: UInt64 = 0
        /// By answers that count.
        var answered: Set<UInt64> = []
        /// The answers of open transactions, with the messages that each answers, by the transactions' numbers.
        var transactions: [UInt32: [(answer: STOMPMessageNumber, messages: Set<UInt64>)]] = [:]
        var lastTransaction: UInt32 = 0

        var unanswered: Set<UInt64> {
            var rest = Set(0..<received).subtracting(answered)
            for (_, messages) in transactions.values.joined() { rest.subtract(messages) }
            return rest
        }

        /// Whether another transaction has answered, so that this one may not.
        func isHeld(against transaction: UInt32) -> Bool {
            mode == .client && transactions.contains { $0.key != transaction && !$0.value.isEmpty }
        }

        func messages(_ number: UInt64, alone: Bool) -> Set<UInt64> {
            mode == .client && !alone ? Set(0...number) : [number]
        }
    }

    /// - Parameter rejects: whether some messages are rejected alone in mode `client`.
    @Test(arguments: [(STOMPAckMode.client, false), (.client, true), (.clientIndividual, false)])
    func `what is unanswered is what was received and not answered, whatever the order`(
        mode: STOMPAckMode, rejects: Bool
    ) {
        var generator = SeededGenerator(seed: 25)
        for _ in 0..<200 {
            var messages = UnansweredMessages(mode)
            var model = Model(mode: mode)
            for _ in 0..<150 {
                switch Int.random(in: 0..<8, using: &generator) {
                case 0..<4:
                    messages.received()
                    model.received += 1
                case 4..<6: answer(&messages, &model, rejects: rejects, &generator)
                case 6 where model.transactions.count < 3:
                    model.lastTransaction += 1
                    model.transactions[model.lastTransaction] = []
                default: end(&messages, &model, &generator)
                }
                #expect(messages.count == model.unanswered.count)
            }
        }
    }

    private func answer(
        _ messages: inout UnansweredMessages, _ model: inout Model, rejects: Bool,
        _ generator: inout SeededGenerator
    ) {
        // Mostly one of the oldest: in mode `client` few would be unanswered otherwise.
        let oldest = model.unanswered.min() ?? 0
        let number = UInt64.random(in: oldest...max(oldest, min(model.received, oldest + 8)), using: &generator)
        let isUnanswered = model.unanswered.contains(number)
        #expect(messages.contains(number) == isUnanswered)
        guard isUnanswered else { return }
        let alone = model.mode == .client && rejects && Bool.random(using: &generator)
        let open = model.transactions.keys.sorted()
        let index = Int.random(in: 0...open.count, using: &generator)
        let transaction = index < open.count ? open[index] : nil
        for other in open { #expect(messages.isHeld(against: other) == model.isHeld(against: other)) }
        if let transaction, model.isHeld(against: transaction) { return }
        let answered = model.messages(number, alone: alone)
        messages.answer(number, alone: alone, in: transaction)
        if let transaction {
            model.transactions[transaction]?.append((STOMPMessageNumber(subscription: 1, number: number), answered))
        } else {
            model.answered.formUnion(answered)
        }
    }

    /// Commits or aborts a transaction.
    private func end(
        _ messages: inout UnansweredMessages, _ model: inout Model, _ generator: inout SeededGenerator
    ) {
        guard let number = model.transactions.keys.sorted().randomElement(using: &generator) else { return }
        let ended = model.transactions.removeValue(forKey: number) ?? []
        let isAborted = Bool.random(using: &generator)
        messages.transactionEnded(number, ended.map(\.answer), isAborted: isAborted)
        if !isAborted { for (_, answered) in ended { model.answered.formUnion(answered) } }
    }

    @Test func `an engine counts what a subscription leaves unanswered`() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.subscribe(id: "a", destination: "/q", acknowledgement: .clientIndividual, token: 7, at: 0)
        for number in 0..<5 {
            client.receive("MESSAGE\nsubscription:a\nmessage-id:\(number)\nack:\(number)\ndestination:/q\n\n\0")
        }
        #expect(client.engine.messagesReceived(bySubscription: "a") == 5)
        func ack(_ number: UInt64, _ transaction: STOMPTransaction? = nil) throws(STOMPUsageError) {
            let headers = Array("subscription:a\nmessage-id:\(number)\nack:\(number)\n".utf8)
            try client.engine.ack(
                messageHeaders: headers.span.bytes, connection: 1,
                message: STOMPMessageNumber(subscription: 7, number: number), transaction: transaction, at: 0)
        }
        try ack(1)
        #expect(client.misuse { _ throws(STOMPUsageError) in try ack(1) } == .alreadyAnswered)
        let transaction = try client.engine.begin(at: 0)
        try ack(2, transaction)
        try client.engine.abort(transaction, at: 0)
        try ack(3)
        #expect(try client.engine.unsubscribe(id: "a", at: 0) == 3)
        #expect(client.misuse { _ throws(STOMPUsageError) in try ack(4) } == .unknownSubscription)
    }

    private static func headers(_ number: UInt64) -> [UInt8] {
        Array("subscription:a\nmessage-id:\(number)\nack:\(number)\n".utf8)
    }

    /// An engine whose subscription `a` in mode `client` has received so many messages.
    private static func client(server: String, messages: UInt64) throws -> ScriptedEngine {
        let client = try ScriptedEngine.connected(server: server)
        try client.engine.subscribe(id: "a", destination: "/q", acknowledgement: .client, token: 7, at: 0)
        for number in 0..<messages {
            client.receive("MESSAGE\nsubscription:a\nmessage-id:\(number)\nack:\(number)\ndestination:/q\n\n\0")
        }
        _ = client.takeOutput()
        return client
    }

    private static func ack(
        _ client: ScriptedEngine, _ number: UInt64, _ transaction: STOMPTransaction? = nil
    ) -> STOMPUsageError.Code? {
        client.misuse { e throws(STOMPUsageError) in
            try e.engine.ack(
                messageHeaders: headers(number).span.bytes, connection: 1,
                message: STOMPMessageNumber(subscription: 7, number: number), transaction: transaction, at: 0)
        }
    }

    private static func nack(
        _ client: ScriptedEngine, _ number: UInt64, _ transaction: STOMPTransaction? = nil
    ) -> STOMPUsageError.Code? {
        client.misuse { e throws(STOMPUsageError) in
            try e.engine.nack(
                messageHeaders: headers(number).span.bytes, connection: 1,
                message: STOMPMessageNumber(subscription: 7, number: number), transaction: transaction, at: 0)
        }
    }

    @Test func `ActiveMQ rejects a message alone in mode client, and those before it are still unanswered`() throws {
        let client = try Self.client(server: "ActiveMQ/5.17.2", messages: 5)
        #expect(Self.nack(client, 2) == nil)
        #expect(client.engine.unansweredCount == 4)
        #expect(Self.nack(client, 2) == .alreadyAnswered && Self.ack(client, 2) == .alreadyAnswered)
        #expect(Self.ack(client, 1) == nil)
        #expect(client.engine.unansweredCount == 2)
        #expect(Self.ack(client, 0) == .alreadyAnswered && Self.ack(client, 2) == .alreadyAnswered)
        #expect(Self.ack(client, 4) == nil)
        #expect(client.engine.unansweredCount == 0)
        #expect(client.takeOutput() == "NACK\nid:2\n\n\0ACK\nid:1\n\n\0ACK\nid:4\n\n\0")
    }

    @Test func `what was rejected alone stays rejected when an acknowledgement is taken back`() throws {
        let client = try Self.client(server: "ActiveMQ/5.17.2", messages: 6)
        #expect(Self.nack(client, 1) == nil)
        let transaction = try client.engine.begin(at: 0)
        #expect(Self.nack(client, 3, transaction) == nil && Self.ack(client, 4, transaction) == nil)
        #expect(client.engine.unansweredCount == 1)
        try client.engine.abort(transaction, at: 0)
        #expect(client.engine.unansweredCount == 5)
        #expect(Self.ack(client, 1) == .alreadyAnswered)
        #expect(Self.nack(client, 3) == nil && Self.ack(client, 2) == nil && Self.ack(client, 5) == nil)
        #expect(client.engine.unansweredCount == 0)
    }

    @Test func `an abort does not take back a later acknowledgement outside the transaction`() throws {
        let client = try Self.client(server: "RabbitMQ/3.10.8", messages: 5)
        let transaction = try client.engine.begin(at: 0)
        #expect(Self.ack(client, 2, transaction) == nil && Self.ack(client, 4) == nil)
        try client.engine.abort(transaction, at: 0)
        #expect(client.engine.unansweredCount == 0)
        #expect(Self.ack(client, 4) == .alreadyAnswered)
        #expect(try client.engine.unsubscribe(id: "a", at: 0) == 0)
    }

    @Test(arguments: [true, false])
    func `in mode client one transaction at a time acknowledges`(commits: Bool) throws {
        let client = try Self.client(server: "RabbitMQ/3.10.8", messages: 5)
        let (first, second) = (try client.engine.begin(at: 0), try client.engine.begin(at: 0))
        #expect(Self.ack(client, 1, first) == nil && Self.ack(client, 2, first) == nil)
        _ = client.takeOutput()
        #expect(Self.ack(client, 4, second) == .invalidOption && Self.nack(client, 4, second) == .invalidOption)
        #expect(client.takeOutput().isEmpty && client.engine.unansweredCount == 2)
        if commits { try client.engine.commit(first, at: 0) } else { try client.engine.abort(first, at: 0) }
        #expect(client.engine.unansweredCount == (commits ? 2 : 5))
        #expect(Self.ack(client, 4, second) == nil)
        try client.engine.abort(second, at: 0)
        #expect(client.engine.unansweredCount == (commits ? 2 : 5))
    }

    @Test func `elsewhere a rejection in mode client is for the messages before it too`() throws {
        let client = try Self.client(server: "RabbitMQ/3.10.8", messages: 3)
        #expect(Self.nack(client, 1) == nil)
        #expect(client.engine.unansweredCount == 1)
        #expect(Self.ack(client, 0) == .alreadyAnswered)
    }

    @Test func `Artemis would acknowledge a rejected message, so that it is not rejected`() throws {
        let client = try Self.client(server: "ActiveMQ-Artemis/2.31.2", messages: 3)
        #expect(Self.nack(client, 1) == .unsupportedByBroker)
        #expect(client.engine.unansweredCount == 3)
        #expect(Self.ack(client, 1) == nil)
    }

    @Test(arguments: [
        ("ActiveMQ/5.17.2", "ActiveMQ Classic has given it"),
        ("RabbitMQ/3.10.8", "when this connection ends: disconnect"), ("other", "some only when this connection ends"),
    ])
    func `an answer after the end of its subscription is refused with what this broker does with the message`(
        server: String, words: String
    ) throws {
        let client = try ScriptedEngine.connected(server: server)
        try client.engine.subscribe(id: "a", destination: "/q", acknowledgement: .clientIndividual, token: 7, at: 0)
        client.receive("MESSAGE\nsubscription:a\nmessage-id:0\nack:0\ndestination:/q\n\n\0")
        try client.engine.unsubscribe(id: "a", at: 0)
        // With and without the number of the message.
        for number in [STOMPMessageNumber(subscription: 7, number: 0), nil] {
            #expect {
                try client.engine.ack(
                    messageHeaders: Array("subscription:a\nmessage-id:0\nack:0\n".utf8).span.bytes, connection: 1,
                    message: number, at: 0)
            } throws: { error in
                guard let error = error as? STOMPUsageError else { return false }
                return error.code == .unknownSubscription && error.message.contains(words)
            }
        }
    }
}

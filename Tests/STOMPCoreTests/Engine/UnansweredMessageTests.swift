import TestSupport
import Testing
import Wire

@testable import STOMPCore

@Suite(.heavy) struct UnansweredMessageTests {
    /// What is unanswered, one number for each message.
    private struct Model {
        var received: UInt64 = 0
        var unanswered: Set<UInt64> = []
    }

    /// - Parameter rejects: whether some messages are rejected alone in mode `client`.
    @Test(arguments: [(STOMPAckMode.client, false), (.client, true), (.clientIndividual, false)])
    func `what is unanswered is what was received and not answered, whatever the order`(
        mode: STOMPAckMode, rejects: Bool
    ) {
        var generator = SeededGenerator(seed: 25)
        for _ in 0..<200 {
            var messages = UnansweredMessages(mode)
            var model = Model()
            for _ in 0..<300 {
                if model.received == 0 || Bool.random(using: &generator) {
                    messages.received()
                    model.unanswered.insert(model.received)
                    model.received += 1
                } else {
                    let number = UInt64.random(in: 0...model.received, using: &generator)
                    #expect(messages.contains(number) == model.unanswered.contains(number))
                    guard model.unanswered.contains(number) else { continue }
                    let alone = mode == .client && rejects && Bool.random(using: &generator)
                    let answered = model.unanswered.filter {
                        mode == .client && !alone ? $0 <= number : $0 == number
                    }
                    if Int.random(in: 0..<4, using: &generator) == 0 {
                        let message = STOMPMessageNumber(subscription: 1, number: number)
                        let answer = messages.noteAnswer(message, alone: alone)
                        #expect(messages.count == model.unanswered.count - answered.count)
                        messages.takeBack(answer)
                    } else {
                        messages.answer(number, alone: alone)
                        model.unanswered.subtract(answered)
                    }
                }
                #expect(messages.count == model.unanswered.count)
            }
        }
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

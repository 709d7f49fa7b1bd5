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

    @Test(arguments: [STOMPAckMode.client, .clientIndividual])
    func `what is unanswered is what was received and not answered, whatever the order`(mode: STOMPAckMode) {
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
                    let answered = model.unanswered.filter { mode == .client ? $0 <= number : $0 == number }
                    let first = messages.answer(number)
                    #expect(first == answered.min())
                    if Int.random(in: 0..<4, using: &generator) == 0 {
                        messages.takeBack(.init(subscription: 1, number: number, first: first))
                    } else {
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

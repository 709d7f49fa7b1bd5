import LoopbackBroker
import STOMP
import TestSupport
import Testing

private struct Question: Codable, Sendable, Equatable {
    var number: Int
}

private struct Answer: Codable, Sendable, Equatable {
    var square: Int
}

@Suite("Delivery: values and text at every end", .turns)
struct TypedEndsTests {
    @Test func `a typed request gets a typed reply, and one that is not such a value can still be read`() async throws {
        try await withBroker { broker in
            let service = try await broker.connected()
            let questions = try await service.subscribe(to: "/queue/square", as: Question.self)
            let answering = Task {
                for try await question in questions {
                    #expect(question.contentType == "application/json")
                    guard let number = try? question.value.number else {
                        try await service.reply(to: question.message, with: "not a question")
                        continue
                    }
                    try await service.reply(to: question.message, with: Answer(square: number * number), as: .json)
                }
            }
            let client = try await broker.connected()
            let answer: Answer = try await client.request(Question(number: 7), as: .json, to: "/queue/square").value
            #expect(answer == Answer(square: 49))
            let foreign = try await client.request([1, 2], as: .json, to: "/queue/square", returning: Answer.self)
            #expect(throws: DecodeFailure.self) { try foreign.value }
            #expect(foreign.text == "not a question")
            await client.disconnect()
            await service.disconnect()
            try await answering.value
        }
    }

    @Test func `the receipts of text, values, typed destinations and messages can be awaited later`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/topic/f")
            let receipts = [
                try await client.sendForReceipt(STOMPOutgoingMessage([0x31], to: "/topic/f")),
                try await client.sendForReceipt(STOMPOutgoingMessage("text", to: "/topic/f")),
                try await client.sendForReceipt(STOMPOutgoingMessage(Question(number: 1), as: .json, to: "/topic/f")),
                try await client.sendForReceipt(
                    STOMPOutgoingMessage(Question(number: 2), to: STOMPDestination("/topic/f", as: .json))),
                try await client.sendForReceipt(STOMPOutgoingMessage("message", to: "/topic/f")),
            ]
            for receipt in receipts { try await receipt.confirmed() }
            var iterator = messages.makeAsyncIterator()
            for text in ["1", "text", #"{"number":1}"#, #"{"number":2}"#, "message"] {
                let message = try #require(try await iterator.next())
                #expect(message.text == text)
                #expect(message.contentType == (text.hasPrefix("{") ? "application/json" : nil))
            }
            await client.disconnect()
        }
    }

    @Test func `a request to a typed destination gets a reply, with or without a value`() async throws {
        try await withBroker { broker in
            let service = try await broker.connected()
            let destination = STOMPDestination<Question>("/queue/square", as: .json)
            let questions = try await service.subscribe(to: destination)
            let answering = Task {
                for try await question in questions {
                    let number = try question.value.number
                    switch number {
                    case 1: try await service.reply(to: question.message, with: [0x31])
                    case 2: try await service.reply(to: question.message, with: "four")
                    default:
                        try await service.reply(to: question.message, with: Answer(square: number * number), as: .json)
                    }
                }
            }
            let client = try await broker.connected()
            #expect(try await client.request(Question(number: 1), to: destination, returning: Answer.self).text == "1")
            let text = try await client.request(Question(number: 2), to: destination, returning: Answer.self)
            #expect(throws: DecodeFailure.self) { try text.value }
            let answer: Answer = try await client.request(Question(number: 3), to: destination).value
            #expect(answer == Answer(square: 9))
            await client.disconnect()
            await service.disconnect()
            try await answering.value
        }
    }

    @Test func `an element of a typed subscription acknowledges or rejects its message, and has its headers`()
        async throws
    {
        try await withBroker { broker in
            let client = try await broker.connected()
            let questions = try await client.subscribe(
                to: "/queue/q", as: Question.self, acknowledgement: .clientIndividual)
            try await client.send(
                Question(number: 1), as: .json, to: "/queue/q", options: STOMPSendOptions(headers: ["key": "7"]))
            try await client.send("{", to: "/queue/q")
            try await client.send(Question(number: 3), as: .json, to: "/queue/q")
            var arrivals = broker.arrivals().filter { $0.packet != .stomp(.send) }.makeAsyncIterator()
            var iterator = questions.makeAsyncIterator()
            let first = try #require(try await iterator.next())
            #expect(first.header("key") == "7" && first.headers["key"] == "7" && first.destination == "/queue/q")
            try first.acknowledge()
            #expect(await arrivals.next()?.packet == .stomp(.ack))
            let second = try #require(try await iterator.next())
            #expect(throws: DecodeFailure.self) { try second.value }
            try second.reject(requeue: false)
            #expect(await arrivals.next()?.packet == .stomp(.nack))
            let third = try #require(try await iterator.next())
            try await client.withTransaction { transaction in try third.acknowledge(in: transaction) }
            #expect(await arrivals.next()?.packet == .stomp(.begin))
            #expect(await arrivals.next()?.packet == .stomp(.ack))
            await client.disconnect()
        }
    }

    @Test func `one bad body does not end a sequence, and of several formats the content type chooses`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let questions = try await client.subscribe(
                to: "/topic/q", as: Question.self, coding: .anyOf(.json, .propertyList))
            let texts = try await client.subscribe(to: "/topic/q", as: String.self)
            try await client.send("{", to: "/topic/q")
            try await client.send(Question(number: 3), as: .json, to: "/topic/q")
            try await client.send(Question(number: 4), as: .propertyList, to: "/topic/q")
            var iterator = questions.makeAsyncIterator()
            let bad = try #require(try await iterator.next())
            #expect(throws: DecodeFailure.self) { try bad.value }
            #expect(try await iterator.next()?.value == Question(number: 3))
            #expect(try await iterator.next()?.value == Question(number: 4))
            var text = texts.makeAsyncIterator()
            #expect(try await text.next()?.value == "{")
            #expect(try await text.next()?.value == #"{"number":3}"#)
            let list = try #require(try await text.next())
            #expect(throws: DecodeFailure.self) { try list.value }
            // The result of a scope may be left unused.
            try await client.withTransaction { transaction in
                try await client.send("in it", to: "/queue/t", in: transaction)
                return 17
            }
            await client.disconnect()
        }
    }
}

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

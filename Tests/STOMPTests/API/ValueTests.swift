import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite(.turns) struct ValueTests {
    struct Reading: Codable, Equatable, Sendable {
        var sensor: String
        var degrees: Double
    }

    @Test func whatCannotBeDecodedIsAnElement() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let readings = try await client.subscribe(to: "/queue/readings").values(Reading.self, as: .json)
            let reading = Reading(sensor: "é/🛰", degrees: 21.5)
            try await client.sendAndConfirm(reading, as: .json, to: "/queue/readings")
            try await client.send("{\"sensor\":", to: "/queue/readings")
            try await client.send(
                "{\"sensor\":\"a\",\"degrees\":1}", to: "/queue/readings",
                options: STOMPSendOptions(contentType: "text/plain;charset=utf-8"))
            try await client.send(
                "{\"sensor\":\"a\",\"degrees\":1}", to: "/queue/readings",
                options: STOMPSendOptions(contentType: "Application/Vnd.x+JSON; charset=utf-8"))
            try await client.send(reading, as: .propertyList, to: "/queue/readings")
            var iterator = readings.makeAsyncIterator()
            let first = try #require(try await iterator.next())
            #expect(try first.get() == reading)
            #expect(first.message.contentType == "application/json")
            let broken = try #require(try await iterator.next())
            #expect(throws: DecodeFailure.self) { try broken.get() }
            #expect(broken.message.text == "{\"sensor\":")
            let text = try #require(try await iterator.next())
            #expect { try text.get() } throws: { "\($0)".contains("text/plain") }
            #expect(try await iterator.next()?.get() == Reading(sensor: "a", degrees: 1))
            let list = try #require(try await iterator.next())
            #expect(throws: DecodeFailure.self) { try list.get() }
            #expect(try list.message.value(Reading.self, as: .propertyList) == reading)
            await client.disconnect()
        }
    }

    @Test func valueThatCannotBeWrittenIsToldBeforeItIsSent() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            await expectError(.invalidRequest) {
                try await client.send(Reading(sensor: "a", degrees: .infinity), as: .json, to: "/queue/q")
            }
            #expect(client.counters.messagesSent == 0)
            await client.disconnect()
        }
    }
}

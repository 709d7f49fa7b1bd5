import STOMP
import Synchronization
import TestSupport
import Testing

/// What brokers take destinations for.
@Suite(.serialized, .turns)
struct STOMPDestinationTests {
    @Test(.requires(.activeMQ)) func activeMQTakesAnyNameForAQueue() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let messages = try await client.subscribe(to: "/odd/name")
        try await client.sendAndConfirm("x", to: "/odd/name")
        #expect(try await messages.texts(1) == ["x"])
        let composite = try await client.subscribe(to: "/queue/composite.a")
        let second = try await client.subscribe(to: "/queue/composite.b")
        try await client.sendAndConfirm("both", to: "/queue/composite.a,composite.b")
        #expect(try await composite.texts(1) == ["both"])
        #expect(try await second.texts(1) == ["both"])
        let bare = try await client.subscribe(to: "topic/x")
        try await client.sendAndConfirm("bare", to: "topic/x")
        #expect(try await bare.texts(1) == ["bare"])
        let ahead = try await client.subscribe(
            to: "/queue/odd?consumer.prefetchSize=1", acknowledgement: .clientIndividual)
        for text in ["1", "2"] { try await client.sendAndConfirm(text, to: "/queue/odd") }
        var iterator = ahead.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        #expect(first.text == "1" && first.destination == "/queue/odd")
        try first.acknowledge()
        try await iterator.next()?.acknowledge()
        // A queue without a name is the end, and nobody says why.
        await expectError(.connectionLost) { try await client.sendAndConfirm("x", to: "/queue/") }
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQNamesTheTopicForAnExchange() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let messages = try await client.subscribe(to: "/exchange/amq.topic/odd.key")
        try await client.sendAndConfirm("x", to: "/exchange/amq.topic/odd.key")
        #expect(try await messages.first(1).map(\.destination) == ["/topic/odd.key"])
        // A name with a slash is written with %2F.
        let slashed = try await client.subscribe(to: "/queue/a%2Fb")
        try await client.sendAndConfirm("y", to: "/queue/a%2Fb")
        #expect(try await slashed.texts(1) == ["y"])
        // A bare name is a queue.
        let bare = try await client.subscribe(to: "bare")
        try await client.sendAndConfirm("bare", to: "bare")
        #expect(try await bare.first(1).map(\.destination) == ["/queue/bare"])
        await expectError(.refused) { try await client.sendAndConfirm("z", to: "/queue/a/b") }
        await client.disconnect()
    }

    /// A stream keeps what has been read, and each SUBSCRIBE says where to begin.
    @Test(.requires(.rabbitMQ)) func aStreamOfRabbitMQContinuesAfterAReconnect() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let stream: STOMPHeaders = ["x-queue-type": "stream", "durable": "true", "auto-delete": "false"]
        let next = Atomic(0)
        var options = STOMPSubscribeOptions(prefetch: 100, headers: stream)
        options.headersProvider = { ["x-stream-offset": "offset=\(next.load(ordering: .acquiring))"] }
        func send(_ number: Int) async throws {
            try await client.sendAndConfirm(
                "\(number)", to: "/queue/continued", options: STOMPSendOptions(headers: stream))
        }
        for number in 0..<3 { try await send(number) }
        let entries = try await client.subscribe(
            to: "/queue/continued", acknowledgement: .clientIndividual, options: options)
        var iterator = entries.makeAsyncIterator()
        for number in 0..<6 {
            let entry = try #require(try await iterator.next())
            #expect(entry.text == "\(number)")
            #expect(entry.headers["x-stream-offset"] == "\(number)")
            next.store(number + 1, ordering: .releasing)
            try entry.acknowledge()
            guard number == 2 else { continue }
            try await client.reconnect()
            for number in 3..<6 { try await send(number) }
        }
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQHasWildcardsForQueuesToo() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let all = try await client.subscribe(to: "/queue/wild.>")
        let literal = try await client.subscribe(to: "/topic/wild.#.**")
        try await client.sendAndConfirm("none more", to: "/queue/wild")
        try await client.sendAndConfirm("two more", to: "/queue/wild.a.b")
        #expect(Set(try await all.texts(2)) == ["none more", "two more"])
        try await client.sendAndConfirm("not meant", to: "/topic/wild.a.b")
        try await client.sendAndConfirm("meant", to: "/topic/wild.#.**")
        #expect(try await literal.texts(1) == ["meant"])
        // Blanks and escapes of other brokers belong to the name.
        let odd = try await client.subscribe(to: "/queue/a b%2Fc")
        try await client.sendAndConfirm("odd", to: "/queue/a b%2Fc")
        #expect(try await odd.texts(1) == ["odd"])
        // Sent to a wildcard, a message is confirmed wherever it goes.
        try await client.sendAndConfirm("anywhere", to: "/topic/wild.*")
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQHasWildcardsForTopicsOnly() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let literal = try await client.subscribe(to: "/topic/wild.>.**")
        try await client.sendAndConfirm("not meant", to: "/topic/wild.a.b")
        try await client.sendAndConfirm("meant", to: "/topic/wild.>.**")
        #expect(try await literal.texts(1) == ["meant"])
        let queue = try await client.subscribe(to: "/queue/wild.*")
        try await client.sendAndConfirm("not meant", to: "/queue/wild.a")
        try await client.sendAndConfirm("meant", to: "/queue/wild.*")
        #expect(try await queue.texts(1) == ["meant"])
        _ = try await client.subscribe(to: "/queue/wild.a").first(1)
        await client.disconnect()
    }
}

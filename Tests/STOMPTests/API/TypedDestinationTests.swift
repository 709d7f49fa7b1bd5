import LoopbackBroker
import STOMP
import TestSupport
import Testing

// The example of the documentation, whole.
private struct Order: Codable, Sendable, Equatable {
    var article: String
}

extension STOMPDestination<Order> {
    fileprivate static var orders: STOMPDestination { STOMPDestination("/queue/orders", as: .json) }
}

@Suite("Payloads: typed destinations", .turns)
struct TypedDestinationTests {
    @Test func `values are sent to destinations of their type and arrive decoded`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let orders = try await client.subscribe(to: .orders)
            let order = Order(article: "é/🛰")
            try await client.sendAndConfirm(order, to: .orders)
            try await client.send("no order", to: "/queue/orders")
            try await client.send(order, to: .orders, options: STOMPSendOptions(contentType: "text/plain"))
            var iterator = orders.makeAsyncIterator()
            let first = try #require(try await iterator.next())
            #expect(try first.get() == order)
            #expect(first.contentType == "application/json" && first.destination == "/queue/orders")
            let broken = try #require(try await iterator.next())
            #expect(throws: DecodeFailure.self) { try broken.get() }
            let other = try #require(try await iterator.next())
            #expect { try other.get() } throws: { "\($0)".contains("text/plain") }
            try await orders.subscription.unsubscribe()
            await client.disconnect()
        }
    }

    @Test(arguments: ["RabbitMQ/3.10", "ActiveMQ/5.17", "other/1"])
    func `the declaration of a queue is sent with each frame to its broker, and to no other`(
        server: String
    ) async throws {
        let queue = STOMPQueueOptions.rabbitMQ(
            durable: true, deadLetterExchange: "dead", deadLetterRoutingKey: "orders", timeToLive: .seconds(60),
            maximumMessages: 10, headers: ["x-queue-type": "quorum"]
        ).and(.activeMQ(exclusive: true, priority: 7))
        let destination = STOMPDestination.text("/queue/orders", queue: queue)
        let fake = FakeServer()
        let client = fake.client()
        async let connecting: Void = client.connect()
        let connection = try await fake.accept(0, server: server)
        try await connecting
        async let subscribing = client.subscribe(to: destination)
        let subscribe = try await connection.frame().split(separator: "\n")
        connection.send("RECEIPT\nreceipt-id:\(subscribe.value("receipt"))\n\n\0")
        let texts = try await subscribing
        try await client.send("1", to: destination)
        let send = try await connection.frame().split(separator: "\n")
        let arguments: Set<Substring> = [
            "durable:true", "x-dead-letter-exchange:dead", "x-dead-letter-routing-key:orders", "x-message-ttl:60000",
            "x-max-length:10", "x-queue-type:quorum",
        ]
        let consumer: Set<Substring> = ["activemq.exclusive:true", "activemq.priority:7"]
        let isRabbitMQ = server.hasPrefix("RabbitMQ")
        #expect(arguments.intersection(subscribe) == (isRabbitMQ ? arguments : []))
        #expect(arguments.intersection(send) == (isRabbitMQ ? arguments : []))
        #expect(consumer.intersection(subscribe) == (server.hasPrefix("ActiveMQ") ? consumer : []))
        #expect(consumer.isDisjoint(with: send))
        withExtendedLifetime(texts) {}
        connection.close()
        await client.disconnect()
    }

    @Test func `a sequence of values counts what was dropped, and ends with its subscription`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let values = try await client.subscribe(
                to: "/topic/a", as: Int.self, buffer: BufferPolicy(messages: 10))
            for number in 0..<100 { try await client.send(number, to: "/topic/a") }
            #expect(await eventually { values.droppedCount == 90 })
            try await values.unsubscribe()
            var numbers: [Int] = []
            for try await element in values { numbers.append(try element.value) }
            #expect(numbers == Array(90..<100))
            await client.disconnect()
        }
    }

    @Test func `messages and options are equal if all their parts are, texts by their bytes`() {
        let options = STOMPSendOptions(contentType: "t", priority: 4, headers: ["a": "caf\u{E9}"])
        let message = STOMPOutgoingMessage("x", to: "/queue/caf\u{E9}", options: options)
        #expect(message == STOMPOutgoingMessage([0x78], to: "/queue/caf\u{E9}", options: options))
        let changes: [(inout STOMPOutgoingMessage) -> Void] = [
            { $0.destination = "/queue/cafe\u{301}" }, { $0.body = [] }, { $0.options.priority = 5 },
            { $0.options.headers = ["a": "cafe\u{301}"] }, { $0.options.expiresAt = 1 },
            { $0.options.omitsContentLength = true },
        ]
        for change in changes {
            var other = message
            change(&other)
            #expect(other != message)
        }
        let wish = STOMPSubscribeOptions(selector: "a = 'caf\u{E9}'", prefetch: 1)
        #expect(wish == STOMPSubscribeOptions(selector: "a = 'caf\u{E9}'", prefetch: 1))
        for other in [
            STOMPSubscribeOptions(selector: "a = 'cafe\u{301}'", prefetch: 1), STOMPSubscribeOptions(prefetch: 1),
            STOMPSubscribeOptions(selector: "a = 'caf\u{E9}'", durableName: "d", prefetch: 1),
            STOMPSubscribeOptions(selector: "a = 'caf\u{E9}'", prefetch: 2),
        ] { #expect(other != wish) }
    }

    @Test func `text, bytes, and formats of the application's own`() async throws {
        struct NoNumber: Error {}
        let text = STOMPDestination.text("/queue/text")
        let bytes = STOMPDestination.bytes("/queue/bytes")
        let numbers = STOMPDestination<Int>("/queue/numbers", contentType: "text/x-number; charset=ascii") { number in
            if number < 0 { throw NoNumber() }
            return Array("\(number)".utf8)
        } decode: { bytes in
            guard let number = Int(String(decoding: bytes, as: UTF8.self)) else { throw NoNumber() }
            return number
        }
        try await withBroker { broker in
            let client = try await broker.connected()
            var texts = try await client.subscribe(to: text).makeAsyncIterator()
            try await client.send("früh", to: text)
            #expect(try await texts.next()?.get() == "früh")
            try await client.send([0xFF], to: "/queue/text")
            let broken = try #require(try await texts.next())
            #expect(throws: DecodeFailure.self) { try broken.get() }
            var raw = try await client.subscribe(to: bytes).makeAsyncIterator()
            try await client.send([0, 255], to: bytes)
            #expect(try await raw.next()?.get() == [0, 255])
            var counted = try await client.subscribe(to: numbers).makeAsyncIterator()
            try await client.send(17, to: numbers)
            #expect(try await counted.next()?.get() == 17)
            try await client.send("x", to: "/queue/numbers")
            let none = try #require(try await counted.next())
            #expect { try none.get() } throws: { ($0 as? DecodeFailure)?.underlying is NoNumber }
            let sent = client.counters.messagesSent
            await expectError(.invalidRequest) { try await client.send(-1, to: numbers) }
            #expect(client.counters.messagesSent == sent)
            await client.disconnect()
        }
    }

    @Test func `values of a subscription can be decoded by a closure of the application`() async throws {
        struct NoNumber: Error {}
        try await withBroker { broker in
            let client = try await broker.connected()
            let numbers = try await client.subscribe(to: "/queue/numbers").values { message in
                guard let number = Int(message.text ?? "") else { throw NoNumber() }
                return number
            }
            try await client.send("x", to: "/queue/numbers")
            try await client.send("17", to: "/queue/numbers")
            var iterator = numbers.makeAsyncIterator()
            let none = try #require(try await iterator.next())
            #expect { try none.get() } throws: { ($0 as? DecodeFailure)?.underlying is NoNumber }
            #expect(try await iterator.next()?.get() == 17)
            await client.disconnect()
        }
    }
}

import STOMP
import TestSupport
import Testing

/// What both brokers do, each in its way.
@Suite(.serialized, .requires(anyOf: .activeMQ, .rabbitMQ), .turns)
struct STOMPConversationTests {
    @Test(arguments: STOMPBroker.usable)
    func automaticMessagesDoNotComeAgain(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let messages = try await client.subscribe(to: "/queue/talk-auto")
        try await client.sendAndConfirm("once", to: "/queue/talk-auto")
        let message = try #require(try await messages.first(1).first)
        await expectError(.invalidRequest) { try message.acknowledge() }
        await client.disconnect()
        try await client.connect()
        let again = try await client.subscribe(to: "/queue/talk-auto")
        try await client.sendAndConfirm("end", to: "/queue/talk-auto")
        #expect(try await again.texts(1) == ["end"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable, [STOMPVersion.v10, .v11, .v12])
    func clientAcksAreCumulative(broker: STOMPBroker, version: STOMPVersion) async throws {
        let queue = "/queue/talk-client-\(version)"
        let client = try await broker.connected { $0.versions = [version] }
        let messages = try await client.subscribe(to: queue, acknowledgement: .client)
        for number in 0..<4 { try await client.sendAndConfirm("\(number)", to: queue) }
        try await messages.first(4)[2].acknowledge()
        // Whatever follows with a receipt shows that the broker has seen the ACK.
        try await client.sendAndConfirm("after", to: "/queue/talk-client-other")
        await client.disconnect()
        try await client.connect()
        #expect(try await client.subscribe(to: queue).texts(1) == ["3"])
        let rest = try await client.subscribe(to: "/queue/talk-client-other")
        _ = try await rest.first(1)
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQKeepsARejectedMessageToItself() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let messages = try await client.subscribe(to: "/queue/talk-nack", acknowledgement: .clientIndividual)
        var iterator = messages.makeAsyncIterator()
        try await client.send("no", to: "/queue/talk-nack")
        try await iterator.next()?.reject()
        try await client.send("yes", to: "/queue/talk-nack")
        let next = try #require(try await iterator.next())
        #expect(next.text == "yes")
        try next.acknowledge()
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQRejectsItsOwnMessageAloneInModeClient() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let queue = "/queue/talk-nack-client"
        let messages = try await client.subscribe(to: queue, acknowledgement: .client)
        for number in 0..<4 { try await client.sendAndConfirm("\(number)", to: queue) }
        let four = try await messages.first(4)
        try four[2].reject()
        try four[1].acknowledge()
        try await client.sendAndConfirm("after", to: "/topic/nobody")
        #expect(client.counters.connections == 1)
        await client.disconnect()
        try await client.connect()
        #expect(try await client.subscribe(to: queue).texts(1) == ["3"])
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQHandsARejectedMessageOutAgainUnlessToldNotTo() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let messages = try await client.subscribe(to: "/queue/talk-nack", acknowledgement: .clientIndividual)
        var iterator = messages.makeAsyncIterator()
        try await client.send("no", to: "/queue/talk-nack")
        try await iterator.next()?.reject()
        let again = try #require(try await iterator.next())
        #expect(again.text == "no")
        #expect(again.isRedelivered)
        try again.reject(requeue: false)
        try await client.send("yes", to: "/queue/talk-nack")
        let next = try #require(try await iterator.next())
        #expect(next.text == "yes")
        try next.acknowledge()
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func acknowledgementsInATransactionCountWithIt(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let messages = try await client.subscribe(to: "/queue/talk-tx", acknowledgement: .clientIndividual)
        try await client.sendAndConfirm([.init("a", to: "/queue/talk-tx"), .init("b", to: "/queue/talk-tx")]).check()
        let two = try await messages.first(2)
        let aborted = try client.begin()
        try two[0].acknowledge(in: aborted)
        try client.abort(aborted)
        try await client.withTransaction { try two[1].acknowledge(in: $0) }
        await client.disconnect()
        try await client.connect()
        #expect(try await client.subscribe(to: "/queue/talk-tx").texts(1) == ["a"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func receiptsInATransactionComeAtTheLatestWithItsCommit(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let messages = try await client.subscribe(to: "/queue/talk-tx-receipt")
        let transaction = try client.begin()
        let receipt = try await client.sendForReceipt(
            STOMPOutgoingMessage([65], to: "/queue/talk-tx-receipt"), in: transaction)
        try await client.commit(transaction)
        try await receipt.confirmed()
        #expect(try await messages.texts(1) == ["A"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func aReplyWithoutACorrelationIsDropped(broker: STOMPBroker) async throws {
        let service = try await broker.connected()
        var questions = try await service.subscribe(to: "/queue/talk-late").makeAsyncIterator()
        let client = try await broker.connected()
        let asking = Task { try await client.request("1", to: "/queue/talk-late", timeout: .patience) }
        let question = try #require(try await questions.next())
        try await service.sendAndConfirm("whose?", to: try #require(question.header("reply-to")))
        try await service.reply(to: question, with: Array("answer".utf8))
        #expect(try await asking.value.text == "answer")
        #expect(client.counters.connections == 1)
        await client.disconnect()
        await service.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func repliesComeOverTemporaryQueues(broker: STOMPBroker) async throws {
        let service = try await broker.connected()
        let questions = try await service.subscribe(to: "/queue/talk-questions")
        let answering = Task {
            for try await question in questions { try await service.reply(to: question, with: question.bytes + [33]) }
        }
        let client = try await broker.connected()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask {
                    let reply = try await client.request(
                        "\(number)", to: "/queue/talk-questions", timeout: .patience)
                    #expect(reply.text == "\(number)!")
                }
            }
            try await group.waitForAll()
        }
        await client.disconnect()
        try await client.connect()
        #expect(try await client.request("2nd", to: "/queue/talk-questions", timeout: .patience).text == "2nd!")
        await client.disconnect()
        await service.disconnect()
        try await answering.value
    }

    @Test(arguments: STOMPBroker.usable)
    func durableSubscriptionIsKeptUntilItIsUnsubscribed(broker: STOMPBroker) async throws {
        let topic = "/topic/talk.durable"
        let options = STOMPSubscribeOptions(durableName: "talk-durable")
        let sender = try await broker.connected()
        let client = try await broker.connected { $0.clientID = "talk-durable-client" }
        var messages: STOMPSubscription? = try await client.subscribe(to: topic, options: options)
        // Ends the consumer, and waits until the broker has done so: in mode auto it counts a message as delivered that it
        // has sent to a connection which is ending, and DISCONNECT may return before the broker has noticed.
        func release() async throws {
            var events = client.events.makeAsyncIterator()
            #expect(messages != nil)
            messages = nil
            while let event = await events.next() {
                if case .unsubscribed = event { break }
            }
            try await client.sendAndConfirm("settled", to: "/queue/talk-durable-other")
        }
        try await release()
        // Released, but still connected: the broker collects.
        try await sender.sendAndConfirm("1", to: topic)
        messages = try await client.subscribe(to: topic, options: options)
        #expect(try await messages?.texts(1) == ["1"])
        try await release()
        await client.disconnect()
        try await sender.sendAndConfirm("2", to: topic)
        try await client.connect()
        messages = try await client.subscribe(to: topic, options: options)
        #expect(try await messages?.texts(1) == ["2"])
        try await messages?.unsubscribe()
        try await sender.sendAndConfirm("lost", to: topic)
        messages = try await client.subscribe(to: topic, options: options)
        try await sender.sendAndConfirm("3", to: topic)
        #expect(try await messages?.texts(1) == ["3"])
        try await messages?.unsubscribe()
        _ = try await client.subscribe(to: "/queue/talk-durable-other").first(2)
        await client.disconnect()
        await sender.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func prefetchBoundsWhatIsNotAcknowledged(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let messages = try await client.subscribe(
            to: "/queue/talk-prefetch", acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: 2))
        for number in 0..<5 { try await client.sendAndConfirm("\(number)", to: "/queue/talk-prefetch") }
        #expect(await eventually { client.counters.messagesReceived == 2 })
        try await Task.sleep(for: .milliseconds(200))
        #expect(client.counters.messagesReceived == 2)
        var count = 0
        for try await message in messages {
            count += 1
            try message.acknowledge()
            if count == 5 { break }
        }
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func expiredMessagesDoNotCome(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let queue = "/queue/talk-expiry"
        if broker == .rabbitMQ { _ = try await client.subscribe(to: queue).unsubscribe() }
        try await client.sendAndConfirm("gone", to: queue, options: STOMPSendOptions(expiresAfter: .milliseconds(100)))
        try await client.sendAndConfirm("kept", to: queue, options: STOMPSendOptions(expiresAfter: .seconds(3600)))
        try await Task.sleep(for: .milliseconds(300))
        #expect(try await client.subscribe(to: queue).texts(1) == ["kept"])
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQObeysPrioritiesInAQueueMadeForThem() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let arguments: STOMPHeaders = ["x-max-priority": "9"]
        for priority in [1, 9, 5] {
            try await client.sendAndConfirm(
                "\(priority)", to: "/queue/talk-priority",
                options: STOMPSendOptions(priority: priority, headers: arguments))
        }
        let options = STOMPSubscribeOptions(headers: arguments)
        #expect(try await client.subscribe(to: "/queue/talk-priority", options: options).texts(3) == ["9", "5", "1"])
        await client.disconnect()
        // Whoever does not name the arguments means another queue of that name. RabbitMQ looks once per connection.
        try await client.connect()
        await expectError(.refused) { try await client.sendAndConfirm("x", to: "/queue/talk-priority") }
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQObeysSelectors() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let french = try await client.subscribe(
            to: "/topic/talk.selected", options: STOMPSubscribeOptions(selector: "country IN ('FR', 'CH') AND size > 3")
        )
        for (country, size) in [("DE", 9), ("FR", 1), ("CH", 4), ("FR", 5)] {
            try await client.send(
                "\(country)\(size)", to: "/topic/talk.selected",
                options: STOMPSendOptions(headers: ["country": country, "size": "\(size)"]))
        }
        // Headers are strings, and ActiveMQ compares them as numbers only where asked to.
        let received = try? await french.texts(2, within: .seconds(2))
        if received == nil {
            let plain = try await client.subscribe(
                to: "/topic/talk.selected", options: STOMPSubscribeOptions(selector: "country IN ('FR', 'CH')"))
            for country in ["DE", "FR", "CH"] {
                try await client.send(
                    country, to: "/topic/talk.selected", options: STOMPSendOptions(headers: ["country": country]))
            }
            #expect(try await plain.texts(2) == ["FR", "CH"])
        } else {
            #expect(received == ["CH4", "FR5"])
        }
        let error = await expectError(.refused) {
            _ = try await client.subscribe(
                to: "/topic/talk.selected", options: STOMPSubscribeOptions(selector: "country ="))
        }
        #expect(error?.serverError != nil)
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func selectorsAreRefusedForRabbitMQBeforeItIsAsked() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let error = await expectError(.unsupportedByBroker) {
            _ = try await client.subscribe(to: "/topic/t", options: STOMPSubscribeOptions(selector: "a = 'b'"))
        }
        #expect(error?.message.contains("RabbitMQ") == true)
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func wildcardsBringMessagesOfOtherDestinations(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let many = broker == .rabbitMQ ? "#" : ">"
        let one = try await client.subscribe(to: "/topic/talk.wild.*.end")
        let all = try await client.subscribe(to: "/topic/talk.wild.\(many)")
        for name in ["talk.wild.a.end", "talk.wild.a.b.end", "talk.wild"] {
            try await client.sendAndConfirm(name, to: "/topic/\(name)")
        }
        #expect(try await one.first(1).map(\.destination) == ["/topic/talk.wild.a.end"])
        #expect(try await all.texts(3) == ["talk.wild.a.end", "talk.wild.a.b.end", "talk.wild"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func quietConnectionIsKeptByItsHeartBeats(broker: STOMPBroker) async throws {
        let client = try await broker.connected {
            $0.outgoingHeartBeat = .seconds(2)
            $0.incomingHeartBeat = .seconds(2)
        }
        // Either side would notice missing heart-beats after six seconds, and may do so too on a busy machine, but not
        // again and again.
        let isKept = try await eventually(every: .zero) {
            let connections = client.counters.connections
            try await Task.sleep(for: .seconds(7))
            return client.counters.connections == connections && client.state.isConnected
        }
        #expect(isKept)
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func oddNamesAndLargeBodiesArriveUnchanged(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        // A line feed in a name is not for brokers: RabbitMQ strips it when it makes the queue, and then finds none.
        let queue = "/queue/a:b\\c d é🛰"
        let messages = try await client.subscribe(to: queue)
        var random = SeededGenerator(seed: Campaign.seed)
        let large = random.bytes(8 << 20)
        let bodies: [[UInt8]] = [
            [], [0], [0, 0, 0], Array("\n\n\0\n".utf8), Array("a:b\\c\nd\r\n🛰".utf8), [UInt8](0...255), large,
        ]
        let value = "a:b\\c\\nd\ne\r\nf 🛰  "
        for body in bodies {
            try await client.sendAndConfirm(
                body, to: queue, options: STOMPSendOptions(headers: ["x\\y:z\n🛰": value, "empty": ""]))
        }
        for (message, body) in zip(try await messages.first(bodies.count), bodies) {
            #expect(message.body.elementsEqual(body))
            #expect(message.header("x\\y:z\n🛰") == value)
            #expect(message.header("empty") == "")
        }
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func overlappingSubscriptionsGetACopyEach(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let first = try await client.subscribe(to: "/topic/talk.twice")
        let second = try await client.subscribe(to: "/topic/talk.*")
        try await client.send("x", to: "/topic/talk.twice")
        #expect(try await first.texts(1) == ["x"])
        #expect(try await second.texts(1) == ["x"])
        await client.disconnect()
    }
}

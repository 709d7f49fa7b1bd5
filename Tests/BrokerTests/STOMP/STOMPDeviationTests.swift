import Synchronization
import TestSupport
import Testing

@testable import STOMP
@testable import STOMPCore

/// Where the brokers depart from the specification, and what a user of the client sees of it; `STOMPDeviationTableTests`
/// lists which test shows what.
@Suite(.serialized, .requires(anyOf: .activeMQ, .rabbitMQ), .turns)
struct STOMPDeviationTests {
    @Test(.requires(.rabbitMQ)) func rabbitMQErrorEndsTheSessionThoughTheSocketStaysOpen() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let transaction = try client.begin()
        try client.abort(transaction)
        let error = await expectError(.refused) { try await client.sendAndConfirm("x", to: "/nonsense/x") }
        #expect(error?.serverError?.receiptID == nil)
        #expect(error?.message.contains("nonsense") == true, "\(error?.message ?? "")")
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        try await client.sendAndConfirm("x", to: "/topic/nobody")
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQReceiptAfterAnErrorDoesNotOverturnIt() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let error = await expectError(.refused) { _ = try await client.subscribe(to: "/amq/queue/missing") }
        #expect(
            error?.serverError?.detail.contains("NOT_FOUND") == true || error?.message.contains("not_found") == true)
        #expect(await eventually { client.counters.connections == 2 })
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func refusedDestinationIsToldByEachBrokerInItsWords() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let error = await expectError(.refused) {
            _ = try await client.subscribe(to: "/temp-queue/x", options: STOMPSubscribeOptions(selector: "a b c"))
        }
        #expect(error?.serverError?.receiptID != nil)
        // The body is a stack trace; the message is one line of it.
        #expect(error.map { !$0.message.contains("\n") } == true)
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQClientIDInUseHealsByItself() async throws {
        let port = try await SharedBrokers.activeMQ().stompPort
        let old = try await RawConnection.open(port: port)
        try await old.send("CONNECT\naccept-version:1.2\nhost:localhost\nclient-id:healing\n\n\0")
        #expect(try await old.receiveFrame().hasPrefix("CONNECTED\n"))
        let client = try await STOMPBroker.activeMQ.client {
            $0.clientID = "healing"
            $0.reconnect.firstConnectAttempts = nil
        }
        var events = client.events.makeAsyncIterator()
        let connecting = Task { try await client.connect() }
        while let event = await events.next() {
            if case .errorReceived(let error) = event {
                #expect(error.message.contains("already connected from"))
                break
            }
        }
        try await old.send("DISCONNECT\n\n\0")
        try await connecting.value
        try await client.sendAndConfirm("x", to: "/topic/nobody")
        await client.disconnect()
    }

    @Test(.requires(.activeMQ, .rabbitMQ)) func activeMQLimitsAreToldBeforeTheyAreReached() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let long = String(repeating: "x", count: 11_000)
        await expectError(.invalidRequest) {
            try await client.send("x", to: "/queue/limits", options: STOMPSendOptions(headers: ["long": long]))
        }
        var many = STOMPHeaders()
        for number in 0..<1100 { many.add("h\(number)", "v") }
        let options = STOMPSendOptions(headers: many)
        await expectError(.invalidRequest) { try await client.send("x", to: "/queue/limits", options: options) }
        let fits = STOMPSendOptions(headers: ["long": String(repeating: "x", count: 9_000)])
        let messages = try await client.subscribe(to: "/queue/limits")
        try await client.sendAndConfirm("x", to: "/queue/limits", options: fits)
        #expect(try await messages.first(1).first?.header("long")?.utf8.count == 9_000)
        await client.disconnect()
        // RabbitMQ takes both.
        let other = try await STOMPBroker.rabbitMQ.connected()
        let received = try await other.subscribe(to: "/queue/limits")
        try await other.sendAndConfirm("x", to: "/queue/limits", options: options)
        try await other.sendAndConfirm(
            "x", to: "/queue/limits", options: STOMPSendOptions(headers: ["long": long]))
        let two = try await received.first(2)
        #expect(two[0].header("h1099") == "v")
        #expect(two[1].header("long") == long)
        await other.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQTextMessagesComeWithoutALength() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let messages = try await client.subscribe(to: "/queue/length")
        var text = STOMPSendOptions()
        text.omitsContentLength = true
        try await client.sendAndConfirm("é🛰\n", to: "/queue/length", options: text)
        try await client.sendAndConfirm("a\0b", to: "/queue/length", options: text)
        let two = try await messages.first(2)
        #expect(two[0].text == "é🛰\n")
        #expect(two[0].header("content-length") == nil)
        // A NUL needs its length, whatever was asked for.
        #expect(two[1].text == "a\0b")
        #expect(two[1].header("content-length") == "3")
        // A header of its own overrules that.
        text.headers = ["amq-msg-type": "bytes"]
        try await client.sendAndConfirm("bytes", to: "/queue/length", options: text)
        #expect(try await messages.first(1).first?.header("content-length") == "5")
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQAlwaysTellsTheLength() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let messages = try await client.subscribe(to: "/queue/length")
        var text = STOMPSendOptions()
        text.omitsContentLength = true
        try await client.sendAndConfirm("é🛰", to: "/queue/length", options: text)
        #expect(try await messages.first(1).first?.header("content-length") == "6")
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQShowsHeadersOfTransactionsThatDoNoHarm() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let messages = try await client.subscribe(to: "/queue/leak", acknowledgement: .clientIndividual)
        try await client.withTransaction { transaction in
            _ = try await client.sendForReceipt(STOMPOutgoingMessage([1], to: "/queue/leak"), in: transaction)
        }
        let message = try #require(try await messages.first(1).first)
        #expect(message.header("transaction") != nil && message.header("receipt") != nil)
        try message.acknowledge()
        try await client.sendAndConfirm("next", to: "/topic/nobody")
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func receiptInATransactionComesAtOnceOrWithItsCommit(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let messages = try await client.subscribe(to: "/queue/early")
        let transaction = try client.begin()
        let receipt = try await client.sendForReceipt(STOMPOutgoingMessage([65], to: "/queue/early"), in: transaction)
        let isConfirmed = Atomic(false)
        let waiting = Task {
            try await receipt.confirmed()
            isConfirmed.store(true, ordering: .relaxed)
        }
        // What is confirmed later shows that the other has been dealt with.
        try await client.sendAndConfirm("x", to: "/topic/nobody")
        if broker == .activeMQ { try await waiting.value }
        #expect(isConfirmed.load(ordering: .relaxed) == (broker == .activeMQ))
        try await client.commit(transaction)
        try await waiting.value
        #expect(try await messages.texts(1) == ["A"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func ackHeaderIsTheMessageIDOrNot(broker: STOMPBroker) async throws {
        let client = try await broker.connected()
        let messages = try await client.subscribe(to: "/queue/ack", acknowledgement: .clientIndividual)
        try await client.sendAndConfirm("x", to: "/queue/ack")
        let message = try #require(try await messages.first(1).first)
        #expect((message.header("ack") == message.messageID) == (broker == .rabbitMQ))
        try message.acknowledge()
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQConfirmsWhatItLoses() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        // Nobody is told that there is no such queue, and nothing can be done about it but to send to /queue.
        try await client.sendAndConfirm("lost", to: "/amq/queue/deviation-lost")
        let messages = try await client.subscribe(to: "/queue/deviation-lost")
        try await client.sendAndConfirm("kept", to: "/amq/queue/deviation-lost")
        #expect(try await messages.texts(1) == ["kept"])
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQMakesReplyQueuesByItselfOnly() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        await expectError(.refused) { _ = try await client.subscribe(to: "/temp-queue/mine") }
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        let questions = try await client.subscribe(to: "/queue/deviation-questions")
        async let asking = client.request("question", to: "/queue/deviation-questions", timeout: .patience)
        let question = try #require(try await questions.first(1).first)
        #expect(question.header("reply-to")?.hasPrefix("/reply-queue/") == true)
        try await client.reply(to: question, with: [33])
        #expect(try await asking.text == "!")
        await client.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQShowsOthersARemoteNameOfTheReplyQueue() async throws {
        let client = try await STOMPBroker.activeMQ.connected()
        let service = try await STOMPBroker.activeMQ.connected()
        let questions = try await service.subscribe(to: "/queue/deviation-questions")
        async let asking = client.request("question", to: "/queue/deviation-questions", timeout: .patience)
        let question = try #require(try await questions.first(1).first)
        #expect(question.header("reply-to")?.hasPrefix("/remote-temp-queue/") == true)
        try await service.reply(to: question, with: [33])
        #expect(try await asking.text == "!")
        await client.disconnect()
        await service.disconnect()
    }

    @Test(.requires(.activeMQ, .rabbitMQ)) func hostAndClientIDAreIgnoredByOneEach() async throws {
        let anywhere = try await STOMPBroker.activeMQ.connected { $0.host = "nowhere" }
        try await anywhere.sendAndConfirm("x", to: "/topic/nobody")
        await anywhere.disconnect()
        let twins = [
            try await STOMPBroker.rabbitMQ.connected { $0.clientID = "twin" },
            try await STOMPBroker.rabbitMQ.connected { $0.clientID = "twin" },
        ]
        for twin in twins {
            try await twin.sendAndConfirm("x", to: "/topic/nobody")
            #expect(twin.counters.connections == 1)
            await twin.disconnect()
        }
    }

    @Test(.requires(.activeMQ, .rabbitMQ)) func durableSubscriptionThatWouldBeNobodysIsRefused() async throws {
        let options = STOMPSubscribeOptions(durableName: "deviation-durable")
        // ActiveMQ would take it without a client-id, and keep messages for nobody.
        let nameless = try await STOMPBroker.activeMQ.connected()
        await expectError(.invalidRequest) { _ = try await nameless.subscribe(to: "/topic/d", options: options) }
        await nameless.disconnect()
        // The name is the id: RabbitMQ refuses a second of it with an ERROR, ActiveMQ takes it and confuses both.
        for broker in STOMPBroker.allCases {
            let client = try await broker.connected { $0.clientID = "deviation-durable-client" }
            let messages = try await client.subscribe(to: "/topic/d", options: options)
            await expectError(.invalidRequest) { _ = try await client.subscribe(to: "/topic/d", options: options) }
            #expect(client.counters.connections == 1)
            try await client.sendAndConfirm("x", to: "/topic/d")
            #expect(try await messages.texts(1) == ["x"])
            try await messages.unsubscribe()
            await client.disconnect()
        }
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQQueueOfADurableSubscriptionMayBeNamed() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let options = STOMPSubscribeOptions(durableName: "named", headers: ["x-queue-name": "deviation-named"])
        let messages = try await client.subscribe(to: "/topic/deviation-named", options: options)
        try await client.sendAndConfirm("x", to: "/amq/queue/deviation-named")
        #expect(try await messages.texts(1) == ["x"])
        try await messages.unsubscribe()
        try await client.sendAndConfirm("lost", to: "/topic/deviation-named")
        // The queue is gone.
        await expectError(.refused) { _ = try await client.subscribe(to: "/amq/queue/deviation-named") }
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQDeletesDurableSubscriptionsToTopicsOnly() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        let options = STOMPSubscribeOptions(durableName: "deviation-exchange")
        let destination = "/exchange/amq.topic/deviation.exchange"
        let messages = try await client.subscribe(to: destination, options: options)
        for _ in 0..<2 {
            let error = await expectError(.unsupportedByBroker) { try await messages.unsubscribe() }
            #expect(error?.message.contains(destination) == true)
        }
        #expect(client.counters.connections == 1)
        // Its queue goes on collecting.
        try await client.sendAndConfirm("kept", to: destination)
        let again = try await client.subscribe(to: destination, options: options)
        #expect(try await again.texts(1) == ["kept"])
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQAcknowledgesOtherSubscriptionsInModeClient() async throws {
        let raw = try await STOMPBroker.rabbitMQ.rawConnection()
        var ack = ""
        for name in ["deviation-one", "deviation-two"] {
            try await raw.send("SUBSCRIBE\nid:\(name)\ndestination:/queue/\(name)\nack:client\n\n\0")
            try await raw.send("SEND\ndestination:/queue/\(name)\n\n\(name)\0")
            let lines = try await raw.receiveFrame().split(separator: "\n")
            ack = lines.first { $0.hasPrefix("ack:") }.map { String($0.dropFirst(4)) } ?? ""
        }
        try await raw.send("ACK\nid:\(ack)\nreceipt:done\n\n\0")
        #expect(try await raw.receiveFrame().hasPrefix("RECEIPT"))
        try await raw.send("DISCONNECT\n\n\0")
        _ = try? await raw.receiveFrame()
        let client = try await STOMPBroker.rabbitMQ.connected()
        let one = try await client.subscribe(to: "/queue/deviation-one", acknowledgement: .client)
        try await client.sendAndConfirm("next", to: "/queue/deviation-one")
        #expect(try await one.texts(1) == ["next"], "the other message of the connection was acknowledged")
        await expectError(.unsupportedByBroker) {
            _ = try await client.subscribe(to: "/queue/deviation-two", acknowledgement: .client)
        }
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQPassesOverSelectors() async throws {
        let client = try await STOMPBroker.rabbitMQ.connected()
        // As a plain header it is nobody's wish: everything comes.
        let options = STOMPSubscribeOptions(headers: ["selector": "country = 'FR'"])
        let messages = try await client.subscribe(to: "/topic/deviation-selector", options: options)
        try await client.sendAndConfirm(
            "DE", to: "/topic/deviation-selector", options: STOMPSendOptions(headers: ["country": "DE"]))
        #expect(try await messages.texts(1) == ["DE"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func brokerOfAnOlderVersionKeepsToIt(broker: STOMPBroker) async throws {
        for version in STOMPVersion.allCases {
            let client = try await broker.client { $0.versions = [version] }
            var events = client.events.makeAsyncIterator()
            try await client.connect()
            while let event = await events.next() {
                guard case .connected(let connected) = event else { continue }
                #expect(connected.version == version)
                #expect(connected.profile.name == (broker == .rabbitMQ ? "RabbitMQ" : "ActiveMQ Classic"))
                break
            }
            let messages = try await client.subscribe(to: "/queue/version")
            try await client.sendAndConfirm("x", to: "/queue/version", options: STOMPSendOptions(headers: ["a": "b c"]))
            #expect(try await messages.first(1).first?.header("a") == "b c")
            await client.disconnect()
        }
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQWebSocketCloseAfterDisconnectIsSuccess() async throws {
        var configuration = STOMPConfiguration()
        configuration.allowSlowBrokers()
        configuration.credentials = Credentials(userName: "guest", password: "guest")
        let port = try await SharedBrokers.rabbitMQ().webStompPort
        let client = STOMPClient("ws://127.0.0.1:\(port)/ws", configuration: configuration)
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/web")
        let body = [UInt8](0...255)
        try await client.sendAndConfirm(body, to: "/queue/web")
        #expect(try await messages.first(1).first?.bytes == body)
        // The RECEIPT never comes, a close frame does; this would not end if the RECEIPT were waited for.
        client.core.link.perform { $0.engine.configuration.disconnectTimeout = 3_600_000_000_000 }
        try await withTimeout(.patience, "disconnecting") { await client.disconnect() }
        if case .disconnected(nil) = client.state {} else { Issue.record("\(client.state)") }
    }

    @Test(.requires(.rabbitMQ)) func vanishedServerIsNotAServer() async throws {
        let client = STOMPClient("stomp://127.0.0.1:\(try await SharedBrokers.rabbitMQ().webStompPort)")
        // RabbitMQ's HTTP listener answers in its own language.
        await #expect { try await client.connect() } throws: { error in
            let code = (error as? STOMPError)?.code
            return code == .protocolError || code == .connectionLost
        }
    }
}

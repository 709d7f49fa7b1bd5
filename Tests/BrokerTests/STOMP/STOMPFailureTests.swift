import STOMP
import Synchronization
import TestSupport
import Testing

/// Brokers that refuse, freeze, restart and are killed. They are this suite's own.
@Suite(.serialized, .requires(anyOf: .activeMQ, .rabbitMQ), .turns)
struct STOMPFailureTests {
    @Test(arguments: STOMPBroker.usable)
    func wrongPasscodeIsNotTriedAgain(broker: STOMPBroker) async throws {
        let name = broker == .rabbitMQ ? "guest" : "ann"
        let asked = Atomic(0)
        let client = try await broker.ownClient {
            $0.reconnect.firstConnectAttempts = nil
            $0.credentials = nil
            $0.credentialsProvider = { _ in
                asked.add(1, ordering: .relaxed)
                return Credentials(userName: name, password: "wrong")
            }
        }
        let error = await expectError(.badCredentials) { try await client.connect() }
        #expect(error?.serverError != nil)
        #expect(asked.load(ordering: .relaxed) == 2, "fresh credentials are asked for once")
        let right = try await broker.ownClient()
        try await right.connect()
        await right.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQTakesABackslashInAPasscodeWithItsEscaping() async throws {
        let credentials = Credentials(userName: #"do\main"#, password: #"pass\word:1"#)
        let plain = try await STOMPBroker.rabbitMQ.ownClient { $0.credentials = credentials }
        let error = await expectError(.connectionLost) { try await plain.connect() }
        #expect(error?.message.contains("asRabbitMQReads") == true, "\(error?.message ?? "")")
        let escaping = try await STOMPBroker.rabbitMQ.ownClient {
            $0.credentials = credentials
            $0.connectEscaping = .asRabbitMQReads
        }
        try await escaping.connect()
        try await escaping.sendAndConfirm("x", to: "/topic/nobody")
        await escaping.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQTakesABackslashInAPasscodeWithRabbitMQsEscaping() async throws {
        let credentials = Credentials(userName: #"do\main"#, password: #"pass\nword"#)
        let plain = try await STOMPBroker.activeMQ.ownClient { $0.credentials = credentials }
        let error = await expectError(.badCredentials) { try await plain.connect() }
        #expect(error?.message.contains("asRabbitMQReads") == true, "\(error?.message ?? "")")
        let client = try await STOMPBroker.activeMQ.ownClient {
            $0.credentials = credentials
            $0.connectEscaping = .asRabbitMQReads
        }
        try await client.connect()
        try await client.sendAndConfirm("x", to: "/topic/nobody")
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQPutsBytesIntoTextMessagesOfAWebSocket() async throws {
        let port = try await OwnBrokers.rabbitMQ.value().webStompPort
        var configuration = STOMPConfiguration()
        configuration.allowSlowBrokers()
        let client = STOMPClient("ws://guest:guest@127.0.0.1:\(port)/ws", configuration: configuration)
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/web-bytes")
        let body = [UInt8](0...255)
        try await client.sendAndConfirm(body, to: "/queue/web-bytes")
        #expect(try await messages.first(1).first?.bytes == body)
        #expect(client.counters.connections == 1)
        await client.disconnect()
        if case .disconnected(nil) = client.state {} else { Issue.record("\(client.state)") }
    }

    @Test(.requires(.rabbitMQ)) func rabbitMQTakesTheHostForAVirtualHost() async throws {
        let second = try await STOMPBroker.rabbitMQ.ownClient { $0.host = "second" }
        try await second.connect()
        try await second.sendAndConfirm("only there", to: "/queue/host")
        let first = try await STOMPBroker.rabbitMQ.ownClient()
        try await first.connect()
        try await first.sendAndConfirm("here", to: "/queue/host")
        #expect(try await first.subscribe(to: "/queue/host").texts(1) == ["here"])
        #expect(try await second.subscribe(to: "/queue/host").texts(1) == ["only there"])
        let wrong = try await STOMPBroker.rabbitMQ.ownClient { $0.host = "nowhere" }
        await #expect { try await wrong.connect() } throws: { ($0 as? STOMPError)?.serverError != nil }
        await first.disconnect()
        await second.disconnect()
    }

    @Test(.requires(.activeMQ)) func activeMQObeysPriorities() async throws {
        let client = try await STOMPBroker.activeMQ.ownClient()
        try await client.connect()
        for priority in [1, 9, 5] {
            try await client.sendAndConfirm(
                "\(priority)", to: "/queue/priority.q", options: STOMPSendOptions(priority: priority))
        }
        let messages = try await client.subscribe(to: "/queue/priority.q", acknowledgement: .clientIndividual)
        #expect(try await messages.first(1).first?.text == "9")
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func frozenBrokerIsNoticedAndComeBackTo(broker: STOMPBroker) async throws {
        let own = try await broker.own()
        let client = try await broker.ownClient {
            $0.clientID = "frozen"
            $0.outgoingHeartBeat = .seconds(2)
            $0.incomingHeartBeat = .seconds(2)
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/frozen")
        let events = client.events
        await own.freeze()
        // On a busy machine the broker may have closed a connection before.
        let reason = await events.first {
            if case .connectionLost = $0 { "\($0)".contains("heart-beat") } else { false }
        }
        #expect(reason != nil)
        // Nor does stopping wait for it.
        let other = try await broker.ownClient { $0.connectTimeout = .milliseconds(300) }
        let stopping = Task {
            try? await other.connect()
            await other.disconnect()
        }
        own.thaw()
        // ActiveMQ refuses the same client-id until it has dropped the old connection.
        #expect(await eventually { client.state.isConnected })
        try await client.sendAndConfirm("x", to: "/queue/frozen")
        #expect(try await messages.texts(1) == ["x"])
        await stopping.value
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func persistentMessagesOutliveARestart(broker: STOMPBroker) async throws {
        let own = try await broker.own()
        let client = try await broker.ownClient()
        try await client.connect()
        let options = STOMPSendOptions(persistent: true)
        for number in 0..<10 { try await client.sendAndConfirm("\(number)", to: "/queue/restart", options: options) }
        let other = try await client.subscribe(to: "/queue/restart-other")
        try await own.restart()
        #expect(await eventually { client.state.isConnected && client.counters.connections > 1 })
        #expect(try await client.subscribe(to: "/queue/restart").texts(10) == (0..<10).map { "\($0)" })
        try await client.sendAndConfirm("x", to: "/queue/restart-other")
        #expect(try await other.texts(1) == ["x"])
        await client.disconnect()
    }

    @Test(arguments: STOMPBroker.usable)
    func noConfirmedMessageIsLostWhenTheBrokerIsKilled(broker: STOMPBroker) async throws {
        let own = try await broker.own()
        let messages = NumberedMessages(Campaign.rounds(100_000, least: 1000), to: "/queue/killed", of: broker)
        let client = try await broker.ownClient()
        try await client.connect()
        if broker == .rabbitMQ {
            // RabbitMQ keeps a new queue's definition in memory for a while: killed within seconds of declaring it, it
            // forgets the queue with all that is in it (seen: 400 of 400). An orderly restart writes it down.
            try await client.sendAndConfirm(
                "declares the queue", to: messages.queue, options: STOMPSendOptions(persistent: true))
            try await own.restart()
            #expect(
                await eventually { client.state.isConnected && client.counters.connections > 1 })
        }
        let connections = client.counters.connections
        let start = ContinuousClock.now
        let confirmed = try await messages.send {
            await own.kill()
            try await own.restart()
        }
        let sending = ContinuousClock.now - start
        #expect(
            await eventually {
                client.state.isConnected && client.counters.connections > connections
            })
        #expect(confirmed.count >= messages.count / 4)
        let received = try await messages.receive(over: client)
        let missing = confirmed.count { received[$0] == 0 }
        #expect(missing == 0, "\(missing) of \(confirmed.count) confirmed messages are lost")
        let distinct = received.count { $0 > 0 }
        print(
            """
            \(broker): \(confirmed.count) of \(messages.count) messages were confirmed, in \(sending); \(distinct) came \
            back and \(received.reduce(0, +) - distinct) of them again, in \(ContinuousClock.now - start - sending)
            """)
        await client.disconnect()
    }
}

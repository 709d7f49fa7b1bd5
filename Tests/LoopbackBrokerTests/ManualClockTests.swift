import ClientTestSupport
import MQTT
import MessagingShell
import STOMP
import Synchronization
import TestSupport
import Testing
import Transport

@testable import LoopbackBroker

/// Minutes and hours of both clients and of the broker, in no time.
@Suite(.turns) struct ManualClockTests {
    // MARK: Silence

    @Test func aSilentServerIsNoticedAfterKeepAliveAndPingTimeout() async throws {
        try await withMQTT { broker, client, clock in
            var pings = broker.arrivals().makeAsyncIterator()
            for _ in 0..<3 {
                await clock.advance(by: .seconds(45))
                #expect(await pings.next()?.packet == .mqtt(.pingreq))
            }
            await broker.freeze()
            await clock.advance(by: .seconds(54))
            #expect(client.state.isConnected)
            await clock.advance(by: .seconds(2))
            #expect(!client.state.isConnected)
            await broker.thaw()
            await clock.advance(by: .seconds(1))
            #expect(client.state.isConnected)
            #expect(client.counters.connections == 2)
        }
    }

    @Test func aPingThatGetsLostEndsTheConnection() async throws {
        try await withMQTT { broker, client, clock in
            broker.inject(.drop, .received, .mqtt(.pingreq))
            var states = client.states.makeAsyncIterator()
            _ = await states.next()
            await clock.advance(by: .seconds(89))
            while let state = await states.next(), state.isConnected {}
            #expect(client.state.isConnected)
            #expect(broker.statistics.connections == 2)
        }
    }

    @Test func aSilentSTOMPServerIsNoticedAfterTwoHeartBeats() async throws {
        try await withSTOMP { broker, client, clock in
            await clock.advance(by: .seconds(3600))
            #expect(client.counters.connections == 1)
            await broker.freeze()
            await clock.advance(by: .seconds(25))
            #expect(!client.state.isConnected)
            await broker.thaw()
            await clock.advance(by: .seconds(120))
            #expect(client.state.isConnected)
            #expect(client.counters.connections == 2)
        }
    }

    // MARK: Expiry

    @Test func `a STOMP message expires by the time of day of the clock, however it says so`() async throws {
        try await withSTOMP { broker, client, clock in
            // Were one side to read the system's clock, an hour would lie between them.
            await clock.advance(by: .seconds(3600))
            for (text, time) in [("short", Duration.seconds(1)), ("long", .seconds(60))] {
                try await client.sendAndConfirm(text, to: "/queue/q", options: STOMPSendOptions(expiresAfter: time))
            }
            await broker.send("relative", to: "/queue/q", headers: ["expiration": "1000"])
            await broker.send("never", to: "/queue/q", headers: ["expires": "0"])
            await clock.advance(by: .seconds(10))
            var messages = try await client.subscribe(to: "/queue/q").makeAsyncIterator()
            #expect(try await messages.next()?.text == "long")
            #expect(try await messages.next()?.text == "never")
            #expect(broker.statistics.messagesDropped == 2)
        }
    }

    @Test func `an MQTT 5 subscriber is told when the message of a STOMP client expires`() async throws {
        try await withMQTT { broker, client, clock in
            var messages = try await client.subscribe(to: "a").makeAsyncIterator()
            await broker.send("1", to: "/topic/a", headers: ["expiration": "60000"])
            #expect(try await messages.next()?.properties.messageExpiryInterval == 60)
        }
    }

    @Test func `a message does not expire in the dead-letter queue`() async throws {
        var options = LoopbackBrokerOptions()
        options.refusedMessages = .deadLetterQueue("/queue/dead")
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(options, clock: clock)
        let client = STOMPClient(try broker.stompURL, clock: clock)
        try await client.connect()
        await broker.send("1", to: "/queue/q", headers: ["expiration": "1000"])
        var orders = try await client.subscribe(to: "/queue/q", acknowledgement: .clientIndividual).makeAsyncIterator()
        let order = try await orders.next()
        let arrivals = broker.arrivals()
        try order?.reject()
        _ = await arrivals.first { $0.packet == .stomp(.nack) }
        await clock.advance(by: .seconds(10))
        var dead = try await client.subscribe(to: "/queue/dead").makeAsyncIterator()
        #expect(try await dead.next()?.text == "1")
        await client.disconnect()
        await broker.stop()
    }

    // MARK: Cancelling

    @Test func `a cancelled publish returns before any time has passed on the clock`() async throws {
        try await withMQTT { broker, client, clock in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            for qos in [QoS.atLeastOnce, .exactlyOnce] {
                await Self.cancel(onceArrivedAt: broker, clock) { try await client.publish("1", to: "a", qos: qos) }
            }
            await Self.cancel(onceArrivedAt: broker, clock) {
                try await client.publishForConfirmation(MQTTOutgoingMessage("1", to: "a")).confirmed()
            }
            let messages = Array(repeating: MQTTOutgoingMessage("1", to: "a", qos: .atLeastOnce), count: 3)
            await Self.cancel(onceArrivedAt: broker, clock) { try await client.publish(messages).check() }
        }
    }

    @Test func `a cancelled sendAndConfirm returns before any time has passed on the clock`() async throws {
        try await withSTOMP { broker, client, clock in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            await Self.cancel(onceArrivedAt: broker, clock) { try await client.sendAndConfirm("1", to: "/queue/a") }
            let messages = Array(repeating: STOMPOutgoingMessage("1", to: "/queue/a"), count: 3)
            await Self.cancel(onceArrivedAt: broker, clock) { try await client.sendAndConfirm(messages).check() }
            let transaction = try client.begin()
            await Self.cancel(onceArrivedAt: broker, clock) { try await client.commit(transaction) }
        }
    }

    /// Cancels a call that waits for an answer.
    private static func cancel(
        onceArrivedAt broker: LoopbackBroker, _ clock: ManualClock,
        _ body: @escaping @Sendable () async throws -> some Sendable
    ) async {
        var arrivals = broker.arrivals().makeAsyncIterator()
        let error = Mutex<(any Error)?>(nil)
        let call = Task {
            do { _ = try await body() } catch let reason { error.withLock { $0 = reason } }
        }
        _ = await arrivals.next()
        call.cancel()
        let isOver = await eventually { error.withLock { $0 } != nil }
        #expect(isOver)
        // So that the test ends all the same.
        if !isOver { await clock.advance(by: .seconds(60)) }
        await call.value
        #expect(error.withLock { "\($0.map { "\($0)" } ?? "")" }.contains("cancelled"))
    }

    // MARK: Connecting again

    @Test(arguments: [true, false]) func attemptsAreMadeAfterDelaysThatGrowToMinutes(isMQTT: Bool) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let policy = ReconnectPolicy(
            initialDelay: .seconds(60), maximumDelay: .seconds(600), jitter: 0, stableAfter: .zero, spread: .zero)
        var mqtt = MQTTConfiguration()
        mqtt.reconnect = policy
        var stomp = STOMPConfiguration()
        stomp.reconnect = policy
        let clients = (
            MQTTClient(broker.urls.mqtt ?? "", configuration: mqtt, clock: clock),
            STOMPClient(broker.urls.stomp ?? "", configuration: stomp, clock: clock)
        )
        if isMQTT { try await clients.0.connect() } else { try await clients.1.connect() }
        broker.changeFaults { $0.refusesConnections = true }
        await broker.dropAllConnections()
        // At once, and after 1, 3, 7, 15 and 25 minutes.
        for (minutes, attempts) in [(0.9, 2), (0.2, 3), (2, 4), (4, 5), (8, 6), (10, 7), (9.5, 7), (0.5, 8)] {
            await clock.advance(by: .seconds(minutes * 60))
            #expect(broker.statistics.connections == attempts, "\(minutes)")
        }
        broker.changeFaults { $0.refusesConnections = false }
        await clock.advance(by: .seconds(600))
        #expect(isMQTT ? clients.0.state.isConnected : clients.1.state.isConnected)
        await clients.0.disconnect()
        await clients.1.disconnect()
        await broker.stop()
    }

    @Test func anAttemptThatIsNotAnsweredEndsAtItsTimeout() async throws {
        let clock = try ManualClock()
        var options = LoopbackBrokerOptions()
        options.faults.ignoresConnect = true
        let broker = try await LoopbackBroker.judged(options, clock: clock)
        let client = MQTTClient(broker.urls.mqtt ?? "", clock: clock)
        var arrivals = broker.arrivals().makeAsyncIterator()
        let connecting = Task { try await client.connect() }
        #expect(await arrivals.next()?.packet == .mqtt(.connect))
        await clock.advance(by: .seconds(30))
        await #expect(throws: MQTTError.self) { try await connecting.value }
        await broker.stop()
    }

    @Test func aCredentialsProviderMaySleepOnTheClock() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        configuration.reconnect = ReconnectPolicy(firstConnectAttempts: nil)
        configuration.credentialsProvider = { request in
            try await clock.sleep(for: .seconds(request.attempt == 1 ? 300 : 5))
            return Credentials(userName: "late")
        }
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        var states = client.states.makeAsyncIterator()
        async let connecting: Void = client.connect()
        while let state = await states.next() {
            if case .connecting = state { break }
        }
        await clock.advance(by: .seconds(20))
        #expect(broker.statistics.connections == 0)
        await clock.advance(by: .seconds(60))
        try await connecting
        #expect(broker.statistics.connections == 1)
        await client.disconnect()
        await broker.stop()
    }

    @Test func noTimePassesWhileASessionStoreIsWriting() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "meter")
        configuration.version = .v5_0
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(600)
        configuration.sessionStore = SlowStore()
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        await client.start()
        // CONNECT leaves when the store has recorded the session. Meanwhile the attempt must not time out.
        await clock.advance(by: .seconds(120))
        #expect(client.state.isConnected)
        #expect(broker.statistics.connections == 1)
        await client.disconnect()
        await broker.stop()
    }

    // MARK: Expiry

    @Test func aSessionExpires() async throws {
        try await withMQTT { broker, client, clock in
            await client.disconnect()
            await clock.advance(by: .seconds(599))
            #expect(broker.sessionCount == 1)
            await clock.advance(by: .seconds(1))
            #expect(broker.sessionCount == 0)
        }
    }

    @Test func messagesExpireAndRetainedOnesToo() async throws {
        try await withMQTT { broker, client, clock in
            let received = try await client.subscribe(to: "#", qos: .atLeastOnce)
            await client.suspend()
            var properties = MQTTProperties()
            properties.messageExpiryInterval = 30
            await broker.publish("gone", to: "a", retain: true, properties: properties)
            properties.messageExpiryInterval = 90
            await broker.publish("there", to: "b", retain: true, properties: properties)
            await clock.advance(by: .seconds(40))
            client.resume()
            try await client.connect()
            var messages = received.makeAsyncIterator()
            let first = try await messages.next()
            #expect(first?.text == "there")
            #expect(first?.properties.messageExpiryInterval == 50)
            let retained = try await client.subscribe(to: "+", qos: .atLeastOnce)
            var kept = retained.makeAsyncIterator()
            #expect(try await kept.next()?.text == "there")
            await clock.advance(by: .seconds(50))
            let last = try await client.subscribe(to: "+/#", qos: .atLeastOnce)
            try await client.publish("end", to: "c", qos: .atLeastOnce)
            var rest = last.makeAsyncIterator()
            #expect(try await rest.next()?.text == "end")
        }
    }

    @Test func `a retained message is not counted when it has expired`() async throws {
        try await withMQTT { broker, client, clock in
            var properties = MQTTProperties()
            properties.messageExpiryInterval = 30
            try await client.publish("1", to: "a", qos: .atLeastOnce, retain: true, properties: properties)
            await clock.advance(by: .seconds(29))
            #expect(broker.retainedCount == 1)
            await clock.advance(by: .seconds(1))
            #expect(broker.retainedCount == 0)
        }
    }

    // MARK: Timeouts and latency

    @Test func requestsTimeOut() async throws {
        try await withMQTT { broker, client, clock in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var arrivals = broker.arrivals().makeAsyncIterator()
            let subscription = Task { _ = try await client.subscribe(to: "a") }
            #expect(await arrivals.next()?.packet == .mqtt(.subscribe))
            await clock.advance(by: .seconds(10))
            let failure = await #expect(throws: MQTTError.self) { try await subscription.value }
            #expect(failure?.code == .timedOut)
            broker.changeFaults { $0.withholdsAcknowledgements = false }
        }
        try await withSTOMP { broker, client, clock in
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var arrivals = broker.arrivals().makeAsyncIterator()
            let sending = Task { try await client.sendAndConfirm("1", to: "/queue/a") }
            #expect(await arrivals.next()?.packet == .stomp(.send))
            await clock.advance(by: .seconds(30))
            let failure = await #expect(throws: STOMPError.self) { try await sending.value }
            #expect(failure?.code == .timedOut)
            broker.changeFaults { $0.withholdsAcknowledgements = false }
        }
    }

    @Test func latencyIsMeasuredOnTheClock() async throws {
        try await withMQTT { broker, client, clock in
            await broker.setLatency(.seconds(3))
            var arrivals = broker.arrivals().makeAsyncIterator()
            let start = clock.now
            let publishing = Task {
                try await client.publish("1", to: "a", qos: .atLeastOnce)
                return clock.now
            }
            #expect(await arrivals.next()?.topic == "a")
            await clock.advance(by: .seconds(3))
            let end = try await publishing.value
            #expect(start.duration(to: end) == .seconds(3))
            await broker.setLatency(.zero)
        }
    }

    @Test func `a refusal is delayed, and not lost`() async throws {
        let clock = try ManualClock()
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "meter", password: "secret")]
        let broker = try await LoopbackBroker.judged(options, clock: clock)
        await broker.setLatency(.seconds(8))
        let mqtt = MQTTClient(try broker.mqttURL, clock: clock)
        let stomp = STOMPClient(try broker.stompURL, clock: clock)
        var arrivals = broker.arrivals().makeAsyncIterator()
        let connecting = (Task { try await mqtt.connect() }, Task { try await stomp.connect() })
        _ = await (arrivals.next(), arrivals.next())
        await clock.advance(by: .seconds(8))
        let errors = (
            await #expect(throws: MQTTError.self) { try await connecting.0.value },
            await #expect(throws: STOMPError.self) { try await connecting.1.value }
        )
        #expect(errors.0?.code == .badCredentials)
        #expect(errors.1?.code == .badCredentials)
        await broker.stop()
    }

    @Test func `the reason for which a connection ends is delayed, and not lost`() async throws {
        try await withMQTT { broker, client, clock in
            await broker.setLatency(.seconds(8))
            var states = client.states.makeAsyncIterator()
            #expect(await broker.disconnect("meter", message: "too busy"))
            await clock.advance(by: .seconds(7))
            #expect(client.state.isConnected)
            await clock.advance(by: .seconds(1))
            var failure: MQTTError?
            while failure == nil, let state = await states.next() {
                if case .waiting(_, _, let reason) = state { failure = reason }
            }
            #expect(failure.map { "\($0)" }?.contains("too busy") == true)
        }
        try await withSTOMP { broker, client, clock in
            await broker.setLatency(.seconds(8))
            var states = client.states.makeAsyncIterator()
            let name = try #require(broker.clients.first)
            #expect(await broker.disconnect(name, message: "too busy"))
            await clock.advance(by: .seconds(8))
            var failure: STOMPError?
            while failure == nil, let state = await states.next() {
                if case .waiting(_, _, let reason) = state { failure = reason }
            }
            #expect(failure.map { "\($0)" }?.contains("too busy") == true)
        }
    }

    @Test func `more than may be delayed waits without any work until there is room`() async throws {
        try await withMQTT { broker, client, clock in
            // The reader may get no processor while they arrive.
            let messages = try await client.subscribe(
                to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: .max, bytes: .max))
            let reading = Task {
                var iterator = messages.makeAsyncIterator()
                for _ in 0..<20 { _ = try await iterator.next() }
                return messages.droppedCount
            }
            await broker.setLatency(.seconds(1))
            let payload = [UInt8](repeating: 1, count: 1 << 20)
            for _ in 0..<20 { await broker.publish(payload, to: "a", qos: .atMostOnce) }
            await clock.advance(by: .seconds(3))
            #expect(try await reading.value == 0)
            await broker.setLatency(.zero)
        }
    }

    // MARK: Callers

    @Test func timePassesForTheConnectionWhileACallerThatSendsHasLostTheProcessor() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let (end, served) = MemoryPair.make()
        broker.attach(served, as: Service(.mqtt))
        let stream = StallingStream(end, loop: clock.loop)
        let client = MQTTClient(
            ["mqtt://memory"], configuration: MQTTConfiguration(), loop: clock.loop,
            override: { () throws(TransportError) in OpenedStream(stream: stream) }, clock: clock)
        try await client.connect()
        let publishing = Task { try await client.publish("1", to: "a", qos: .atLeastOnce) }
        await stream.publishing.answer()
        await clock.advance(by: .seconds(3600))
        let isConnected = client.state.isConnected
        stream.letCallersContinue()
        try #require(isConnected)
        _ = try await publishing.value
        #expect(client.counters.connections == 1)
        await client.disconnect()
        await broker.stop()
    }

    // MARK: The clock

    @Test func noTimePassesByItself() async throws {
        let clock = try ManualClock()
        let start = clock.now
        async let late: Void = clock.sleep(until: start.advanced(by: .seconds(10)))
        async let early: Void = clock.sleep(until: start.advanced(by: .seconds(5)))
        await clock.advance(by: .seconds(-1))
        #expect(clock.now == start)
        await clock.advance(by: .seconds(5))
        #expect(start.duration(to: clock.now) == .seconds(5))
        _ = try await early
        await clock.advance(by: .seconds(100))
        try await late
        let sleeping = Task { try await clock.sleep(for: .seconds(1)) }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
    }

    @Test func webSocketsAndSocketFilesAreServedInMemoryToo() async throws {
        let clock = try ManualClock()
        let directory = try ScratchDirectory("clock")
        var options = LoopbackBrokerOptions()
        options.mqttSocket = directory.file("mqtt")
        let broker = try await LoopbackBroker.judged(options, clock: clock)
        for url in [broker.urls.ws, broker.urls.mqttSocket] {
            let client = MQTTClient(url ?? "", clock: clock)
            try await client.connect()
            await clock.advance(by: .seconds(3600))
            #expect(client.counters.connections == 1)
            await client.disconnect()
        }
        await broker.stop()
        let client = MQTTClient(broker.urls.ws ?? "", clock: clock)
        await #expect(throws: MQTTError.self) { try await client.connect() }
    }
}

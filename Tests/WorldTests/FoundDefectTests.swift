import MQTT
import STOMP
import Synchronization
import Testing

@testable import LoopbackBroker

/// Defects that worlds have found, each in the smallest world that shows it.
@Suite struct FoundDefectTests {
    private static var quiet: SimulationOptions {
        var options = SimulationOptions()
        options.faults = []
        return options
    }

    private static var session: MQTTConfiguration {
        var configuration = MQTTConfiguration()
        configuration.cleanStart = false
        return configuration
    }

    @Test func `A retained message comes to one subscription, also if the server does not answer it`() async throws {
        let received = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            let client = try MQTTClient(
                broker.mqttURL, clientID: "receiver", configuration: Self.session, clock: world.clock)
            try await client.connect()
            let first = try await client.subscribe(to: "t", qos: .exactlyOnce)
            await client.disconnect()
            for try await _ in first {}
            await broker.publish("1", to: "t", qos: .exactlyOnce)
            try await client.connect()
            // The message has been acknowledged, and waits for a subscription.
            try await world.clock.sleep(for: .seconds(11))
            broker.inject(.drop, .received, .mqtt(.subscribe))
            var received: [String] = []
            for _ in 0..<2 {
                let messages = client.subscription(to: "t", qos: .exactlyOnce)
                let reading = Task {
                    var texts: [String] = []
                    do {
                        for try await message in messages { texts.append(message.text ?? "") }
                    } catch {
                        world.note("\(error)")
                    }
                    return texts
                }
                try await world.clock.sleep(for: .seconds(15))
                reading.cancel()
                received += await reading.value
            }
            await client.disconnect()
            await broker.stop()
            return received
        }
        #expect(received == ["1"])
    }

    @Test func `A message that is published during a disconnect does not open the store again`() async throws {
        let code = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            func makeClient() throws -> MQTTClient {
                var configuration = Self.session
                configuration.sessionStore = FileSessionStore(directory: "/store")
                return try MQTTClient(
                    broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            }
            let client = try makeClient()
            try await client.connect()
            world.world.changeNetwork { $0.diskDelay = 1_000_000_000...1_000_000_000 }
            let leaving = Task { await client.disconnect() }
            while client.state.isConnected { try await world.clock.sleep(for: .milliseconds(1)) }
            try await world.clock.sleep(for: .milliseconds(500))
            let publishing = Task { _ = try await client.publish("1", to: "t", qos: .atLeastOnce) }
            await leaving.value
            var error: MQTTError?
            do {
                _ = try await publishing.value
            } catch let failure as MQTTError {
                error = failure
            }
            try await world.clock.sleep(for: .seconds(10))
            // Uses the store while the other one still exists.
            let next = try makeClient()
            try await next.connect()
            await next.disconnect()
            await broker.stop()
            return withExtendedLifetime(client) { error?.code }
        }
        #expect(code == .notConnected)
    }

    /// The worlds that showed this and the like: a process that had ended used the store of the next one, a session that the
    /// server had lost was taken for the one that it kept after that.
    @Test(arguments: [UInt64(184), 187, 5_000_314, 20_261_124_003_305, 20_261_126_000_079, 20_261_126_000_166])
    func `A world that has failed keeps its promises`(_ seed: UInt64) async throws {
        try await MQTTPromises.run(seeds: seed..<seed + 1)
    }

    @Test func `The smallest part of a world in which a process used the store of the next one keeps its promises`()
        async throws
    {
        try await Simulation.run(
            seed: 20_261_124_003_305, options: MQTTPromises.options, leavingOut: [1, 2, 3, 4, 6], MQTTPromises.body)
    }

    @Test func `A store that fails while a connection is being opened stops the client`() async throws {
        let code = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = Self.session
            configuration.sessionStore = FileSessionStore(directory: "/store")
            let client = try MQTTClient(
                broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            try await client.connect()
            world.world.changeNetwork { $0.connectDelay = 20_000_000_000...20_000_000_000 }
            await broker.dropAllConnections()
            try await world.clock.sleep(for: .seconds(5))
            world.world.disk.setFault(.full)
            await #expect(throws: MQTTError.self) { try await client.publish("1", to: "t", qos: .atLeastOnce) }
            world.world.disk.setFault(nil)
            try await world.clock.sleep(for: .seconds(30))
            guard case .disconnected(let reason) = client.state else {
                throw SimulationError("The client is \(client.state).")
            }
            // The store is opened again.
            try await client.connect()
            try await client.publish("2", to: "t", qos: .atLeastOnce)
            await client.disconnect()
            await broker.stop()
            return reason?.code
        }
        #expect(code == .storeFailed)
    }

    @Test func `A message that comes again is reported with its topic, also if an alias stands for it`() async throws {
        let topics = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = Self.session
            configuration.version = .v5_0
            configuration.sessionExpiry = .seconds(60)
            let client = try MQTTClient(
                broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            try await client.connect()
            let arrivals = broker.arrivals()
            for number in 1...2 { broker.inject(.drop, .sent, .mqtt(.pubrec), number: number) }
            let publishing = Task {
                try await client.publish(
                    (0..<2).map { MQTTOutgoingMessage([$0], to: "t", qos: .exactlyOnce) }
                ).check()
            }
            try await world.clock.sleep(for: .seconds(1))
            await broker.dropAllConnections()
            try await publishing.value
            await client.disconnect()
            await broker.stop()
            var topics: [String?] = []
            for await arrival in arrivals where arrival.packet == .mqtt(.publish) { topics.append(arrival.topic) }
            return topics
        }
        #expect(topics == ["t", "t", "t", "t"])
    }

    /// Seed 20261126000079.
    @Test func `Messages that leave before DISCONNECT make room for one that waits`() async throws {
        let wasAccepted = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = Self.session
            configuration.maximumPublishesPerSecond = 2
            configuration.maximumQueuedMessages = 2
            configuration.queueOverflow = .wait
            let client = try MQTTClient(
                broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            try await client.connect()
            // The second and the third have to wait for their turn.
            for number in 0..<3 { try await client.publish("\(number)", to: "t") }
            let isAccepted = Atomic(false)
            let publishing = Task {
                let message = MQTTOutgoingMessage("3", to: "t", qos: .atLeastOnce)
                let confirmation = try await client.publishForConfirmation(message)
                isAccepted.store(true, ordering: .relaxed)
                try await confirmation.confirmed()
            }
            try await world.clock.sleep(for: .milliseconds(100))
            try world.require(!isAccepted.load(ordering: .relaxed), "The queue is not full.")
            await client.suspend()
            try await world.clock.sleep(for: .seconds(1))
            let wasAccepted = isAccepted.load(ordering: .relaxed)
            client.resume()
            try await publishing.value
            await client.disconnect()
            await broker.stop()
            return wasAccepted
        }
        #expect(wasAccepted)
    }

    /// Seed 20261127000389: the publisher tried again and again, without any time between.
    @Test func `A message of QoS 0 behind a full queue waits for room in it`() async throws {
        let texts = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            broker.inject(.drop, .sent, .mqtt(.puback))
            var configuration = Self.session
            configuration.queuesQoS0WhileOffline = true
            configuration.maximumInFlight = 1
            configuration.maximumQueuedMessages = 3
            let client = try MQTTClient(
                broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            let arrivals = broker.arrivals()
            // The first will be in flight for ever, so that the third, of QoS 0, stays in the queue.
            try await client.connect()
            await client.suspend()
            for number in 0..<2 {
                try await client.enqueue(MQTTOutgoingMessage("\(number)", to: "t", qos: .atLeastOnce))
            }
            try await client.publish("2", to: "t")
            client.resume()
            try await world.clock.sleep(for: .seconds(1))
            try await client.enqueue(MQTTOutgoingMessage("3", to: "t", qos: .atLeastOnce))
            let publishing = Task { try await client.publish("4", to: "t") }
            try await world.clock.sleep(for: .seconds(1))
            await broker.dropAllConnections()
            _ = try await publishing.value
            _ = try await client.publish("5", to: "t", qos: .atLeastOnce)
            await client.disconnect()
            await broker.stop()
            var texts: [String] = []
            for await arrival in arrivals where arrival.packet == .mqtt(.publish) { texts.append(arrival.text) }
            return texts
        }
        #expect(texts == ["0", "0", "1", "2", "3", "4", "5"])
    }

    /// A server demands whole packets, and one that is long holds PINGREQ up: seed 20261130001608.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `A message that takes longer than a server's patience is named when the connection ends`(
        version: MQTTVersion
    ) async throws {
        let reasons = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = MQTTConfiguration()
            configuration.version = version
            configuration.keepAlive = .seconds(20)
            let client = try MQTTClient(
                broker.mqttURL, clientID: "camera", configuration: configuration, clock: world.clock)
            let events = client.events
            try await client.connect()
            world.world.changeNetwork { $0.rate = 100 }
            let publishing = Task { try await client.publish([UInt8](repeating: 0, count: 8192), to: "image") }
            var reasons: [String] = []
            for await event in events {
                if case .connectionLost(let error) = event { reasons.append("\(error)") }
                if reasons.count == 2 { break }
                if reasons.count == 1, case .connected = event {
                    _ = try? await client.publish([UInt8](repeating: 0, count: 8192), to: "image")
                }
            }
            _ = try? await publishing.value
            await client.disconnect()
            await broker.stop()
            return reasons
        }
        for reason in reasons {
            #expect(reason.contains("Set keepAlive to a longer time, or send smaller messages."))
            #expect(!reason.contains("client identifier"))
        }
    }

    /// The answer to PINGREQ gets more time while bytes move that it follows, here until 80 s: seed 5000314.
    @Test func `A connection that is dead in one direction ends when nothing moves in the other`() async throws {
        let (death, overdue) = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = MQTTConfiguration()
            configuration.keepAlive = .seconds(60)
            let client = try MQTTClient(broker.mqttURL, configuration: configuration, clock: world.clock)
            try await client.connect()
            for link in world.world.links { link.die(isUp: false) }
            world.world.changeNetwork { $0.latency = 3_000_000_000...3_000_000_000 }
            try await world.clock.sleep(for: .milliseconds(59_500))
            try await client.publish("1", to: "t", qos: .atMostOnce)
            try await world.clock.sleep(for: .seconds(60))
            await client.disconnect()
            await broker.stop()
            return (world.world.longestDeath, world.world.longestOverdue)
        }
        #expect(death == .seconds(80))
        // The message arrives after 62.5 s, which the client sees when PINGRESP is late, after 70 s.
        #expect(overdue == .zero)
    }

    /// World 20261129000385 of the whole interface: a reply came too late, and the ERROR was taken for an answer to UNSUBSCRIBE
    /// without a doubt.
    @Test func `An ERROR about a frame without a receipt refuses UNSUBSCRIBE only probably`() async throws {
        let error = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            let client = try STOMPClient(broker.stompURL, clock: world.clock)
            try await client.connect()
            let requests = try await client.subscribe(to: "/queue/requests")
            world.world.changeNetwork { $0.latency = 1_000_000...1_000_000 }
            try await client.send("answer", to: "/remote-temp-queue/9:replies")
            let error = await #expect(throws: STOMPError.self) { try await requests.unsubscribe() }
            await client.disconnect()
            await broker.stop()
            return error
        }
        let text = "a frame, probably UNSUBSCRIBE from '/queue/requests': the temporary queue"
        #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
    }

    /// World 20261129000256 of the whole interface.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `A session that is discarded over a dead connection is not continued`(version: MQTTVersion) async throws {
        let (isLeft, isPresent) = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = Self.session
            configuration.version = version
            if version == .v5_0 { configuration.sessionExpiry = .seconds(3600) }
            let client = try MQTTClient(
                broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            try await client.connect()
            for link in world.world.links { link.die(isUp: nil) }
            try await client.discardSession()
            let events = client.events
            let isLeft = broker.hasSession(of: "meter")
            try await client.connect()
            await client.disconnect()
            var isPresent = false
            for await event in events {
                if case .connected(let info) = event { isPresent = info.sessionPresent }
                if case .stateChanged(.disconnected) = event { break }
            }
            await broker.stop()
            return (isLeft, isPresent)
        }
        // Before 5.0 another connection discards it.
        #expect(isLeft == (version == .v5_0))
        #expect(!isPresent)
    }

    /// Seed 2 of the whole interface: the alarm woke the process when the message would have expired, a day later.
    @Test func `A message that has left sets no alarm for its expiry`() async throws {
        try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let broker = try await world.startBroker()
            var configuration = Self.session
            configuration.version = .v5_0
            let client = try MQTTClient(
                broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            try await client.connect()
            await client.suspend()
            let message = MQTTOutgoingMessage(
                "1", to: "t", qos: .atLeastOnce, properties: [.messageExpiryInterval(86_400)])
            let confirmation = try await client.publishForConfirmation(message)
            client.resume()
            try await confirmation.confirmed()
            await client.disconnect()
            await broker.stop()
            try await world.faultsHaveEnded()
            try world.requireNoAlarm()
        }
    }
}

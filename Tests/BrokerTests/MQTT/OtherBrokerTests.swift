import MQTT
import Synchronization
import TestSupport
import Testing

/// The MQTT sides of RabbitMQ and ActiveMQ, which know 3.1 and 3.1.1.
@Suite(.serialized, .turns)
struct OtherBrokerTests {
    enum Kind: String, CaseIterable, Sendable {
        case rabbitMQ, activeMQ

        /// Those that tests run with here.
        static let usable = allCases.filter {
            $0 == .rabbitMQ ? Broker.rabbitMQ.isUsable : Broker.activeMQWithMQTT.isUsable
        }
    }

    private func client(
        _ kind: Kind, _ port: Int, _ id: String = "test-%%%%", _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: id)
        configuration.allowSlowBrokers()
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(500)
        if kind == .rabbitMQ { configuration.credentials = Credentials(userName: "guest", password: "guest") }
        change(&configuration)
        return MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
    }

    private func sharedPort(_ kind: Kind) async throws -> Int {
        switch kind {
        case .rabbitMQ: try #require(try await SharedBrokers.rabbitMQ().mqttPort)
        case .activeMQ: try await SharedBrokers.activeMQ().mqttPort
        }
    }

    @Test(.requires(anyOf: .rabbitMQ, .activeMQWithMQTT), arguments: Kind.usable, [MQTTVersion.v3_1, .v3_1_1])
    func `delivers what it publishes, in order`(kind: Kind, version: MQTTVersion) async throws {
        let port = try await sharedPort(kind)
        let client = client(kind, port) { $0.version = version }
        try await client.connect()
        // RabbitMQ takes a dot in a topic for a slash, and grants QoS 1 at most.
        let name = "plain/\(kind)-\(version == .v3_1 ? "old" : "new")"
        for qos in QoS.allCases where kind != .rabbitMQ || qos < .exactlyOnce {
            let messages = try await client.subscribe(to: "\(name)/\(qos.rawValue)/+", qos: qos)
            for number in 0..<20 {
                try await client.publish("\(number)", to: "\(name)/\(qos.rawValue)/x", qos: qos)
            }
            var iterator = messages.makeAsyncIterator()
            for number in 0..<20 { #expect(try await iterator.next()?.text == "\(number)") }
        }
        await client.disconnect()
    }

    @Test(.requires(.rabbitMQ))
    func `RabbitMQ's PUBACK for a QoS 2 message is its acknowledgement, and is reported once`() async throws {
        let client = client(.rabbitMQ, try await sharedPort(.rabbitMQ))
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        let messages = try await client.subscribe(to: "exactly/once", qos: .atLeastOnce)
        for number in 0..<10 { try await client.publish("\(number)", to: "exactly/once", qos: .exactlyOnce) }
        let received = try await withTimeout(.patience, "receiving ten messages") {
            var received: [String?] = []
            for try await message in messages {
                received.append(message.text)
                if received.count == 10 { break }
            }
            return received
        }
        #expect(received == (0..<10).map { "\($0)" })
        #expect(client.counters.connections == 1)
        await client.disconnect()
        var reports = 0
        while let event = await events.next() {
            if case .exactlyOnceUnavailable = event { reports += 1 }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(reports == 1)
    }

    @Test(.requires(.rabbitMQ))
    func `RabbitMQ's message to a topic with a wildcard stops a kept session, or is dropped`() async throws {
        let port = try await sharedPort(.rabbitMQ)
        let publisher = client(.rabbitMQ, port)
        try await publisher.connect()
        let stopped = client(.rabbitMQ, port, "poisoned") { $0.cleanStart = false }
        var events = stopped.events.makeAsyncIterator()
        try await stopped.connect()
        let subscription = try await stopped.subscribe(to: "poison/#", qos: .atLeastOnce)
        // It comes back as `poison/+`.
        try await publisher.publish("bad", to: "poison/*", qos: .atLeastOnce)
        var failure: MQTTError?
        while failure == nil, let event = await events.next() {
            if case .stateChanged(.disconnected(let error?)) = event { failure = error }
        }
        #expect(failure?.code == .sessionBlocked)
        #expect(failure?.message.contains("'poison/+'") == true)
        withExtendedLifetime(subscription) {}
        try await publisher.publish("good", to: "poison/good", qos: .atLeastOnce)
        let dropping = client(.rabbitMQ, port, "poisoned") {
            $0.cleanStart = false
            $0.dropsInvalidMessages = true
        }
        events = dropping.events.makeAsyncIterator()
        try await dropping.connect()
        let messages = try await dropping.subscribe(to: "poison/#", qos: .atLeastOnce)
        let text = try await withTimeout(.patience, "receiving the message behind the dropped one") {
            for try await message in messages { return message.text }
            return nil
        }
        #expect(text == "good")
        try await dropping.discardSession()
        var dropped: [String] = []
        while let event = await events.next() {
            if case .invalidMessageDropped(let topic, _) = event { dropped.append(topic) }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(dropped == ["poison/+"])
        await publisher.disconnect()
    }

    @Test(.requires(anyOf: .rabbitMQ, .activeMQWithMQTT), arguments: Kind.usable)
    func `falls back from 5.0 to 3.1.1`(kind: Kind) async throws {
        let port = try await sharedPort(kind)
        let client = client(kind, port) {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        var version: MQTTVersion?
        while version == nil, let event = await events.next() {
            if case .connected(let info) = event { version = info.version }
        }
        #expect(version == .v3_1_1)
        try await client.publish("x", to: "fallback", qos: .atLeastOnce)
        await client.disconnect()
    }

    @Test(.requires(anyOf: .rabbitMQ, .activeMQWithMQTT), arguments: Kind.usable)
    func `a persistent session loses nothing acknowledged when the broker is killed`(kind: Kind) async throws {
        let broker: any RunningBroker
        let port: Int
        switch kind {
        case .rabbitMQ:
            let rabbit = try await RabbitMQ.start()
            (broker, port) = (rabbit, try #require(rabbit.mqttPort))
        case .activeMQ:
            let active = try await ActiveMQ.start { $0.persistence = true }
            (broker, port) = (active, try active.mqttPort)
        }
        let count = Campaign.rounds(20_000, least: 400)
        let receiver = client(kind, port, "receiver-\(kind)") { $0.cleanStart = false }
        let sender = client(kind, port, "sender-\(kind)") { $0.cleanStart = false }
        try await receiver.connect()
        try await sender.connect()
        let messages = try await receiver.subscribe(
            to: "durable", qos: .atLeastOnce, buffer: BufferPolicy(messages: .max, bytes: .max))
        if kind == .rabbitMQ {
            // It keeps a new queue's definition in memory for a while, and a kill would take the session with all that is
            // in it. An orderly restart writes it down.
            try await broker.restart()
            #expect(
                await eventually {
                    [receiver, sender].allSatisfy { $0.state.isConnected && $0.counters.connections > 1 }
                })
        }
        let acknowledged = Atomic(0)
        let sending = Task {
            for number in 0..<count {
                try await sender.publish("\(number)", to: "durable", qos: .atLeastOnce)
                acknowledged.store(number + 1, ordering: .relaxed)
            }
        }
        for kill in 1...2 {
            _ = await eventually {
                acknowledged.load(ordering: .relaxed) >= count * kill / 3
            }
            await broker.kill()
            try await broker.restart()
        }
        try await sending.value(within: .seconds(240), "publishing")
        let received = try await withTimeout(.patience, "receiving") {
            var distinct: Set<Int> = []
            for try await message in messages {
                distinct.insert(Int(message.text ?? "") ?? -1)
                if distinct.count == count { break }
            }
            return distinct
        }
        #expect(received == Set(0..<count))
        await sender.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }
}

import MQTT
import MQTTCore
import MessagingShell
import Synchronization
import TestSupport
import Testing
import Transport

/// How many filters SUBSCRIBE and UNSUBSCRIBE have, and which QoS they ask for.
@Suite("Client: what SUBSCRIBE asks for", .turns)
struct RequestSizeTests {
    /// Answers SUBSCRIBE and UNSUBSCRIBE, but no SUBSCRIBE with QoS 2, and closes the connection for more than eight filters,
    /// as AWS IoT Core does.
    private final class StrictServer: Sendable {
        struct Seen {
            var subscribed: [(connection: Int, filters: [MQTTSubscriptionRequest])] = []
            var unsubscribed: [[String]] = []
        }

        let seen = Mutex(Seen())
        private let scripted = Mutex<ScriptedServer?>(nil)
        private let sendsMessages: Bool

        /// - Parameters:
        ///   - sendsMessages: whether each filter that is subscribed gets a message.
        ///   - properties: of CONNACK, by the number of the connection.
        init(sendsMessages: Bool = false, properties: @escaping @Sendable (Int) -> MQTTProperties = { _ in [] }) {
            self.sendsMessages = sendsMessages
            let server = ScriptedServer { [weak self] step in self?.handle(step, properties) }
            scripted.withLock { $0 = server }
        }

        var server: ScriptedServer { scripted.withLock { $0! } }

        private func handle(_ step: ScriptedServer.Step, _ properties: (Int) -> MQTTProperties) {
            switch step.event {
            case .connectReceived: step.accept(properties: properties(step.connection))
            case .subscribeReceived(let packet):
                seen.withLock { $0.subscribed.append((step.connection, packet.subscriptions)) }
                guard packet.subscriptions.count <= 8 else { return step.perform { $0.wantsClose = true } }
                // Only where the test is about it: others ask what a named QoS becomes.
                if sendsMessages, packet.subscriptions.contains(where: { $0.qos == .exactlyOnce }) { return }
                step.perform { machine in
                    let codes = packet.subscriptions.map { MQTTReasonCode(rawValue: $0.qos.rawValue) }
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
                    guard sendsMessages else { return }
                    for subscription in packet.subscriptions {
                        _ = try? machine.engine.publish(
                            topic: subscription.filter.replacing("+", with: "kitchen"),
                            payload: Array("\(step.connection)".utf8), at: MonotonicClock.now)
                    }
                }
            case .unsubscribeReceived(let packet):
                seen.withLock { $0.unsubscribed.append(packet.filters) }
                guard packet.filters.count <= 8 else { return step.perform { $0.wantsClose = true } }
                step.perform { machine in
                    let codes = packet.filters.map { $0 == "f/3" ? .noSubscriptionExisted : MQTTReasonCode.success }
                    try? machine.engine.acknowledgeUnsubscribe(
                        packet.packetID, codes: codes, at: MonotonicClock.now)
                }
            default: break
            }
        }
    }

    private static let filters = (0..<20).map { "f/\($0)" }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `twenty filters of one call are subscribed, eight in a packet, and unsubscribed the same way`(
        version: MQTTVersion
    ) async throws {
        let strict = StrictServer()
        let client = strict.server.client { $0.version = version }
        try await client.connect()
        let messages = try await client.subscribe(
            to: Self.filters.enumerated().map { number, filter in
                MQTTSubscriptionRequest(filter: filter, qos: number == 9 ? .atMostOnce : .atLeastOnce)
            })
        #expect(strict.seen.withLock { $0.subscribed.map(\.filters.count) } == [8, 8, 4])
        #expect(strict.seen.withLock { $0.subscribed.flatMap { $0.filters.map(\.filter) } } == Self.filters)
        #expect(messages.reasonCodes.map(\.rawValue) == Self.filters.indices.map { $0 == 9 ? 0 : 1 })
        let result = try await messages.unsubscribe(properties: [])
        #expect(strict.seen.withLock { $0.unsubscribed.map(\.count) } == [8, 8, 4])
        let codes = Self.filters.map { $0 == "f/3" ? .noSubscriptionExisted : MQTTReasonCode.success }
        #expect(result.reasonCodes == (version == .v5_0 ? codes : []))
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test func `twenty subscriptions come back after a cut on a server that allows eight filters in a packet`()
        async throws
    {
        let strict = StrictServer()
        let client = strict.server.client()
        try await client.connect()
        var all: [MQTTSubscription] = []
        for filter in Self.filters { all.append(try await client.subscribe(to: filter)) }
        var events = client.events.makeAsyncIterator()
        strict.server.link?.dropConnection()
        var resubscribed: Set<String> = []
        while resubscribed.count < Self.filters.count, let event = await events.next() {
            if case .resubscribed(let filter, _) = event { resubscribed.insert(filter) }
        }
        #expect(client.counters.connections == 2)
        let second = strict.seen.withLock { $0.subscribed.filter { $0.connection == 2 }.map(\.filters.count) }
        #expect(second == [8, 8, 4])
        withExtendedLifetime(all) {}
        await client.disconnect()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `the first example and twenty subscriptions live through three reconnects with a server that is strict`(
        version: MQTTVersion
    ) async throws {
        let strict = StrictServer(sendsMessages: true)
        let client = strict.server.client { $0.version = version }
        try await client.withConnection { client in
            let readings = try await client.subscribe(to: "home/+/temperature")
            try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
            for try await reading in readings {
                #expect(reading.captures == ["kitchen"])
                break
            }
            var received: [MQTTSubscription.Iterator] = []
            for number in 0..<20 {
                received.append(try await client.subscribe(to: "site/\(number)/+").makeAsyncIterator())
            }
            for round in 1...4 {
                for index in received.indices { #expect(try await received[index].next()?.text == "\(round)") }
                if round < 4 { strict.server.link?.dropConnection() }
            }
            #expect(client.counters.connections == 4)
        }
    }

    @Test func `larger requests, and QoS 2, are too much for that server`() async throws {
        let strict = StrictServer(sendsMessages: true)
        let large = strict.server.client { $0.maximumFiltersPerRequest = 20 }
        try await large.connect()
        let filters = Self.filters.map { MQTTSubscriptionRequest(filter: $0) }
        let subscribing = Task { try await large.subscribe(to: filters) }
        #expect(await eventually { large.counters.connections > 1 })
        subscribing.cancel()
        await large.disconnect()
        let exact = strict.server.client { $0.requestTimeout = .milliseconds(50) }
        try await exact.connect()
        let late = await error { () throws(MQTTError) in _ = try await exact.subscribe(to: "a", qos: .exactlyOnce) }
        #expect(late?.code == .timedOut)
        await exact.disconnect()
    }

    @Test func `a subscription asks for QoS 1 unless its caller names another`() async throws {
        let strict = StrictServer()
        let client = strict.server.client()
        try await client.connect()
        let one = try await client.subscribe(to: "plain")
        let two = try await client.subscribe(to: "value", as: [Int].self)
        let three = try await client.subscribe(to: "text", as: String.self)
        let four = try await client.subscribe(to: MQTTTopic<Int>("topic", as: .json, qos: .atMostOnce))
        let five = try await client.subscribe(to: [MQTTSubscriptionRequest(filter: "request")])
        let named = try await client.subscribe(to: "named", qos: .exactlyOnce)
        let lower = try await client.subscribe(to: MQTTTopic.text("lower"), qos: .atMostOnce)
        let asked = strict.seen.withLock {
            $0.subscribed.flatMap { $0.filters.map { [$0.filter, "\($0.qos.rawValue)"] } }
        }
        let expected = [
            ["plain", "1"], ["value", "1"], ["text", "1"], ["topic", "1"], ["request", "1"], ["named", "2"],
            ["lower", "0"],
        ]
        #expect(asked == expected)
        withExtendedLifetime((one, two, three, four, five, named, lower)) {}
        await client.disconnect()
    }

    @Test func `a declared subscription asks for QoS 1 unless its caller names another`() async throws {
        let strict = StrictServer()
        let client = strict.server.client()
        let one = client.subscription(to: "plain")
        let two = client.subscription(to: "value", as: [Int].self)
        let three = client.subscription(to: "text", as: String.self)
        let four = client.subscription(to: MQTTTopic<Int>("topic", as: .json, qos: .atMostOnce))
        let five = client.subscription(to: [MQTTSubscriptionRequest(filter: "request")])
        let named = client.subscription(to: "named", qos: .exactlyOnce)
        try await client.connect()
        #expect(await eventually { strict.seen.withLock { $0.subscribed.flatMap(\.filters).count } == 6 })
        let asked = strict.seen.withLock {
            $0.subscribed.flatMap { $0.filters.map { [$0.filter, "\($0.qos.rawValue)"] } }
        }
        let expected = [
            ["plain", "1"], ["value", "1"], ["text", "1"], ["topic", "1"], ["request", "1"], ["named", "2"],
        ]
        #expect(Set(asked) == Set(expected))
        withExtendedLifetime((one, two, three, four, five, named)) {}
        await client.disconnect()
    }

    @Test func `a named QoS is lowered to the server's Maximum QoS, and asked for again where more is granted`()
        async throws
    {
        let strict = StrictServer { connection in
            var properties = MQTTProperties()
            properties.maximumQoS = [1: .atLeastOnce, 2: .atMostOnce][connection]
            return properties
        }
        let client = strict.server.client { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(to: "named", qos: .exactlyOnce)
        #expect(messages.grantedQoS == .atLeastOnce)
        for connection in 2...3 {
            strict.server.link?.dropConnection()
            #expect(await eventually { strict.seen.withLock { $0.subscribed.last?.connection == connection } })
        }
        let asked = strict.seen.withLock { $0.subscribed.map { $0.filters[0].qos } }
        #expect(asked == [.atLeastOnce, .atMostOnce, .exactlyOnce])
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    @Test func `ten thousand filters are subscribed and unsubscribed with one write for many packets`() async throws {
        let strict = StrictServer()
        let client = strict.server.client()
        try await client.connect()
        let all = (0..<10_000).map { MQTTSubscriptionRequest(filter: "f/\($0)") }
        let messages = try await client.subscribe(to: all)
        #expect(strict.seen.withLock { $0.subscribed.count } == 1_250)
        try await messages.unsubscribe()
        #expect(strict.seen.withLock { $0.unsubscribed.count } == 1_250)
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test func `a SUBSCRIBE without an answer says what to try`() async throws {
        let clock = try ManualClock()
        let isAsked = Mutex(false)
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived: isAsked.withLock { $0 = true }
            default: break
            }
        }
        let client = server.client()
        try await client.connect()
        let subscribing = Task { try await client.subscribe(to: "a", qos: .exactlyOnce) }
        // Its time begins with the packet.
        #expect(await eventually { isAsked.withLock { $0 } })
        await clock.advance(by: .seconds(10))
        await #expect {
            _ = try await subscribing.value
        } throws: { error in
            guard let error = error as? MQTTError, error.code == .timedOut else { return false }
            return ["SUBSCRIBE", "lower qos", "maximumFiltersPerRequest", "requestTimeout"]
                .allSatisfy { error.message.contains($0) }
        }
        await client.disconnect()
    }
}

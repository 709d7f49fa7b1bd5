import ClientTestSupport
import LoopbackBroker
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// Messages of QoS 1 and 2 that nobody can answer any more, or that nobody can answer yet; in virtual time.
@Suite("Delivery: unclaimed messages", .turns)
struct UnclaimedMessageTests {
    static let versions = [MQTTVersion.v3_1_1, .v5_0]
    static let qualities = [QoS.atLeastOnce, .exactlyOnce]

    /// A broker in virtual time, and clients that keep their session and do not reconnect by themselves for a day.
    struct Place: Sendable {
        let clock: ManualClock
        let broker: LoopbackBroker

        /// - Parameter window: how many messages the broker sends without an acknowledgement.
        init(window: Int = 1024) async throws {
            clock = try ManualClock()
            var options = LoopbackBrokerOptions()
            options.limits.maximumInFlight = window
            broker = try await LoopbackBroker.judged(options, clock: clock)
        }

        func client(
            _ id: String, version: MQTTVersion = .v5_0, _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) throws -> MQTTClient {
            var configuration = MQTTConfiguration(clientID: id)
            configuration.version = version
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(1_000_000)
            configuration.reconnect.initialDelay = .seconds(86_400)
            configuration.reconnect.maximumDelay = .seconds(86_400)
            change(&configuration)
            return try MQTTClient(broker.mqttURL, configuration: configuration, clock: clock)
        }

        /// Leaves a session that has subscribed to filters, and messages that wait in it.
        func leave(
            _ messages: Range<Int>, to topic: String, filters: [String], of id: String, version: MQTTVersion, qos: QoS
        ) async throws {
            let client = try client(id, version: version)
            try await client.connect()
            let sequence = try await client.subscribe(
                to: filters.map { MQTTSubscriptionRequest(filter: $0, qos: .exactlyOnce) })
            await client.disconnect()
            withExtendedLifetime(sequence) {}
            await publish(messages, to: topic, qos: qos)
        }

        func publish(_ messages: Range<Int>, to topic: String, qos: QoS) async {
            for number in messages { await broker.publish("\(number)", to: topic, qos: qos) }
        }

        /// Ends a client as the death of its process does.
        func kill(_ id: String) async {
            await broker.dropConnection(of: id)
            await clock.waitUntilQuiet()
        }
    }

    /// Counts what a client reports as unclaimed.
    private func numbers(_ messages: [MQTTMessage]) -> [Int] { messages.compactMap { $0.text.flatMap { Int($0) } } }

    // MARK: More messages than Receive Maximum

    @Test(arguments: qualities)
    func `a server that sends more than Receive Maximum is tolerated`(qos: QoS) async throws {
        let server = tooManyMessages(qos: qos)
        let client = server.client {
            $0.version = .v5_0
            $0.receiveMaximum = 20
        }
        var events = client.events.makeAsyncIterator()
        let messages = await client.unmatchedMessages(acknowledgement: .manual)
        try await client.connect()
        let received = try await messages.first(30)
        #expect(received.map { $0.bytes[0] } == Array(UInt8(1)...30))
        #expect(server.connectionCount == 1)
        #expect(client.state.isConnected)
        await client.disconnect()
        var reports: [UInt16] = []
        while let event = await events.next() {
            if case .receiveMaximumExceeded(let maximum) = event { reports.append(maximum) }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(reports == [20])
    }

    @Test func `with enforcesReceiveMaximum it ends the connection, and the error says what to do`() async throws {
        let server = tooManyMessages(qos: .atLeastOnce)
        let client = server.client {
            $0.version = .v5_0
            $0.receiveMaximum = 20
            $0.enforcesReceiveMaximum = true
        }
        var events = client.events.makeAsyncIterator()
        let messages = await client.unmatchedMessages(acknowledgement: .manual)
        try await client.connect()
        var failure: MQTTError?
        while failure == nil, let event = await events.next() {
            if case .connectionLost(let error) = event { failure = error }
        }
        #expect(failure?.code == .protocolError && failure?.reasonCode == .receiveMaximumExceeded)
        #expect(failure?.message.contains("enforcesReceiveMaximum") == true)
        await client.disconnect()
        withExtendedLifetime(messages) {}
    }

    /// A server that sends 30 messages to each connection without waiting for an acknowledgement.
    private func tooManyMessages(qos: QoS) -> ScriptedServer {
        ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            var packets: [UInt8] = []
            for number in 1...UInt8(30) {
                packets += [0x30 | qos.rawValue << 1, 7, 0, 1, UInt8(ascii: "a"), 0, number, 0, number]
            }
            step.perform { $0.engine.output += packets }
        }
    }

    // MARK: A full buffer

    @Test(arguments: versions)
    func `QoS 2 messages of a full buffer arrive once, in order, after a lost connection`(
        version: MQTTVersion
    ) async throws {
        let place = try await Place(window: 12)
        let client = try place.client("full", version: version) { $0.reconnect.initialDelay = .seconds(1) }
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .exactlyOnce, buffer: BufferPolicy(messages: 4))
        await place.publish(0..<48, to: "a", qos: .exactlyOnce)
        await place.clock.waitUntilQuiet()
        for _ in 0..<2 {
            await place.broker.dropConnection(of: "full")
            await place.clock.advance(by: .seconds(10))
            #expect(client.state.isConnected)
        }
        let received = try await withTimeout(.patience, "the messages") { try await messages.first(48) }
        #expect(numbers(received) == Array(0..<48))
        await client.disconnect()
        await place.broker.stop()
    }

    // MARK: A manual subscription that ended

    @Test(arguments: versions, qualities)
    func `unacknowledged messages of a manual subscription that ended hold others up for ten seconds`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let place = try await Place()
        let client = try place.client("worker", version: version) { $0.receiveMaximum = 20 }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        let healthy = try await client.subscribe(to: "healthy", qos: qos)
        do {
            let jobs = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
            await place.publish(0..<3, to: "jobs/a", qos: qos)
            await place.clock.waitUntilQuiet()
            for try await _ in jobs { break }
        }
        await place.publish(0..<2000, to: "healthy", qos: qos)
        await place.clock.advance(by: .seconds(9))
        #expect(client.counters.messagesReceived < 2000)
        await place.clock.advance(by: .seconds(2))
        #expect(try await numbers(healthy.first(2000)) == Array(0..<2000))
        #expect(client.state.isConnected)
        var reports: [String] = []
        while reports.isEmpty, let event = await events.next() {
            if case .messagesUnclaimed(let filters, let count) = event { reports.append("\(filters) \(count)") }
        }
        #expect(reports == ["[\"jobs/#\"] 3"])
        // They are kept for the next subscription.
        let next = try await client.subscribe(to: "jobs/+", qos: qos)
        let received = try await next.first(3)
        #expect(numbers(received) == [0, 1, 2])
        #expect(received.map(\.isDuplicate) == [true, false, false])
        await client.disconnect()
        await place.broker.stop()
    }

    @Test(arguments: versions, qualities)
    func `the next subscription gets unclaimed messages first, and an acknowledgement that comes late counts`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let place = try await Place()
        let client = try place.client("worker", version: version)
        try await client.connect()
        var taken: MQTTMessage?
        do {
            let jobs = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
            await place.publish(0..<3, to: "jobs/a", qos: qos)
            for try await job in jobs {
                taken = job
                break
            }
            try await jobs.unsubscribe()
        }
        await place.clock.advance(by: .seconds(9))
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 3)
        let jobs = try await client.subscribe(to: "jobs/a", qos: qos, acknowledgement: .manual)
        await place.publish(3..<4, to: "jobs/a", qos: qos)
        let received = try await jobs.first(4)
        #expect(numbers(received) == [0, 1, 2, 3])
        #expect(received.map(\.isDuplicate) == [true, false, false, false])
        // Nothing is acknowledged for a subscription that has them.
        await place.clock.advance(by: .seconds(60))
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 4)
        taken?.acknowledge()
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 3)
        for message in received { message.acknowledge() }
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 0)
        #expect(client.backlog.unmatchedMessages == 0)
        await client.disconnect()
        await place.broker.stop()
    }

    @Test func `a message that another subscription received is that one's`() async throws {
        let place = try await Place()
        let client = try place.client("worker")
        try await client.connect()
        let automatic = try await client.subscribe(to: "jobs/automatic", qos: .atLeastOnce)
        let manual = try await client.subscribe(to: "jobs/manual", qos: .atLeastOnce, acknowledgement: .manual)
        do {
            let all = try await client.subscribe(to: "jobs/#", qos: .atLeastOnce, acknowledgement: .manual)
            await place.publish(0..<1, to: "jobs/manual", qos: .atLeastOnce)
            await place.publish(1..<2, to: "jobs/automatic", qos: .atLeastOnce)
            #expect(try await numbers(all.first(2)) == [0, 1])
            #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 2)
            try await all.unsubscribe()
        }
        #expect(client.backlog.unmatchedMessages == 0)
        await place.clock.advance(by: .seconds(60))
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 2)
        for message in try await manual.first(1) { message.acknowledge() }
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 0)
        #expect(try await numbers(automatic.first(1)) == [1])
        await client.disconnect()
        await place.broker.stop()
    }

    @Test(arguments: [false, true])
    func `with a clean session or a store they are acknowledged at once and kept`(hasStore: Bool) async throws {
        let place = try await Place()
        let client = try place.client("worker") {
            if hasStore {
                $0.sessionStore = MemorySessionStore()
            } else {
                $0.cleanStart = true
                $0.sessionExpiry = .zero
            }
        }
        try await client.connect()
        do {
            let jobs = try await client.subscribe(to: "jobs/#", qos: .exactlyOnce, acknowledgement: .manual)
            await place.publish(0..<3, to: "jobs/a", qos: .atLeastOnce)
            for try await _ in jobs { break }
        }
        #expect(await eventually { client.core.link.perform { $0.engine.unacknowledgedCount } == 0 })
        let jobs = try await client.subscribe(to: "jobs/#", acknowledgement: .manual)
        #expect(try await numbers(jobs.first(3)) == [0, 1, 2])
        await client.disconnect()
        await place.broker.stop()
    }

    @Test func `over a lost connection QoS 2 is kept as far as a receiver took it, and new otherwise`() async throws {
        let place = try await Place()
        let client = try place.client("worker") { $0.reconnect.initialDelay = .seconds(1) }
        try await client.connect()
        do {
            let jobs = try await client.subscribe(to: "jobs/#", qos: .exactlyOnce, acknowledgement: .manual)
            await place.publish(0..<1, to: "jobs/a", qos: .exactlyOnce)
            for try await _ in jobs { break }
            // Not in the batch of the first: a receiver has the whole batch that it is in the middle of.
            await place.publish(1..<3, to: "jobs/a", qos: .exactlyOnce)
            await place.clock.waitUntilQuiet()
            withExtendedLifetime(jobs) {}
        }
        await place.clock.waitUntilQuiet()
        #expect(client.backlog.unmatchedMessages == 3)
        await place.broker.dropConnection(of: "worker")
        #expect(client.backlog.unmatchedMessages == 1)
        await place.clock.advance(by: .seconds(5))
        #expect(client.state.isConnected)
        // The repetitions of two are new, and match no subscription yet.
        #expect(client.backlog.unmatchedMessages == 3)
        let jobs = try await client.subscribe(to: "jobs/#", qos: .exactlyOnce)
        #expect(try await numbers(jobs.first(3)) == [0, 1, 2])
        await place.publish(3..<4, to: "jobs/a", qos: .exactlyOnce)
        #expect(try await numbers(jobs.first(1)) == [3])
        await place.clock.waitUntilQuiet()
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 0)
        await client.disconnect()
        await place.broker.stop()
    }

    // MARK: Declared subscriptions

    @Test(arguments: versions)
    func `a declared subscription is subscribed by every connection, and its first grant is reported`(
        version: MQTTVersion
    ) async throws {
        let place = try await Place()
        let client = try place.client("worker", version: version) {
            $0.cleanStart = version == .v3_1_1
            $0.sessionExpiry = .zero
            $0.reconnect.initialDelay = .seconds(1)
        }
        var events = client.events.makeAsyncIterator()
        let jobs = client.subscription(to: "jobs/#", acknowledgement: .manual)
        let texts = client.subscription(to: "texts", as: String.self)
        try await client.connect()
        await place.clock.waitUntilQuiet()
        for number in 0..<2 {
            await place.broker.publish("\(number)", to: "jobs/a")
            await place.broker.publish("text \(number)", to: "texts")
            #expect(try await numbers(jobs.first(1)) == [number])
            for try await text in texts {
                #expect(try text.value == "text \(number)")
                break
            }
            await place.broker.dropConnection(of: "worker")
            await place.clock.advance(by: .seconds(5))
        }
        var subscribed: [String] = []
        while subscribed.count < 4, let event = await events.next() {
            switch event {
            case .subscribed(let filter, _): subscribed.append(filter)
            case .resubscribed(let filter, _): subscribed.append("again " + filter)
            default: break
            }
        }
        #expect(subscribed.sorted() == ["again jobs/#", "again texts", "jobs/#", "texts"])
        await client.disconnect()
        #expect(try await jobs.first(1).isEmpty)
        await place.broker.stop()
    }

    @Test func `what is wrong with a declared subscription is thrown by its sequence`() async throws {
        let place = try await Place()
        place.broker.changeFaults { $0.refusedFilters = ["forbidden"] }
        let client = try place.client("worker")
        let forbidden = client.subscription(to: "forbidden")
        let invalid = client.subscription(to: "a/#/b")
        let good = client.subscription(to: "good")
        try await client.connect()
        await #expect { try await forbidden.first(1) } throws: { ($0 as? MQTTError)?.code == .refused }
        await #expect { try await invalid.first(1) } throws: { ($0 as? MQTTError)?.code == .invalidRequest }
        await place.broker.publish("1", to: "good")
        #expect(try await numbers(good.first(1)) == [1])
        await client.disconnect()
        await place.broker.stop()
    }

    @Test(arguments: [false, true])
    func `a declared subscription gets what a session store holds`(takesAll: Bool) async throws {
        let place = try await Place()
        try await place.leave(0..<3, to: "jobs/a", filters: ["jobs/#"], of: "worker", version: .v5_0, qos: .exactlyOnce)
        let store = MemorySessionStore()
        func client() throws -> MQTTClient { try place.client("worker") { $0.sessionStore = store } }
        let first = try client()
        try await first.connect()
        #expect(await eventually { first.core.link.perform { $0.unmatched.count } == 3 })
        await first.disconnect()
        let second = try client()
        let jobs =
            takesAll
            ? await second.unmatchedMessages(acknowledgement: .manual)
            : second.subscription(to: "jobs/#", acknowledgement: .manual)
        try await second.connect()
        let received = try await jobs.first(3)
        #expect(numbers(received) == [0, 1, 2])
        for message in received { message.acknowledge() }
        #expect(second.backlog.unmatchedMessages == 0)
        await second.disconnect()
        await place.broker.stop()
    }

    @Test(arguments: [false, true])
    func `the copy of before disconnect() acknowledges a message that the store holds`(acknowledges: Bool) async throws
    {
        let place = try await Place()
        try await place.leave(0..<1, to: "jobs/a", filters: ["jobs/#"], of: "worker", version: .v5_0, qos: .exactlyOnce)
        let client = try place.client("worker") { $0.sessionStore = MemorySessionStore() }
        try await client.connect()
        #expect(await eventually { client.core.link.perform { $0.unmatched.count } == 1 })
        var copies: [MQTTMessage] = []
        for _ in 0..<2 {
            await client.disconnect()
            let jobs = client.subscription(to: "jobs/#", acknowledgement: .manual)
            try await client.connect()
            copies += try await jobs.first(1)
        }
        #expect(numbers(copies) == [0, 0])
        if acknowledges { copies[0].acknowledge() }
        #expect(client.backlog.unmatchedMessages == (acknowledges ? 0 : 1))
        await client.disconnect()
        await place.broker.stop()
    }

    // MARK: A restart

    /// How a worker begins: what its program calls before it subscribes.
    struct Start: Sendable, CustomTestStringConvertible {
        enum Order: CaseIterable { case connect, start, withConnection, declared }

        var order: Order
        var version: MQTTVersion
        var qos: QoS

        static let all = Order.allCases.flatMap { order in
            versions.flatMap { version in qualities.map { Start(order: order, version: version, qos: $0) } }
        }
        var testDescription: String { "\(order), \(version), \(qos)" }
    }

    @Test(arguments: Start.all)
    func `a worker that is killed before it acknowledges gets every message at the next start`(
        start: Start
    ) async throws {
        let (version, qos) = (start.version, start.qos)
        let place = try await Place()
        try await place.leave(0..<50, to: "jobs/a", filters: ["jobs/#"], of: "worker", version: version, qos: qos)
        for round in 0..<3 {
            let client = try place.client("worker", version: version)
            @Sendable func work() async throws -> [Int] {
                try await work(client.subscribe(to: "jobs/#", qos: .exactlyOnce, acknowledgement: .manual))
            }
            @Sendable func work(_ jobs: MQTTSubscription) async throws -> [Int] {
                let received = try await jobs.first(50)
                if round < 2 {
                    await place.kill("worker")
                } else {
                    for message in received { message.acknowledge() }
                    await place.clock.waitUntilQuiet()
                }
                return numbers(received)
            }
            switch start.order {
            case .connect:
                try await client.connect()
                #expect(try await work() == Array(0..<50))
            case .start:
                await client.start()
                #expect(try await work() == Array(0..<50))
            case .declared:
                let jobs = client.subscription(to: "jobs/#", qos: .exactlyOnce, acknowledgement: .manual)
                try await client.connect()
                // However late the worker begins to read.
                await place.clock.advance(by: .seconds(60))
                #expect(try await work(jobs) == Array(0..<50))
            case .withConnection:
                #expect(try await client.withConnection { _ in try await work() } == Array(0..<50))
            }
        }
        let client = try place.client("worker", version: version)
        let rest = client.subscription(to: "jobs/#", qos: .exactlyOnce)
        try await client.connect()
        await place.clock.waitUntilQuiet()
        await place.broker.publish("x", to: "jobs/a", qos: qos)
        #expect(try await rest.first(1).map(\.text) == ["x"])
        await client.disconnect()
        await place.broker.stop()
    }

    @Test(arguments: versions)
    func `a filter that nobody subscribes any more delays the others once, by ten seconds`(
        version: MQTTVersion
    ) async throws {
        let place = try await Place()
        let filters = ["healthy", "left/over"]
        try await place.leave(
            0..<1, to: "left/over", filters: filters, of: "worker", version: version, qos: .atLeastOnce)
        let client = try place.client("worker", version: version) { $0.reconnect.initialDelay = .seconds(1) }
        let start = place.clock.now
        try await client.connect()
        let healthy = try await client.subscribe(to: "healthy", qos: .atLeastOnce, acknowledgement: .manual)
        await place.publish(0..<1, to: "healthy", qos: .atLeastOnce)
        func acknowledged() async throws -> Bool {
            for message in try await healthy.first(1) { message.acknowledge() }
            await place.clock.waitUntilQuiet()
            return client.core.link.perform { $0.engine.unacknowledgedCount } == 0
        }
        #expect(try await !acknowledged())
        await place.clock.advance(by: .seconds(9))
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 2)
        await place.clock.advance(by: .seconds(1))
        #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 0)
        #expect(start.duration(to: place.clock.now) >= .seconds(10))
        // Never again: neither on this connection nor on a later one.
        for round in 1...2 {
            await place.publish(round..<round + 1, to: "left/over", qos: .atLeastOnce)
            await place.publish(round..<round + 1, to: "healthy", qos: .atLeastOnce)
            #expect(try await acknowledged())
            await place.broker.dropConnection(of: "worker")
            await place.publish(0..<5, to: "left/over", qos: .atLeastOnce)
            await place.clock.advance(by: .seconds(5))
            #expect(client.state.isConnected)
            #expect(client.core.link.perform { $0.engine.unacknowledgedCount } == 0)
        }
        await client.disconnect()
        await place.broker.stop()
    }

    // MARK: Messages that match no subscription

    @Test func `messages after disconnect() and connect() do not go to an earlier unmatchedMessages()`() async throws {
        let place = try await Place()
        try await place.leave(0..<3, to: "a", filters: ["a"], of: "late", version: .v5_0, qos: .atLeastOnce)
        let client = try place.client("late")
        let before = await client.unmatchedMessages()
        try await client.connect()
        #expect(try await numbers(before.first(3)) == [0, 1, 2])
        await client.disconnect()
        await place.publish(3..<6, to: "a", qos: .atLeastOnce)
        try await client.connect()
        await place.clock.waitUntilQuiet()
        let after = await client.unmatchedMessages()
        #expect(try await numbers(after.first(3)) == [3, 4, 5])
        withExtendedLifetime(before) {}
        await client.disconnect()
        await place.broker.stop()
    }

    @Test func `unmatchedMessages() throws what made the client give up`() async throws {
        let client = MQTTClient("mqtt://127.0.0.1:1", configuration: failingAtOnce)
        let messages = await client.unmatchedMessages()
        await #expect(throws: MQTTError.self) { try await client.connect() }
        await #expect(throws: MQTTError.self) { for try await _ in messages {} }
    }

    private var failingAtOnce: MQTTConfiguration {
        var configuration = MQTTConfiguration()
        configuration.reconnect.firstConnectAttempts = 1
        return configuration
    }
}

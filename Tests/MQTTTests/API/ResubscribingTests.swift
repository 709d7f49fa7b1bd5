import ClientTestSupport
import LoopbackBroker
import MQTTCore
import MessagingShell
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// Which filters are subscribed again when the server has kept the session.
@Suite("Client: subscribing again in a session", .turns)
struct ResubscribingTests {
    /// Keeps sessions, and the SUBSCRIBE packets of each connection.
    private final class KeepingServer: Sendable {
        private let seen = Mutex<[(connection: Int, requests: [MQTTSubscriptionRequest])]>([])
        private let scripted = Mutex<ScriptedServer?>(nil)

        /// What the connections allow in turn; later ones allow everything.
        private let maximumQoS: [QoS]
        /// The connections that end before CONNACK.
        private let ending: Set<Int>
        /// The QoS with which no filter is granted.
        private let refused: QoS?

        init(maximumQoS: [QoS] = [], ending: Set<Int> = [], refused: QoS? = nil) {
            self.maximumQoS = maximumQoS
            self.ending = ending
            self.refused = refused
            let server = ScriptedServer { [weak self] step in self?.handle(step) }
            scripted.withLock { $0 = server }
        }

        var server: ScriptedServer { scripted.withLock { $0! } }

        func requests(on connection: Int) -> [MQTTSubscriptionRequest] {
            seen.withLock { $0.filter { $0.connection == connection }.flatMap(\.requests) }
        }

        private func handle(_ step: ScriptedServer.Step) {
            let maximum = maximumQoS.dropFirst(step.connection - 1).first ?? .exactlyOnce
            switch step.event {
            case .connectReceived where ending.contains(step.connection): step.link.dropConnection()
            case .connectReceived(let connect):
                let says = connect.version == .v5_0 && maximum < .exactlyOnce
                step.accept(sessionPresent: step.connection > 1, properties: says ? [.maximumQoS(maximum)] : [])
            case .subscribeReceived(let packet):
                seen.withLock { $0.append((step.connection, packet.subscriptions)) }
                step.perform { machine in
                    let codes = packet.subscriptions.map {
                        $0.qos == refused
                            ? .unspecifiedError : MQTTReasonCode(rawValue: min($0.qos, maximum).rawValue)
                    }
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
                }
            default: break
            }
        }
    }

    private static func keepSession(_ version: MQTTVersion, _ configuration: inout MQTTConfiguration) {
        configuration.version = version
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(3600)
    }

    private func reconnected(
        _ version: MQTTVersion, _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> [MQTTSubscriptionRequest] {
        let keeping = KeepingServer()
        let client = keeping.server.client {
            Self.keepSession(version, &$0)
            change(&$0)
        }
        try await client.connect()
        let plain = try await client.subscribe(to: "plain", qos: .exactlyOnce)
        let shared = try await client.subscribe(to: "$share/group/work", qos: .exactlyOnce)
        keeping.server.link?.dropConnection()
        #expect(await eventually { keeping.server.connectionCount == 2 && client.state.isConnected })
        // It leaves after SUBACK.
        #expect(try await client.publish("x", to: "y", qos: .atLeastOnce) == .success)
        withExtendedLifetime((plain, shared)) {}
        await client.disconnect()
        return keeping.requests(on: 2)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `shared filters are subscribed again also where the server has kept the session, the others are not`(
        version: MQTTVersion
    ) async throws {
        let requests = try await reconnected(version)
        #expect(requests.map(\.filter) == ["$share/group/work"])
        #expect(requests.map(\.qos) == [.exactlyOnce])
    }

    /// A server without our session begins one with the CONNECT, and calls it present on the next connection.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `all filters are subscribed again, once, where a CONNECT before had no answer`(
        version: MQTTVersion
    ) async throws {
        let keeping = KeepingServer(ending: [2, 3])
        let client = keeping.server.client { Self.keepSession(version, &$0) }
        try await client.connect()
        let plain = try await client.subscribe(to: "plain", qos: .exactlyOnce)
        for connection in [4, 5] {
            keeping.server.link?.dropConnection()
            #expect(await eventually { keeping.server.connectionCount == connection && client.state.isConnected })
            // It leaves after SUBACK.
            #expect(try await client.publish("x", to: "y", qos: .atLeastOnce) == .success)
        }
        withExtendedLifetime(plain) {}
        await client.disconnect()
        #expect((2...5).map { keeping.requests(on: $0).map(\.filter) } == [[], [], ["plain"], []])
        // As above.
        let expected: MQTTSubscriptionRequest.RetainHandling = version == .v5_0 ? .sendIfNew : .sendAtSubscribe
        #expect(keeping.requests(on: 4).map(\.retainHandling) == [expected])
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `all filters are subscribed again where that is on`(version: MQTTVersion) async throws {
        let requests = try await reconnected(version) { $0.resubscribesWithSessionPresent = true }
        #expect(Set(requests.map(\.filter)) == ["plain", "$share/group/work"])
        // Retained messages come only where the server has lost the subscription; 3.1.1 has no way to say so.
        let expected: MQTTSubscriptionRequest.RetainHandling = version == .v5_0 ? .sendIfNew : .sendAtSubscribe
        #expect(requests.allSatisfy { $0.retainHandling == expected })
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a filter that was granted less is subscribed again when the server says that it allows more`(
        version: MQTTVersion
    ) async throws {
        let keeping = KeepingServer(maximumQoS: [.atMostOnce, .atMostOnce, .atLeastOnce, .atLeastOnce])
        let client = keeping.server.client { Self.keepSession(version, &$0) }
        try await client.connect()
        let messages = try await client.subscribe(to: "plain", qos: .exactlyOnce)
        #expect(messages.grantedQoS == .atMostOnce)
        for connection in 2...6 {
            keeping.server.link?.dropConnection()
            #expect(await eventually { keeping.server.connectionCount == connection && client.state.isConnected })
            // It leaves after SUBACK.
            let subscribed = try await client.subscribe(to: "other\(connection)")
            withExtendedLifetime(subscribed) {}
        }
        withExtendedLifetime(messages) {}
        await client.disconnect()
        let requests = (2...6).map { connection in keeping.requests(on: connection).filter { $0.filter == "plain" } }
        #expect(
            requests.map { $0.map(\.qos) }
                == (version == .v5_0 ? [[], [.atLeastOnce], [], [.exactlyOnce], []] : .init(repeating: [], count: 5)))
        #expect(requests.joined().allSatisfy { $0.retainHandling == .sendIfNew })
    }

    /// A session that was kept, and its client, which declares a subscription.
    private func declared(
        _ keeping: KeepingServer, _ version: MQTTVersion, qos: QoS = .atMostOnce
    ) async throws -> (client: MQTTClient, messages: MQTTSubscription) {
        let client = keeping.server.client { Self.keepSession(version, &$0) }
        let messages = client.subscription(to: "plain", qos: qos)
        try await client.connect()
        #expect(await eventually { !keeping.requests(on: 1).isEmpty })
        return (client, messages)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a further subscription that is declared without a connection gets its retained messages, and its QoS`(
        version: MQTTVersion
    ) async throws {
        let keeping = KeepingServer()
        let (client, messages) = try await declared(keeping, version)
        await client.suspend()
        let further = client.subscription(to: "plain", qos: .exactlyOnce)
        client.resume()
        try await client.connect()
        #expect(try await client.publish("x", to: "y", qos: .atLeastOnce) == .success)
        #expect(keeping.requests(on: 2).map(\.qos) == [.exactlyOnce])
        #expect(keeping.requests(on: 2).map(\.retainHandling) == [.sendAtSubscribe])
        let third = client.subscription(to: "plain")
        #expect(await eventually { keeping.requests(on: 2).count == 2 })
        #expect(keeping.requests(on: 2).last?.retainHandling == .sendAtSubscribe)
        withExtendedLifetime((messages, further, third)) {}
        await client.disconnect()
    }

    @Test func `a refused further subscription does not bring another one its retained messages again`() async throws {
        let keeping = KeepingServer(refused: .exactlyOnce)
        let (client, messages) = try await declared(keeping, .v5_0)
        await client.suspend()
        let further = client.subscription(to: "plain", qos: .exactlyOnce)
        client.resume()
        #expect(await eventually { keeping.requests(on: 2).count == 2 })
        #expect(keeping.requests(on: 2).map(\.qos) == [.exactlyOnce, .atMostOnce])
        // In the session that was kept, the filter is still subscribed.
        #expect(keeping.requests(on: 2).map(\.retainHandling) == [.sendAtSubscribe, .sendIfNew])
        withExtendedLifetime((messages, further)) {}
        await client.disconnect()
    }

    /// The server answers the first SUBSCRIBE late, and then no other one on that connection.
    @Test func `the answer to a subscription that has ended is not taken for that to the next one`() async throws {
        let asked = Mutex<[(step: ScriptedServer.Step, id: UInt16)]>([])
        let unsubscribed = Mutex(0)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept(sessionPresent: step.connection > 1)
            case .subscribeReceived(let packet):
                asked.withLock { $0.append((step, packet.packetID)) }
                guard step.connection > 1 else { return }
                step.perform {
                    try? $0.engine.acknowledgeSubscribe(packet.packetID, codes: [.success], at: MonotonicClock.now)
                }
            case .unsubscribeReceived: unsubscribed.withLock { $0 += 1 }
            default: break
            }
        }
        let client = server.client {
            $0.cleanStart = false
            $0.requestTimeout = .patience
        }
        try await client.connect()
        var messages: MQTTSubscription? = client.subscription(to: "a")
        #expect(await eventually { asked.withLock { $0.count } == 1 })
        withExtendedLifetime(messages) {}
        messages = nil
        let next = client.subscription(to: "a", qos: .exactlyOnce)
        let core = client.core
        #expect(
            await eventually {
                await core.loop.result {
                    core.subscriptions.router.orderedEntries.map(\.value.request.qos) == [.exactlyOnce]
                }
            })
        // One request at a time names the filter.
        #expect(asked.withLock { $0.count } == 1)
        asked.withLock { $0[0] }.step.perform { machine in
            let id = asked.withLock { $0[0].id }
            try? machine.engine.acknowledgeSubscribe(id, codes: [.success], at: MonotonicClock.now)
        }
        #expect(await eventually { asked.withLock { $0.count } == 2 })
        #expect(next.grantedQoS == nil)
        server.link?.dropConnection()
        #expect(await eventually { next.grantedQoS == .atMostOnce })
        #expect(unsubscribed.withLock { $0 } == 0)
        withExtendedLifetime(next) {}
        await client.disconnect()
    }

    /// An earlier process has subscribed it, and messages wait in the session.
    @Test func `what was declared and never asked for stays in a session that is kept`() async throws {
        let gone = Mutex<[String]>([])
        let connects = Mutex(0)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived:
                connects.withLock { $0 += 1 }
                step.accept(sessionPresent: true)
            case .subscribeReceived(let packet):
                step.perform {
                    try? $0.engine.acknowledgeSubscribe(packet.packetID, codes: [.success], at: MonotonicClock.now)
                }
            case .unsubscribeReceived(let packet): gone.withLock { $0 += packet.filters }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v3_1_1
            $0.cleanStart = false
        }
        let subscription = client.subscription(to: "a")
        await client.disconnect()
        withExtendedLifetime(subscription) {}
        try await client.connect()
        _ = try await client.subscribe(to: "b")
        await client.disconnect()
        #expect(connects.withLock { $0 } == 1)
        #expect(!gone.withLock { $0.contains("a") })
    }

    @Test func `a subscription that ended with the client is unsubscribed after the next connect`() async throws {
        let gone = Mutex<[String]>([])
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept(sessionPresent: step.connection > 1)
            case .subscribeReceived(let packet):
                step.perform {
                    try? $0.engine.acknowledgeSubscribe(packet.packetID, codes: [.success], at: MonotonicClock.now)
                }
            case .unsubscribeReceived(let packet):
                gone.withLock { $0 += packet.filters }
                step.perform {
                    try? $0.engine.acknowledgeUnsubscribe(packet.packetID, codes: [.success], at: MonotonicClock.now)
                }
            default: break
            }
        }
        let client = server.client { $0.cleanStart = false }
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        await client.disconnect()
        // Of the session of this process's own connection.
        _ = client.subscription(to: "b")
        try await client.connect()
        try await messages.unsubscribe()
        #expect(await eventually { gone.withLock { $0.sorted() } == ["a", "b"] })
        try await messages.unsubscribe()
        #expect(gone.withLock { $0.count } == 2)
        await client.disconnect()
    }

    @Test func `the topic of replies is unsubscribed before DISCONNECT, and once more without an answer`() async throws
    {
        let gone = Mutex<[String]>([])
        let topics = Mutex<[String]>([])
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept(sessionPresent: step.connection > 1)
            case .subscribeReceived(let packet):
                topics.withLock { $0 += packet.subscriptions.map(\.filter) }
                step.perform {
                    try? $0.engine.acknowledgeSubscribe(packet.packetID, codes: [.success], at: MonotonicClock.now)
                }
            case .unsubscribeReceived(let packet): gone.withLock { $0 += packet.filters }
            default: break
            }
        }
        let client = server.client { Self.keepSession(.v5_0, &$0) }
        try await client.connect()
        let asking = Task { try await client.request("x", to: "question") }
        #expect(await eventually { topics.withLock { $0.count } == 1 })
        asking.cancel()
        _ = await asking.result
        await client.disconnect()
        #expect(await eventually { gone.withLock { $0 } == topics.withLock { $0 } })
        // No answer was awaited, and the next connection has another topic.
        try await client.connect()
        #expect(await eventually { gone.withLock { $0 } == topics.withLock { $0 + $0 } })
        await client.disconnect()
    }

    /// Servers of a list need not share their sessions.
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `what was subscribed at another server is subscribed again where a session is present`(
        version: MQTTVersion
    ) async throws {
        let clock = try ManualClock()
        let brokers = [try await LoopbackBroker.judged(clock: clock), try await LoopbackBroker.judged(clock: clock)]
        var configuration = MQTTConfiguration(clientID: "moving")
        Self.keepSession(version, &configuration)
        let client = MQTTClient(
            try brokers[0].mqttURL, try brokers[1].mqttURL, configuration: configuration, clock: clock)
        try await client.connect()
        let a = try await client.subscribe(to: "a")
        try await client.reconnect()
        let b = try await client.subscribe(to: "b", qos: .atLeastOnce)
        try await client.reconnect()
        #expect(client.server.map { "\($0)" } == (try brokers[0].mqttURL))
        _ = try await client.publish("back", to: "b", qos: .atLeastOnce)
        #expect(try await b.first(1).map(\.text) == ["back"])
        withExtendedLifetime(a) {}
        await client.disconnect()
        for broker in brokers { await broker.stop() }
    }

    @Test func `after a session was discarded the next CONNECT has Clean Start, since DISCONNECT may not have arrived`()
        async throws
    {
        let broker = try await LoopbackBroker.judged()
        var configuration = MQTTConfiguration(clientID: "discarding")
        Self.keepSession(.v5_0, &configuration)
        let client = MQTTClient(try broker.mqttURL, configuration: configuration)
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        broker.inject(.drop, .received, .mqtt(.disconnect))
        try await client.discardSession()
        withExtendedLifetime(messages) {}
        for isPresent in [false, true] {
            var events = client.events.makeAsyncIterator()
            try await client.connect()
            var found: Bool?
            while found == nil, let event = await events.next() {
                if case .connected(let info) = event { found = info.sessionPresent }
            }
            #expect(found == isPresent)
            await client.disconnect()
        }
        await broker.stop()
    }

    /// How long after a second connection was opened a message that waits arrives, when the broker's packets take 100 ms.
    private func delay(_ change: (inout MQTTConfiguration) -> Void) async throws -> Duration {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "delayed")
        Self.keepSession(.v5_0, &configuration)
        configuration.reconnect.jitter = 0
        change(&configuration)
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        let plain = try await client.subscribe(to: "plain")
        await broker.setLatency(.milliseconds(100))
        await broker.dropAllConnections()
        try await client.enqueue(MQTTOutgoingMessage("x", to: "queued"))
        var (connected, published): (ManualClock.Instant?, ManualClock.Instant?)
        for _ in 0..<10_000 where published == nil {
            await clock.advance(by: .milliseconds(1))
            if connected == nil, broker.statistics.connections == 2 { connected = clock.now }
            if broker.statistics.messagesIn == 1 { published = clock.now }
        }
        withExtendedLifetime(plain) {}
        await client.disconnect()
        await broker.stop()
        return try #require(connected).duration(to: #require(published))
    }

    @Test func `subscribing again costs what waits to be published one round trip`() async throws {
        let without = try await delay { _ in }
        let with = try await delay { $0.resubscribesWithSessionPresent = true }
        #expect(without == .milliseconds(100) && with == .milliseconds(200))
    }
}

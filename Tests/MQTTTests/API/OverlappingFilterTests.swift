import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Subscriptions of several filters that match the same topics.
@Suite("Client: overlapping filters", .turns)
struct OverlappingFilterTests {
    /// The SUBSCRIBE packets that a server received, by connection.
    private final class Subscribed: Sendable {
        let packets = Mutex<[(connection: Int, filters: [String], identifiers: [UInt32])]>([])

        let unsubscribed = Mutex<[String]>([])
        let answersUnsubscribe = Atomic(false)

        func identifier(of filter: String) -> UInt32? {
            packets.withLock { $0.first { $0.filters == [filter] }?.identifiers.first }
        }
    }

    private func server(_ subscribed: Subscribed, knowsIdentifiers: Bool = true) -> ScriptedServer {
        ScriptedServer { step in
            switch step.event {
            case .connectReceived:
                var properties = MQTTProperties()
                if !knowsIdentifiers { properties.subscriptionIdentifierAvailable = false }
                step.accept(properties: properties)
            case .subscribeReceived(let subscribe):
                subscribed.packets.withLock {
                    $0.append(
                        (
                            step.connection, subscribe.subscriptions.map(\.filter),
                            subscribe.properties.subscriptionIdentifiers
                        ))
                }
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: subscribe.subscriptions.map { _ in .success },
                        at: MonotonicClock.now)
                }
            case .unsubscribeReceived(let unsubscribe):
                subscribed.unsubscribed.withLock { $0 += unsubscribe.filters }
                guard subscribed.answersUnsubscribe.load(ordering: .relaxed) else { return }
                step.perform { machine in
                    try? machine.engine.acknowledgeUnsubscribe(
                        unsubscribe.packetID, codes: [.success], at: MonotonicClock.now)
                }
            default: break
            }
        }
    }

    /// Whatever copy comes for one of the others, one for the filter that is read came before, also if the connection ended
    /// between the packets.
    @Test func `the filter with the highest QoS is subscribed first, on each connection`() async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(to: [
            .init(filter: "a/#", qos: .atLeastOnce), .init(filter: "a/b", qos: .exactlyOnce),
            .init(filter: "+/b", qos: .exactlyOnce),
        ])
        server.link?.dropConnection()
        #expect(await eventually { subscribed.packets.withLock { $0.count } == 6 })
        let expected = [["a/b"], ["+/b"], ["a/#"]]
        #expect(subscribed.packets.withLock { $0.map(\.filters) } == expected + expected)
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    private func send(
        _ payload: String, to topic: String, _ identifiers: [UInt32], qos: QoS = .atMostOnce,
        from server: ScriptedServer
    ) {
        server.link?.perform { machine in
            var properties = MQTTProperties()
            properties.subscriptionIdentifiers = identifiers
            _ = try? machine.engine.publish(
                topic: topic, payload: Array(payload.utf8), qos: qos, retain: false, properties: properties, token: 1,
                at: MonotonicClock.now)
        }
    }

    private func texts(_ messages: MQTTSubscription, until last: String) async throws -> [String] {
        var texts: [String] = []
        while texts.last != last { texts += try await messages.first(1).compactMap(\.text) }
        return texts
    }

    @Test(arguments: QoS.allCases)
    func `of the copies that a server sends for overlapping filters, one is delivered`(qos: QoS) async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let filters = ["a/+", "b", "a/#", "+/c"]
        let messages = try await client.subscribe(to: filters.map { MQTTSubscriptionRequest(filter: $0, qos: qos) })
        let packets = subscribed.packets.withLock { $0 }
        // Each of those that overlap has a packet and an identifier of its own.
        #expect(packets.map(\.filters) == [["b"], ["a/+"], ["a/#"], ["+/c"]])
        #expect(packets.map(\.identifiers.count) == [0, 1, 1, 1])
        let one = try #require(subscribed.identifier(of: "a/+"))
        let all = try #require(subscribed.identifier(of: "a/#"))
        let third = try #require(subscribed.identifier(of: "+/c"))
        #expect(Set([one, all, third]).count == 3)
        // In either order, in one packet, and alone.
        send("first", to: "a/b", [all], qos: qos, from: server)
        send("first", to: "a/b", [one], qos: qos, from: server)
        for identifier in [one, all, third] { send("second", to: "a/c", [identifier], qos: qos, from: server) }
        send("third", to: "a/c", [third, one, all], qos: qos, from: server)
        send("fourth", to: "a/c/d", [all], qos: qos, from: server)
        send("fifth", to: "b", [], qos: qos, from: server)
        // An identifier that an earlier process chose, and none.
        send("sixth", to: "a/b", [7], qos: qos, from: server)
        send("seventh", to: "a/b", [], qos: qos, from: server)
        send("last", to: "x/c", [third], qos: qos, from: server)
        let expected = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last"]
        #expect(try await texts(messages, until: "last") == expected)
        // What was not delivered is acknowledged all the same.
        #expect(await eventually { server.link?.perform { $0.engine.inFlightCount } == 0 })
        await client.disconnect()
    }

    @Test func `the copy with the highest QoS is delivered`() async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(to: [
            MQTTSubscriptionRequest(filter: "a/+", qos: .atMostOnce),
            MQTTSubscriptionRequest(filter: "a/#", qos: .atLeastOnce),
        ])
        let one = try #require(subscribed.identifier(of: "a/+"))
        let all = try #require(subscribed.identifier(of: "a/#"))
        send("low", to: "a/b", [one], from: server)
        send("high", to: "a/b", [all], qos: .atLeastOnce, from: server)
        send("last", to: "a/b", [all], qos: .atLeastOnce, from: server)
        #expect(try await texts(messages, until: "last") == ["high", "last"])
        await client.disconnect()
    }

    @Test func `filters are subscribed with the same identifiers in the same order after a reconnect`() async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let filters = ["a/1", "a/2", "a/3", "a/4", "a/#"]
        let messages = try await client.subscribe(to: filters.map { MQTTSubscriptionRequest(filter: $0) })
        server.link?.dropConnection()
        #expect(await eventually { subscribed.packets.withLock { $0.count } == 10 })
        let packets = subscribed.packets.withLock { $0 }
        #expect(packets.prefix(5).map(\.filters) == filters.map { [$0] })
        #expect(packets.suffix(5).map(\.filters) == filters.map { [$0] })
        #expect(packets.prefix(5).map(\.identifiers) == packets.suffix(5).map(\.identifiers))
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    /// Where copies cannot be told apart: the version, whether the server knows identifiers, the user's own.
    @Test(arguments: [(MQTTVersion.v3_1_1, true, nil), (.v5_0, false, nil), (.v5_0, true, 42)])
    func `where copies cannot be told apart, one packet subscribes and all copies are delivered`(
        version: MQTTVersion, knowsIdentifiers: Bool, identifier: UInt32?
    ) async throws {
        let subscribed = Subscribed()
        let server = server(subscribed, knowsIdentifiers: knowsIdentifiers)
        let client = server.client { $0.version = version }
        try await client.connect()
        var properties = MQTTProperties()
        let identifiers = identifier.map { [$0] } ?? []
        properties.subscriptionIdentifiers = identifiers
        let messages = try await client.subscribe(
            to: ["a/+", "a/#"].map { MQTTSubscriptionRequest(filter: $0) }, properties: properties)
        let packets = subscribed.packets.withLock { $0 }
        #expect(packets.map(\.filters) == [["a/+", "a/#"]])
        #expect(packets.map(\.identifiers) == [identifiers])
        send("copy", to: "a/b", identifiers, from: server)
        send("copy", to: "a/b", identifiers, from: server)
        send("last", to: "a/b", identifiers, from: server)
        #expect(try await texts(messages, until: "last") == ["copy", "copy", "last"])
        await client.disconnect()
    }

    /// Requests whose copies the server may not send for each filter, so that the others must not be dropped.
    @Test(arguments: [
        [MQTTSubscriptionRequest(filter: "a/+", noLocal: true), MQTTSubscriptionRequest(filter: "a/#")],
        [MQTTSubscriptionRequest(filter: "a/+", retainHandling: .doNotSend), MQTTSubscriptionRequest(filter: "a/#")],
        [
            MQTTSubscriptionRequest(filter: "a/+", retainHandling: .sendIfNew),
            MQTTSubscriptionRequest(filter: "a/#", retainHandling: .sendIfNew),
        ],
        [MQTTSubscriptionRequest(filter: "$share/g/a/+"), MQTTSubscriptionRequest(filter: "a/#")],
    ])
    func `copies for filters that a server may treat differently are all delivered`(
        requests: [MQTTSubscriptionRequest]
    ) async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(to: requests)
        let identifiers = try requests.map { try #require(subscribed.identifier(of: $0.filter)) }
        #expect(Set(identifiers).count == 2)
        for identifier in identifiers { send("copy", to: "a/b", [identifier], from: server) }
        send("last", to: "a/b", [], from: server)
        #expect(try await texts(messages, until: "last") == ["copy", "copy", "last"])
        await client.disconnect()
    }

    @Test func `filters that do not overlap get no identifiers`() async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let messages = try await client.subscribe(to: ["a/+", "b/#"].map { MQTTSubscriptionRequest(filter: $0) })
        #expect(subscribed.packets.withLock { $0 }.map(\.identifiers) == [[]])
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    /// The earlier one is subscribed again with an identifier, before the new one.
    @Test(arguments: ["jobs/+", "$share/g/jobs/+"], QoS.allCases)
    func `each of two sequences gets the copies for its filter`(filter: String, qos: QoS) async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let all = try await client.subscribe(to: "jobs/#", qos: qos)
        let some = try await client.subscribe(to: filter, qos: qos)
        let packets = subscribed.packets.withLock { $0 }
        #expect(packets.map(\.filters) == [["jobs/#"], ["jobs/#"], [filter]])
        #expect(packets.map(\.identifiers.count) == [0, 1, 1])
        let (first, second) = (packets[1].identifiers[0], packets[2].identifiers[0])
        #expect(first != second)
        send("1", to: "jobs/1", [first], qos: qos, from: server)
        send("2", to: "jobs/1", [second], qos: qos, from: server)
        send("3", to: "jobs/1", [second, first], qos: qos, from: server)
        // Of an earlier process, together with one that is known, and none.
        send("4", to: "jobs/1", [first, 7], qos: qos, from: server)
        send("5", to: "jobs/1", [], qos: qos, from: server)
        #expect(try await texts(all, until: "5") == ["1", "3", "4", "5"])
        #expect(try await texts(some, until: "5") == ["2", "3", "4", "5"])
        #expect(await eventually { server.link?.perform { $0.engine.inFlightCount } == 0 })
        await client.disconnect()
    }

    /// Before UNSUBACK and after it, which may overtake messages.
    @Test(arguments: [false, true])
    func `copies for a filter that is unsubscribed go to no other`(isAnswered: Bool) async throws {
        let subscribed = Subscribed()
        subscribed.answersUnsubscribe.store(isAnswered, ordering: .relaxed)
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let all = try await client.subscribe(to: "jobs/#")
        let share = try await client.subscribe(to: "$share/g/jobs/+")
        let identifiers = subscribed.packets.withLock { $0.compactMap(\.identifiers.first) }
        let unsubscribing = Task { try await all.unsubscribe() }
        #expect(await eventually { subscribed.unsubscribed.withLock { $0 } == ["jobs/#"] })
        if isAnswered { _ = try await unsubscribing.value }
        send("of another worker", to: "jobs/1", [identifiers[0]], qos: .atLeastOnce, from: server)
        send("own", to: "jobs/1", [identifiers[1]], qos: .atLeastOnce, from: server)
        #expect(try await texts(share, until: "own") == ["own"])
        #expect(await eventually { server.link?.perform { $0.engine.inFlightCount } == 0 })
        await client.disconnect()
        _ = await unsubscribing.result
    }

    /// Whichever of the two subscribed first, and whether the other one is for replies.
    @Test func `replies to requests come once to a sequence that has their topic too`() async throws {
        let subscribed = Subscribed()
        let server = server(subscribed)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let asking = Task { try? await client.request("?", to: "q", timeout: .seconds(30)) }
        #expect(await eventually { subscribed.packets.withLock { $0.count } == 1 })
        let all = try await client.subscribe(to: "responses/#")
        let identifiers = subscribed.packets.withLock { $0.map(\.identifiers) }
        #expect(identifiers.map(\.count) == [0, 1, 1] && identifiers[1] != identifiers[2])
        withExtendedLifetime(all) {}
        await client.disconnect()
        _ = await asking.value
    }

    /// A server that sends one copy has no identifier of the earlier filter then.
    @Test func `a filter that the server does not subscribe again gets every message of its topics`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let all = try await client.subscribe(to: "jobs/#")
        server.setWithholding(true)
        let subscribing = Task { try await client.subscribe(to: "jobs/+") }
        #expect(await eventually { server.unansweredCount == 2 })
        server.answerAll(.quotaExceeded, .grantedQoS1)
        let some = try await subscribing.value
        let identifier = try #require(server.properties.last?.subscriptionIdentifiers.first)
        server.scriptedServer.link?.perform { machine in
            var properties = MQTTProperties()
            properties.subscriptionIdentifiers = [identifier]
            _ = try? machine.engine.publish(
                topic: "jobs/1", payload: Array("one copy".utf8), qos: .atMostOnce, retain: false,
                properties: properties, token: 1, at: MonotonicClock.now)
        }
        #expect(try await all.first(1).map(\.text) == ["one copy"])
        #expect(try await some.first(1).map(\.text) == ["one copy"])
        await client.disconnect()
        withExtendedLifetime(server) {}
    }

    @Test func `a server without identifiers is not asked again for an earlier filter`() async throws {
        let subscribed = Subscribed()
        let server = server(subscribed, knowsIdentifiers: false)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let both = [
            try await client.subscribe(to: "jobs/#"), try await client.subscribe(to: "jobs/+"),
        ]
        #expect(subscribed.packets.withLock { $0 }.map(\.filters) == [["jobs/#"], ["jobs/+"]])
        send("x", to: "jobs/1", [], from: server)
        for messages in both { #expect(try await texts(messages, until: "x") == ["x"]) }
        await client.disconnect()
    }

    @Test(arguments: QoS.allCases)
    func `a broker that sends one copy with several identifiers has it delivered once`(qos: QoS) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let messages = try await client.subscribe(
            to: ["a/+", "a/#", "+/b"].map { MQTTSubscriptionRequest(filter: $0, qos: qos) })
        for number in 0..<100 { try await client.publish("\(number)", to: "a/b", qos: qos) }
        #expect(try await texts(messages, until: "99") == (0..<100).map { "\($0)" })
        await client.disconnect()
        await bench.stop()
    }
}

import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// What a server said it does not take is not sent to it, and what nobody could send is not tried.
@Suite("Client: limits and contradictions", .turns)
struct LimitTests {
    /// A server that counts what asks something of it.
    private func server(
        _ properties: MQTTProperties = [], maximumPacketSize: UInt32 = 16 << 20
    ) -> (ScriptedServer, Requests) {
        let requests = Requests()
        let server = ScriptedServer(maximumPacketSize: maximumPacketSize) { step in
            switch step.event {
            case .connectReceived: step.accept(properties: properties)
            case .subscribeReceived(let packet):
                requests.count.withLock { $0 += 1 }
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        packet.packetID, codes: packet.subscriptions.map { _ in .success }, at: 0)
                }
            default: break
            }
        }
        return (server, requests)
    }

    private final class Requests: Sendable {
        let count = Mutex(0)
    }

    @Test func `subscriptions of a kind that the server does not know`() async throws {
        var properties = MQTTProperties()
        properties.wildcardSubscriptionAvailable = false
        properties.sharedSubscriptionAvailable = false
        let (server, requests) = server(properties)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        for (filter, word) in [("a/#", "wildcards"), ("+/a", "wildcards"), ("$share/g/a", "shared")] {
            let error = await error { () throws(MQTTError) in _ = try await client.subscribe(to: filter) }
            #expect(error?.code == .notAllowed)
            #expect(error?.message.contains(word) == true, "\(filter): \(error?.message ?? "")")
        }
        let noLocal = await error { () throws(MQTTError) in
            _ = try await client.subscribe(to: "$share/g/a", noLocal: true)
        }
        #expect(noLocal?.code == .notAllowed)
        #expect(noLocal?.message.contains("No Local") == true)
        #expect(requests.count.withLock { $0 } == 0)
        _ = try await client.subscribe(to: "a")
        #expect(requests.count.withLock { $0 } == 1)
        await client.disconnect()
    }

    @Test func `a request larger than the server takes`() async throws {
        let (server, requests) = server(maximumPacketSize: 200)
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let filter = String(repeating: "x", count: 300)
        let error = await error { () throws(MQTTError) in _ = try await client.subscribe(to: filter) }
        #expect(error?.code == .notAllowed)
        #expect(error?.message.contains("200") == true)
        #expect(requests.count.withLock { $0 } == 0)
        // Its neighbours in one call are not held up by it.
        let both = try await client.subscribe(to: [.init(filter: filter), .init(filter: "a")])
        #expect(both.reasonCodes.map(\.isError) == [true, false])
        await client.disconnect()
    }

    @Test func `filters that are too large together are subscribed and unsubscribed in packets of their own`()
        async throws
    {
        let server = SubscribingServer(maximumPacketSize: 200)
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let filters = ["a", "b", "c"].map { String(repeating: $0, count: 80) }
        let messages = try await client.subscribe(to: filters.map { MQTTSubscriptionRequest(filter: $0) })
        #expect(messages.reasonCodes.map(\.isError) == [false, false, false])
        #expect(server.requestSizes == [1, 1, 1])
        let result = try await messages.unsubscribe(properties: [])
        #expect(result.reasonCodes == [.success, .success, .success])
        #expect(server.unsubscribed == filters)
        #expect(client.counters.connections == 1)
        await client.disconnect()
    }

    @Test func `Server Keep Alive and missing subscription identifiers shape what is sent`() async throws {
        let clock = try ManualClock()
        let server = SubscribingServer(clock: clock) { properties in
            properties.serverKeepAlive = 7
            properties.subscriptionIdentifierAvailable = false
        }
        let client = server.scriptedServer.client {
            $0.version = .v5_0
            $0.keepAlive = .seconds(1_000)
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        let messages = [try await client.subscribe(to: "a"), try await client.subscribe(to: "a/#")]
        #expect(server.properties == [[], []])
        await clock.advance(by: .seconds(7))
        var hasPinged = false
        while !hasPinged, let event = await events.next() {
            if case .pingSent = event { hasPinged = true }
        }
        #expect(hasPinged)
        withExtendedLifetime(messages) {}
        await client.disconnect()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a will above the server's Maximum QoS is refused, and the error says what to lower`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench { $0.limits.maximumQoS = 1 }
        func connect(_ qos: QoS) async -> MQTTError? {
            let client = bench.client("w\(qos.rawValue)") {
                $0.version = version
                $0.will = MQTTWill("gone", to: "w", qos: qos)
                $0.reconnect = .never
            }
            let error = await error { () throws(MQTTError) in try await client.connect() }
            await client.disconnect()
            return error
        }
        let allowed = await connect(.atLeastOnce)
        #expect(allowed == nil)
        let refused = await connect(.exactlyOnce)
        #expect(refused?.code == (version == .v5_0 ? .refused : .connectionLost))
        guard version == .v5_0 else { return await bench.stop() }
        #expect(refused?.reasonCode == .qosNotSupported)
        #expect(refused?.message.contains("Maximum QoS") == true, "\(refused?.message ?? "")")
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0])
    func `client identifiers that no CONNECT can hold`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        for id in ["a\u{0}b", String(repeating: "x", count: 65_536)] {
            let client = bench.client(id) {
                $0.version = version
                $0.reconnect.firstConnectAttempts = nil
            }
            let error = await error { () throws(MQTTError) in try await client.connect() }
            #expect(error?.code == .invalidRequest)
            #expect(error?.message.contains("the client identifier") == true, "\(error?.message ?? "")")
        }
        #expect(bench.broker.sessionCount == 0)
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a will too large for its packet`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = bench.client {
            $0.will = MQTTWill([UInt8](repeating: 0, count: 65_536), to: "w")
            $0.version = version
            $0.reconnect.firstConnectAttempts = nil
        }
        let error = await error { () throws(MQTTError) in try await client.connect() }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("the will payload") == true, "\(error?.message ?? "")")
        await bench.stop()
    }

    @Test func `properties that a message may not have`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        var wild = MQTTProperties()
        wild.responseTopic = "answers/#"
        var alias = MQTTProperties()
        alias.topicAlias = 1
        for (properties, word) in [(wild, "esponse"), (alias, "outboundTopicAliasMaximum")] {
            for qos in QoS.allCases {
                let error = await error { () throws(MQTTError) in
                    try await client.publish("x", to: "a", qos: qos, properties: properties)
                }
                #expect(error?.code == .invalidRequest)
                #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
            }
        }
        #expect(client.counters.messagesSent == 0)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a full queue, also for QoS 0 where that is queued, and one message above the queue's bytes`()
        async throws
    {
        let bench = try await Bench()
        let client = bench.client {
            $0.queuesQoS0WhileOffline = true
            $0.maximumQueuedMessages = 2
            $0.maximumQueuedBytes = 100
        }
        try await client.connect()
        await client.suspend()
        let large = await error { () throws(MQTTError) in
            try await client.publish([UInt8](repeating: 0, count: 200), to: "a")
        }
        #expect(large?.code == .queueFull)
        #expect(large?.message.contains("may hold (100)") == true)
        try await client.publish("1", to: "a")
        try await client.publish("2", to: "a")
        for qos in [QoS.atMostOnce, .atLeastOnce] {
            let third = await error { () throws(MQTTError) in try await client.publish("3", to: "a", qos: qos) }
            #expect(third?.code == .queueFull)
            #expect(third?.message.contains("holds 2 messages") == true)
            #expect(third?.message.contains("queueOverflow") == true)
        }
        await client.disconnect()
        await bench.stop()
    }
}

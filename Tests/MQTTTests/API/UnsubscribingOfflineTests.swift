import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Subscriptions that end while there is no connection, of a session that the server keeps.
@Suite("Client: unsubscribing without a connection", .turns)
struct UnsubscribingOfflineTests {
    private func subscriber(_ bench: Bench, _ version: MQTTVersion) async throws -> MQTTClient {
        try await bench.connected("subscriber") {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(1000)
        }
    }

    private func loseConnection(_ client: MQTTClient, _ bench: Bench) async {
        bench.setNetwork(up: false)
        await bench.cut()
        #expect(await eventually { !client.state.isConnected })
    }

    @Test func `a filter of an earlier process is unsubscribed by the client`() async throws {
        let bench = try await Bench()
        let earlier = try await subscriber(bench, .v5_0)
        let messages = try await earlier.subscribe(to: [.init(filter: "old/#"), .init(filter: "older")])
        await earlier.disconnect()
        let client = try await subscriber(bench, .v5_0)
        let own = try await client.subscribe(to: "own")
        #expect(try await client.unsubscribe(from: "old/#").reasonCodes == [.success])
        #expect(
            try await client.unsubscribe(from: ["older", "never"]).reasonCodes == [.success, .noSubscriptionExisted])
        for filters in [["own"], [], ["a/#/b"]] {
            await #expect { try await client.unsubscribe(from: filters) } throws: {
                ($0 as? MQTTError)?.code == .invalidRequest
            }
        }
        try await client.publish("x", to: "own", qos: .atLeastOnce)
        #expect(try await own.first(1).map(\.text) == ["x"])
        withExtendedLifetime(messages) {}
        await client.disconnect()
        await #expect { try await client.unsubscribe(from: "a") } throws: { ($0 as? MQTTError)?.code == .notConnected }
        await bench.stop()
    }

    @Test func `unmatchedMessages() before connect() receives what a kept session brings`() async throws {
        let bench = try await Bench()
        let earlier = try await subscriber(bench, .v3_1_1)
        let messages = try await earlier.subscribe(to: "kept")
        await earlier.disconnect()
        let sender = try await bench.connected("sender")
        try await sender.publish("waited", to: "kept", qos: .atLeastOnce)
        let client = bench.client("subscriber") { $0.cleanStart = false }
        let unmatched = await client.unmatchedMessages()
        await client.start()
        #expect(try await unmatched.first(1).map(\.text) == ["waited"])
        withExtendedLifetime(messages) {}
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0], [true, false])
    func `the server is asked to forget the filter after the reconnect`(
        version: MQTTVersion, isReleased: Bool
    ) async throws {
        let bench = try await Bench()
        let client = try await subscriber(bench, version)
        var ended: MQTTSubscription? = try await client.subscribe(to: "ended")
        let other = try await client.subscribe(to: "other")
        await loseConnection(client, bench)
        if !isReleased { try await ended?.unsubscribe() }
        ended = nil
        var packets = client.inspect().makeAsyncIterator()
        bench.setNetwork(up: true)
        var forgotten: [String]?
        // Without the answer it would be asked again, and rightly.
        var isAnswered = false
        while !isAnswered, let record = await packets.next() {
            if case .unsubscribe(let unsubscribe) = record.packet { forgotten = unsubscribe.filters }
            if case .unsuback = record.packet { isAnswered = true }
        }
        #expect(forgotten == ["ended"])
        // It is asked once.
        await loseConnection(client, bench)
        bench.setNetwork(up: true)
        #expect(await eventually { client.state.isConnected })
        let sender = try await bench.connected("sender")
        try await sender.publish("x", to: "other")
        #expect(try await other.first(1).map(\.text) == ["x"])
        var again = false
        await client.disconnect()
        while let record = await packets.next() {
            if case .unsubscribe = record.packet { again = true }
            if case .disconnect = record.packet { break }
        }
        #expect(!again)
        await sender.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0], [true, false])
    func `only a server that resumes the session is asked to forget, whatever the connectProvider has changed`(
        version: MQTTVersion, resumes: Bool
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected("subscriber") {
            $0.version = version
            $0.cleanStart = resumes
            $0.sessionExpiry = .seconds(1000)
            $0.connectProvider = { $0.cleanStart = !resumes }
        }
        var ended: MQTTSubscription? = try await client.subscribe(to: "ended")
        await loseConnection(client, bench)
        try await ended?.unsubscribe()
        ended = nil
        var packets = client.inspect().makeAsyncIterator()
        bench.setNetwork(up: true)
        #expect(await eventually { client.state.isConnected })
        await client.disconnect()
        var forgotten: [String] = []
        while let record = await packets.next() {
            if case .unsubscribe(let unsubscribe) = record.packet { forgotten += unsubscribe.filters }
            if case .disconnect = record.packet { break }
        }
        #expect(forgotten == (resumes ? ["ended"] : []))
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a subscription that is unsubscribed after disconnect() is forgotten by the server once there is a connection`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench()
        let client = try await subscriber(bench, version)
        let ended = try await client.subscribe(to: "ended")
        let kept = try await client.subscribe(to: "kept")
        await client.disconnect()
        try await ended.unsubscribe()
        try await ended.unsubscribe()
        var packets = client.inspect().makeAsyncIterator()
        try await client.connect()
        while let record = await packets.next() {
            guard case .unsubscribe(let unsubscribe) = record.packet else { continue }
            #expect(unsubscribe.filters == ["ended"])
            break
        }
        withExtendedLifetime(kept) {}
        await client.disconnect()
        await bench.stop()
    }

    @Test func `requests that end without a connection leave nothing to unsubscribe`() async throws {
        let bench = try await Bench()
        let client = try await subscriber(bench, .v3_1_1)
        let kept = try await client.subscribe(to: "kept")
        await loseConnection(client, bench)
        for _ in 0..<3 {
            await #expect {
                try await client.request(
                    "{}", to: "ask/{id}", responseTopic: "answer/{id}", timeout: .milliseconds(20))
            } throws: {
                ($0 as? MQTTError)?.code == .timedOut
            }
        }
        var packets = client.inspect().makeAsyncIterator()
        bench.setNetwork(up: true)
        #expect(await eventually { client.state.isConnected })
        try await client.publish("x", to: "kept", qos: .atLeastOnce)
        #expect(try await kept.first(1).map(\.text) == ["x"])
        await client.disconnect()
        var unsubscribed: [String] = []
        while let record = await packets.next() {
            if case .unsubscribe(let unsubscribe) = record.packet { unsubscribed += unsubscribe.filters }
            if case .disconnect = record.packet { break }
        }
        #expect(unsubscribed == [])
        await bench.stop()
    }

    @Test func `a filter whose SUBSCRIBE was never answered is unsubscribed on the next connection of the session`()
        async throws
    {
        let clock = try ManualClock()
        let unsubscribed = Mutex<[String]>([])
        let first = Mutex<ScriptedServer.Step?>(nil)
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived where step.connection == 1: first.withLock { $0 = step }
            case .connectReceived: step.accept(sessionPresent: true)
            case .unsubscribeReceived(let packet):
                unsubscribed.withLock { $0 += packet.filters }
                step.perform { machine in
                    try? machine.engine.acknowledgeUnsubscribe(
                        packet.packetID, codes: packet.filters.map { _ in .success }, at: clock.loop.now)
                }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(1000)
            $0.requestTimeout = .seconds(10)
        }
        await client.start()
        let subscribing = Task(executorPreference: clock.loop) { try await client.subscribe(to: "late") }
        #expect(await eventually { first.withLock { $0 } != nil })
        // SUBSCRIBE is to follow CONNACK at once, so that its silence ends the connection.
        await clock.waitUntilQuiet()
        first.withLock { $0 }?.accept()
        await clock.advance(by: .seconds(10))
        await #expect { _ = try await subscribing.value } throws: { ($0 as? MQTTError)?.code == .timedOut }
        await clock.advance(by: .seconds(1))
        #expect(await eventually { unsubscribed.withLock { $0 } == ["late"] })
        await client.disconnect()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a filter that is subscribed again before the reconnect stays subscribed`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = try await subscriber(bench, version)
        let first = try await client.subscribe(to: "t")
        await loseConnection(client, bench)
        try await first.unsubscribe()
        async let subscribing = client.subscribe(to: "t")
        bench.setNetwork(up: true)
        let second = try await subscribing
        let sender = try await bench.connected("sender")
        try await sender.publish("x", to: "t")
        #expect(try await second.first(1).map(\.text) == ["x"])
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }
}

import ClientTestSupport
import LoopbackBroker
import MQTT
import MessagingJudge
import TestSupport
import Testing

@Suite("Client: start() and run()", .turns)
struct StartTests {
    @Test func `connect() reports that no descriptor is left for the event loop, and the client can be used later`()
        async throws
    {
        let broker = try await LoopbackBroker.judged()
        try await ClientChecks.startWithoutDescriptor { loop in
            MQTTClient([try #require(broker.urls.mqtt)], configuration: MQTTConfiguration(), loop: loop)
        }
        await broker.stop()
    }

    @Test func `no call waits for an event loop for which no descriptor is left`() async throws {
        let broker = try await LoopbackBroker.judged()
        try await ClientChecks.callsWithoutDescriptor([
            ("subscribe(to:)", { @Sendable (client: MQTTClient) in _ = try await client.subscribe(to: "a") }),
            ("request(_:to:)", { @Sendable in _ = try await $0.request("x", to: "a") }),
            ("request with a topic", { @Sendable in _ = try await $0.request("x", to: "a", responseTopic: "b") }),
            ("unmatchedMessages()", { @Sendable in for try await _ in await $0.unmatchedMessages() {} }),
            ("discardSession()", { @Sendable in try await $0.discardSession() }),
        ]) { loop in
            var configuration = MQTTConfiguration()
            configuration.version = .v5_0
            return MQTTClient([try #require(broker.urls.mqtt)], configuration: configuration, loop: loop)
        }
        await broker.stop()
    }

    @Test func `start() returns without a network, and everything waits for the connection`() async throws {
        let bench = try await Bench()
        bench.setNetwork(up: false)
        let client = bench.client()
        await client.start()
        let subscribing = Task { try await client.subscribe(to: "a") }
        let publishing = Task { try await client.publish("waited", to: "a", qos: .atLeastOnce) }
        let connecting = Task { try await client.connect() }
        for await state in client.states {
            // On a busy machine there may have been more before the states are read.
            if case .waiting(_, let attempt, _) = state, attempt >= 3 { break }
        }
        bench.setNetwork(up: true)
        try await connecting.value
        let messages = try await subscribing.value
        #expect(try await publishing.value == .success)
        try await client.publish("later", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first { $0.text == "later" } != nil)
        // Again, and while connected: without effect.
        await client.start()
        #expect(client.state.isConnected && client.counters.connections == 1)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a cancelled connect() does not end what start() began`() async throws {
        let bench = try await Bench()
        bench.setNetwork(up: false)
        let client = bench.client()
        let connecting = Task { try await client.connect() }
        await client.start()
        connecting.cancel()
        await #expect(throws: MQTTError.self) { try await connecting.value }
        bench.setNetwork(up: true)
        try await client.connect()
        await client.disconnect()
        await bench.stop()
    }

    @Test func `the error of the first failure says how to keep trying, after one full stop`() async throws {
        let broker = try await LoopbackBroker.judged(mayBreak: [.malformedPacket])
        let client = MQTTClient("mqtts://127.0.0.1:\(broker.ports.mqtt ?? 0)")
        await #expect { try await client.connect() } throws: { error in
            let message = (error as? MQTTError)?.message ?? ""
            return message.contains("or a URL without TLS. To keep trying, call start()") && !message.contains("..")
        }
        await broker.stop()
    }

    @Test func `start() ends the tries after maximumAttempts, and run() throws the reason`() async throws {
        let bench = try await Bench()
        bench.setNetwork(up: false)
        let client = bench.client { $0.reconnect.maximumAttempts = 3 }
        await #expect { try await client.run() } throws: { error in
            (error as? MQTTError)?.message.contains("start()") == false
        }
        guard case .disconnected(_?) = client.state else {
            Issue.record("\(client.state)")
            return
        }
        await bench.stop()
    }

    @Test func `a cancelled run() disconnects gracefully and returns without an error`() async throws {
        let bench = try await Bench()
        let observer = try await bench.connected()
        let wills = try await observer.subscribe(to: "wills")
        let client = bench.client { $0.will = MQTTWill([1], to: "wills") }
        let running = Task { try await client.run() }
        // Only run() connects here: its task has begun.
        for await state in client.states { if state.isConnected { break } }
        running.cancel()
        try await running.value
        guard case .disconnected(nil) = client.state else {
            Issue.record("\(client.state)")
            return
        }
        try await observer.publish("no will before this", to: "wills")
        #expect(try await wills.first(1).map(\.text) == ["no will before this"])
        // In a cancelled task it does not begin.
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await client.run()
        }
        try await late.value
        #expect(client.counters.connections == 1)
        await observer.disconnect()
        await bench.stop()
    }

    @Test func `disconnect() ends run(), and start() during a disconnect starts again`() async throws {
        let bench = try await Bench()
        let client = bench.client()
        let running = Task { try await client.run() }
        // Only run() connects here: its task has begun.
        for await state in client.states { if state.isConnected { break } }
        // The server does not close, so that the disconnect takes long enough to be met.
        bench.damage(client) { $0.capacity = 0 }
        var states = client.states.makeAsyncIterator()
        let disconnecting = Task { await client.disconnect() }
        while let state = await states.next() { if case .disconnecting = state { break } }
        await client.start()
        await disconnecting.value
        try await running.value
        try await client.connect()
        #expect(client.counters.connections == 2)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `the first failure of connect() names start() and firstConnectAttempts, if they would help`()
        async throws
    {
        var users = LoopbackBrokerOptions()
        users.users = [.init(name: "ann", password: "right")]
        let bench = try await Bench { $0.users = users.users }
        let refused = bench.client { $0.credentials = Credentials(userName: "ann", password: "wrong") }
        await #expect { try await refused.connect() } throws: { error in
            (error as? MQTTError)?.message.contains("start()") == false
        }
        bench.setNetwork(up: false)
        await #expect { try await bench.client().connect() } throws: { error in
            let message = (error as? MQTTError)?.message ?? ""
            return message.contains("start()") && message.contains("ReconnectPolicy.firstConnectAttempts")
        }
        await bench.stop()
    }
}

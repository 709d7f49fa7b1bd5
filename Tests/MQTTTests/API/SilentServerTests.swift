import ClientTestSupport
import LoopbackBroker
import MQTTCore
import MessagingWire
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// Servers and addresses that accept connections and then say nothing, or send the client away.
@Suite("Client: silent servers", .turns)
struct SilentServerTests {
    private let both = ["mqtt://one.example", "mqtt://two.example"]

    /// Lets time pass until something is true, a tenth of a second at a time. Returns the seconds that it took.
    private func seconds(
        _ clock: ManualClock, atMost limit: Double, until isTrue: () -> Bool
    ) async -> Double {
        var tenths = 0.0
        while !isTrue(), tenths < limit * 10 {
            await clock.advance(by: .milliseconds(100))
            tenths += 1
        }
        #expect(isTrue())
        return tenths / 10
    }

    @Test func `a silent server is left after five seconds, and its connection is closed before the next CONNECT`()
        async throws
    {
        let clock = try ManualClock()
        let links = Mutex<[Link<ScriptedMachine>]>([])
        let server = ScriptedServer(clock: clock) { step in
            guard case .connectReceived = step.event else { return }
            links.withLock { links in
                let areClosed = links.allSatisfy { $0.isEnding }
                #expect(areClosed, "two CONNECTs at a time")
                links.append(step.link)
            }
            if step.connection == 3 { step.accept() }
        }
        let client = server.client(both + ["mqtt://three.example"])
        let connecting = Task { try await client.connect() }
        #expect(await eventually { links.withLock { $0.count } == 1 })
        await clock.advance(by: .milliseconds(4_900))
        #expect(server.connectionCount == 1)
        let time = await seconds(clock, atMost: 30) { client.state.isConnected }
        #expect((5..<6).contains(time), "\(time)")
        try await connecting.value
        #expect(server.connectionCount == 3 && client.server?.host == "three.example")
        links.withLock { $0 = [] }
        await client.disconnect()
    }

    @Test func `after a round without an answer each server has the whole time to connect`() async throws {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            guard case .connectReceived = step.event else { return }
            // A slow look-up of credentials.
            Task(executorPreference: clock.loop) {
                try await clock.sleep(for: .seconds(8))
                step.accept()
            }
        }
        let client = server.client(both) { $0.reconnect.firstConnectAttempts = nil }
        let errors = Mutex<[MQTTError]>([])
        let events = client.events
        let reading = Task {
            for await event in events {
                if case .attemptFailed(_, let error) = event { errors.withLock { $0.append(error) } }
            }
        }
        let connecting = Task { try await client.connect() }
        #expect(await eventually { server.connectionCount == 1 })
        let time = await seconds(clock, atMost: 60) { client.state.isConnected }
        #expect(time < 20, "\(time)")
        try await connecting.value
        #expect(server.connectionCount == 3)
        #expect(await eventually { errors.withLock { $0.count } == 2 })
        #expect(errors.withLock { $0.allSatisfy { $0.code == .timedOut && $0.message.contains("within 5 seconds") } })
        await client.disconnect()
        reading.cancel()
    }

    @Test func `one server with one address has the whole time to connect`() async throws {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { _ in }
        let client = server.client()
        let connecting = Task { try await client.connect() }
        #expect(await eventually { server.connectionCount == 1 })
        await clock.advance(by: .milliseconds(29_900))
        #expect(server.connectionCount == 1)
        await clock.advance(by: .milliseconds(200))
        await #expect { try await connecting.value } throws: { error in
            let error = error as? MQTTError
            return error?.code == .timedOut && error?.message.contains("within connectTimeout") == true
        }
    }

    @Test func `after a server fell silent the client begins with another`() async throws {
        let clock = try ManualClock()
        try await ClientChecks.silentServer(clock) { first, second in
            MQTTClient(try first.mqttURL, try second.mqttURL, clock: clock)
        }
    }

    @Test func `a server that takes nothing while a sender waits for room is reported, and so is the end of that`()
        async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "sender")
        configuration.keepAlive = .zero
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        try await ClientChecks.standstill(
            of: client, clock: clock, freeze: { await broker.freeze() }, thaw: { await broker.thaw() },
            standstill: { event in
                switch event {
                case .sendingStalled: .began
                case .sendingResumed(let time): .ended(after: time.inNanoseconds)
                default: nil
                }
            }, send: { try await client.publish($0, to: "a") })
        await broker.stop()
    }

    @Test(arguments: [45, 0])
    func `a change of the network finds a dead connection within pingTimeout, and leaves a living one`(
        keepAlive: Int64
    ) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "phone")
        configuration.keepAlive = .seconds(keepAlive)
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        try await client.connect()
        client.networkChanged()
        await clock.advance(by: .seconds(11))
        #expect(client.state.isConnected && broker.statistics.connections == 1)

        await broker.freeze()
        client.networkChanged()
        await clock.advance(by: .milliseconds(9_900))
        #expect(client.state.isConnected)
        await clock.advance(by: .milliseconds(200))
        // Without keep alive the client sends nothing by itself.
        #expect(client.state.isConnected == (keepAlive == 0))
        await broker.thaw()
        await client.disconnect()
        await broker.stop()
    }

    private static func waitForAnHour(_ configuration: inout MQTTConfiguration) {
        configuration.reconnect.initialDelay = .seconds(3_600)
        configuration.reconnect.maximumDelay = .seconds(3_600)
        configuration.reconnect.jitter = 0
    }

    @Test func `when the system wakes a client keeps a living connection, and leaves a dead one after pingTimeout`()
        async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "laptop")
        Self.waitForAnHour(&configuration)
        let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        try await ClientChecks.sleep(of: client, broker, clock, patience: .seconds(10))
    }

    @Test func `a connection that has ended during a sleep is replaced when the system wakes`() async throws {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client {
            Self.waitForAnHour(&$0)
            $0.reconnect.spread = .zero
        }
        try await client.connect()
        await clock.letSystemSleep(for: .seconds(3_600)) { server.link?.dropConnectionNow() }
        await clock.advance(by: .zero)
        #expect(client.state.isConnected && server.connectionCount == 2)
        await client.disconnect()
    }

    @Test func `a server that says to use another is left, also if its reference is not followed`() async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client(both) {
            $0.version = .v5_0
            $0.reconnect.stableAfter = .zero
        }
        try await client.connect()
        var hosts = [client.server?.host]
        for round in 2...5 {
            let link = try #require(server.link)
            link.perform { machine in
                try? machine.engine.disconnect(reason: .useAnotherServer, properties: [], at: link.loop.now)
                machine.wantsClose = true
            }
            #expect(await eventually { server.connectionCount == round && client.state.isConnected })
            hosts.append(client.server?.host)
        }
        #expect(hosts == ["one.example", "two.example", "one.example", "two.example", "one.example"])
        await client.disconnect()
    }

    @Test func `a takeover within two minutes of an unanswered CONNECT is a lost connection`() async throws {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            if case .connectReceived = step.event, step.connection > 1 { step.accept() }
        }
        let client = server.client(both) { $0.version = .v5_0 }
        func takeOver() throws {
            let link = try #require(server.link)
            link.perform { machine in
                try? machine.engine.disconnect(reason: .sessionTakenOver, properties: [], at: link.loop.now)
                machine.wantsClose = true
            }
        }
        let connecting = Task { try await client.connect() }
        #expect(await eventually { server.connectionCount == 1 })
        _ = await seconds(clock, atMost: 10) { client.state.isConnected }
        try await connecting.value
        await clock.advance(by: .seconds(110))
        try takeOver()
        _ = await seconds(clock, atMost: 5) { server.connectionCount == 3 && client.state.isConnected }
        await clock.advance(by: .seconds(20))
        try takeOver()
        _ = await seconds(clock, atMost: 5) { if case .disconnected = client.state { true } else { false } }
        guard case .disconnected(let failure?) = client.state else {
            Issue.record("\(client.state)")
            return
        }
        #expect(failure.code == .takenOver)
        #expect(server.connectionCount == 3)
    }

    // Other systems have no second address on this machine without being told to.
    #if !canImport(Darwin)
        @Test func `an address that accepts connections and is silent is followed by the other one of its name`()
            async throws
        {
            let server = ScriptedServer { step in
                if case .connectReceived = step.event { step.accept() }
            }
            let listener = try await server.listen()
            let clock = try ManualClock(selector: .automatic)
            let silent = Mutex<[any ByteStream]>([])
            let silentListener = try await Listener.listen(
                on: .host("127.0.0.2", port: listener.port), loop: .shared
            ) { stream in silent.withLock { $0.append(stream) } }
            let resolver = Resolver { query in
                guard query.family == .ipv4 else { return .failure(TransportError(.unknownHost, "no such address")) }
                return NameQuery("127.0.0.2", .ipv4).lookUp().flatMap { first in
                    NameQuery("127.0.0.1", .ipv4).lookUp().map { first + $0 }
                }
            }
            var configuration = MQTTConfiguration(clientID: "addresses")
            configuration.connectTimeout = .seconds(8)
            configuration.reconnect.stableAfter = .zero
            configuration.reconnect.spread = .zero
            // The other address follows at once, or time would pass for the server as well.
            configuration.reconnect.failoverDelay = .zero
            let client = MQTTClient(
                ["mqtt://two-addresses.example:\(listener.port)"], configuration: configuration, loop: clock.loop,
                resolver: resolver)
            // The first attempt through all addresses has to succeed.
            let connecting = Task { try await client.connect() }
            let core = client.core
            func timeLeft() async -> Duration {
                await core.loop.result { .nanoseconds(core.supervisor.attemptDeadline - core.loop.now) }
            }
            // The client has connected to the silent address, for which it has a part of the time.
            #expect(await eventually { await timeLeft() < configuration.connectTimeout })
            await clock.advance(by: timeLeft())
            try await connecting.value(within: .patience, "a client whose second address answers")
            #expect(silent.withLock { $0.count } == 1 && server.connectionCount == 1)
            // It is remembered.
            for round in 2...4 {
                // Its wait has no length, and may be over before it is seen: only what follows can be awaited.
                server.link?.dropConnection()
                #expect(await eventually { server.connectionCount == round && client.state.isConnected })
            }
            #expect(silent.withLock { $0.count } == 1)
            await client.disconnect()
            await silentListener.close()
            await listener.close()
        }
    #endif
}

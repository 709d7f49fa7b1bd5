import ClientTestSupport
import LoopbackBroker
import MQTT
import MessagingShell
import Synchronization
import TestSupport
import Testing

@Suite("Client: several servers", .turns)
struct ServersTests {
    /// A client whose waits are so long that a test would notice one.
    private func client(
        _ urls: [String], _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "servers-%%%%")
        configuration.reconnect.initialDelay = .seconds(600)
        configuration.reconnect.maximumDelay = .seconds(600)
        // However long a test takes on a busy machine, none of its connections counts as stable.
        configuration.reconnect.stableAfter = .seconds(600)
        change(&configuration)
        return MQTTClient(urls, configuration: configuration)
    }

    private func url(_ broker: LoopbackBroker, user: String = "") throws -> String {
        "mqtt://\(user)127.0.0.1:\(try #require(broker.ports.mqtt))"
    }

    @Test(arguments: BadServer.Kind.allCases, ["mqtt", "mqtts"])
    func `a server that is of no use costs one time-out at most`(kind: BadServer.Kind, scheme: String) async throws {
        let bad = try BadServer.start(kind)
        let good = try await LoopbackBroker.judged()
        let client = client(["\(scheme)://127.0.0.1:\(bad.port)", try url(good)]) {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
            // The good server may need longer too, on a busy machine, and is tried again.
            if kind == .mute || kind == .unreachable { $0.connectTimeout = .seconds(1) }
            $0.reconnect.initialDelay = .milliseconds(10)
            $0.reconnect.maximumDelay = .milliseconds(10)
            $0.reconnect.firstConnectAttempts = nil
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        var failed: [String] = []
        var tried: [String] = []
        while let event = await events.next() {
            if case .connecting(let server) = event { tried.append("\(server)") }
            if case .attemptFailed(let server, let error) = event,
                !(error.code == .timedOut && server.endpoint == client.server?.endpoint)
            {
                failed.append("\(server)")
                #expect(!error.message.isEmpty)
            }
            if case .connected(let info) = event {
                // What the bad one said is no reason to ask the good one for less.
                #expect(info.version == .v5_0)
                break
            }
        }
        #expect(tried.last == "\(try BrokerURL(url(good)))" && Set(tried).count == 2)
        #expect(Set(failed) == ["\(scheme)://127.0.0.1:\(bad.port)"])
        #expect(client.server?.endpoint == .host("127.0.0.1", port: UInt16(good.ports.mqtt ?? 0)))
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        await client.disconnect()
        await good.stop()
        _ = bad
    }

    @Test func `moves to the next server and on, and comes back to the one that works`() async throws {
        // A port that the system gives to no connection, so that it is free for the broker that comes back.
        var options = LoopbackBrokerOptions()
        options.mqttPort = .exactly(FreePort.next())
        let (first, second) = (try await LoopbackBroker.judged(options), try await LoopbackBroker.judged())
        let client = client([try url(first), try url(second)]) {
            $0.reconnect.initialDelay = .milliseconds(10)
            $0.reconnect.maximumDelay = .milliseconds(10)
            $0.reconnect.stableAfter = .zero
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
        #expect(first.connectionCount == 1)
        await first.stop()
        #expect(await eventually { second.connectionCount == 1 && client.state.isConnected })
        try await client.publish("moved", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(1).map(\.text) == ["moved"])

        // The first one is back, but the second works.
        let third = try await LoopbackBroker.judged(options)
        await second.dropAllConnections()
        #expect(await eventually { client.counters.connections == 3 && client.state.isConnected })
        #expect(second.connectionCount == 1 && third.connectionCount == 0)
        await second.stop()
        #expect(await eventually { third.connectionCount == 1 && client.state.isConnected })
        await client.disconnect()
        await third.stop()
    }

    @Test func `a server that drops its clients at once is left for another`() async throws {
        let (first, second) = (try await LoopbackBroker.judged(), try await LoopbackBroker.judged())
        let client = client([try url(first), try url(second)]) { $0.reconnect.initialDelay = .milliseconds(10) }
        try await client.connect()
        await first.dropAllConnections()
        #expect(await eventually { second.connectionCount == 1 && client.state.isConnected })
        await client.disconnect()
        // Whoever connects anew begins with the first.
        try await client.connect()
        #expect(first.connectionCount == 1)
        await client.disconnect()
        await first.stop()
        await second.stop()
    }

    @Test func `waits when all have failed, and counts a round as one attempt`() async throws {
        let servers = try (0..<3).map { _ in try BadServer.start(.closed) }
        let client = client(servers.map { "mqtt://127.0.0.1:\($0.port)" }) { $0.reconnect.firstConnectAttempts = 2 }
        var events = client.events.makeAsyncIterator()
        let connecting = Task { try await client.connect() }
        var log: [String] = []
        while let event = await events.next() {
            if case .attemptFailed(let server, _) = event { log.append("\(server)") }
            if case .stateChanged(.waiting(let delay, let attempt, _)) = event {
                log.append("waiting after \(attempt)")
                #expect(delay > .seconds(200))
                client.networkChanged()
            }
            if case .stateChanged(.disconnected) = event { break }
        }
        let round = servers.map { "mqtt://127.0.0.1:\($0.port)" }
        #expect(log == round + ["waiting after 1"] + round)
        await #expect { try await connecting.value } throws: { error in
            let error = error as? MQTTError
            // The error lists each server with its reason.
            return error?.code == .connectionRefused && error?.message.hasPrefix("None of the 3 servers") == true
                && round.allSatisfy { error?.message.contains("\($0): ") == true }
        }
    }

    @Test func `each URL has credentials of its own, asked for or not`() async throws {
        func broker(_ name: String) async throws -> LoopbackBroker {
            var options = LoopbackBrokerOptions()
            options.users = [.init(name: name, password: "of \(name)")]
            return try await LoopbackBroker.judged(options)
        }
        let (ann, bob) = (try await broker("ann"), try await broker("bob"))
        let urls = [try url(ann, user: "ann:of%20ann@"), try url(bob, user: "bob:of%20bob@")]
        let client = client(urls) { $0.reconnect.initialDelay = .milliseconds(10) }
        let asking = self.client(urls) {
            $0.reconnect.initialDelay = .milliseconds(10)
            $0.credentialsProvider = { $0.server.credentials }
        }
        for client in [client, asking] {
            try await client.connect()
            #expect(client.server?.credentials?.userName == "ann")
            #expect(client.server.map { "\($0)" }?.contains("ann") == false)
        }
        await ann.stop()
        #expect(await eventually { bob.connectionCount == 2 && client.state.isConnected && asking.state.isConnected })
        await client.disconnect()
        await asking.disconnect()
        await bob.stop()
    }

    @Test func `refused credentials and mistakes in any URL are permanent`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "right")]
        let (first, second) = (try await LoopbackBroker.judged(options), try await LoopbackBroker.judged())
        let refused = client([try url(first, user: "ann:wrong@"), try url(second)]) {
            $0.reconnect.firstConnectAttempts = nil
        }
        await #expect { try await refused.connect() } throws: { ($0 as? MQTTError)?.code == .badCredentials }
        #expect(second.statistics.connections == 0)
        for bad in [[try url(second), "mqtt://[::1"], [try url(second), "stomp://localhost"], []] {
            await #expect { try await client(bad).connect() } throws: {
                (($0 as? MQTTError)?.underlying as? TransportError)?.code == .badURL
            }
        }
        #expect(second.statistics.connections == 0)
        await first.stop()
        await second.stop()
    }

    @Test func `a server without the version is passed over, also when another has accepted it before`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if step.connection == 2 { step.refuse(.unsupportedProtocolVersion) } else { step.accept() }
        }
        let client = server.client(["mqtt://one", "mqtt://two"]) {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
        }
        try await client.connect()
        // One that drops its clients at once is tried last.
        server.link?.dropConnection()
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        #expect(server.connectionCount == 3 && client.server?.host == "one")
        await client.disconnect()
    }

    @Test(arguments: [["mqtt://one"], ["mqtt://one", "mqtt://two"]])
    func `a version that no server supports stops the client after one round`(servers: [String]) async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.refuse(.unsupportedProtocolVersion) }
        }
        let client = server.client(servers) {
            $0.version = .v5_0
            $0.reconnect.firstConnectAttempts = nil
        }
        await #expect { try await client.connect() } throws: { ($0 as? MQTTError)?.code == .unsupportedVersion }
        #expect(server.connectionCount == servers.count)
    }

    @Test func `a server that the client was sent to, and that is gone, is passed over`() async throws {
        let bench = try await Bench { $0.mqttPort = .free }
        let port = try #require(bench.broker.ports.mqtt)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            guard step.connection == 1 else { return step.accept() }
            step.refuse(.serverMoved, referringTo: "127.0.0.1:\(port)")
        }
        let client = server.client(["mqtt://scripted", "mqtt://further"]) {
            $0.version = .v5_0
            $0.followsRedirects = true
            $0.reconnect.stableAfter = .zero
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        #expect(client.server?.endpoint == .host("127.0.0.1", port: UInt16(port)))
        var redirections: [(Endpoint, Bool)] = []
        while redirections.isEmpty, let event = await events.next() {
            if case .redirected(let server, let isPermanent) = event { redirections.append((server, isPermanent)) }
        }
        #expect(redirections.map(\.0) == [.host("127.0.0.1", port: UInt16(port))])
        #expect(redirections.map(\.1) == [true])
        await bench.stop()
        #expect(await eventually { server.connectionCount == 2 && client.state.isConnected })
        #expect(client.server?.host == "further")
        await client.disconnect()
    }

    @Test func `a gateway that refuses the WebSocket handshake gets other credentials at once`() async throws {
        try await ClientChecks.refusedHandshakes { port, provider, policy in
            var configuration = MQTTConfiguration(clientID: "c")
            configuration.credentialsProvider = provider
            configuration.reconnect = policy
            return MQTTClient("ws://127.0.0.1:\(port)/mqtt", configuration: configuration)
        }
    }

    @Test func `refused credentials are asked for once more at once, and then given up`() async throws {
        let bench = try await Bench { $0.users = [.init(name: "ann", password: "new")] }
        let asked = Mutex<[Bool]>([])
        let healed = bench.client {
            $0.credentialsProvider = { request in
                asked.withLock { $0.append(request.wereRefused) }
                return Credentials(userName: "ann", password: request.wereRefused ? "new" : "old")
            }
        }
        // The default allows not even one failed attempt: this is none.
        try await healed.connect()
        #expect(asked.withLock { $0 } == [false, true])
        // A connection later they may be old again.
        await bench.cut()
        #expect(await eventually { healed.counters.connections == 2 && healed.state.isConnected })
        #expect(asked.withLock { $0 } == [false, true, false, true])
        await healed.disconnect()

        let before = bench.broker.statistics.connections
        let hopeless = bench.client {
            $0.reconnect.firstConnectAttempts = nil
            $0.credentialsProvider = { _ in Credentials(userName: "ann", password: "old") }
        }
        await #expect { try await hopeless.connect() } throws: { ($0 as? MQTTError)?.code == .badCredentials }
        #expect(bench.broker.statistics.connections == before + 2)
        await bench.stop()
    }
}

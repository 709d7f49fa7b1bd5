import ClientTestSupport
import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite(.turns) struct ServersTests {
    private func url(_ broker: LoopbackBroker) -> String { "stomp://127.0.0.1:\(broker.ports.stomp ?? 0)" }

    /// A client whose waits are so long that a test would notice one.
    private func client(_ urls: [String], _ change: (inout STOMPConfiguration) -> Void = { _ in }) -> STOMPClient {
        var configuration = STOMPConfiguration()
        configuration.reconnect.initialDelay = .seconds(600)
        configuration.reconnect.maximumDelay = .seconds(600)
        change(&configuration)
        return STOMPClient(urls, configuration: configuration)
    }

    @Test(arguments: BadServer.Kind.allCases, ["stomp", "stomps"])
    func uselessServerCostsOneTimeOutAtMost(kind: BadServer.Kind, scheme: String) async throws {
        let bad = try BadServer.start(kind)
        try await withBroker { good in
            let client = client(["\(scheme)://127.0.0.1:\(bad.port)", url(good)]) {
                // The good server may need longer too, on a busy machine, and is tried again.
                if kind == .mute || kind == .unreachable { $0.connectTimeout = .seconds(1) }
                $0.reconnect.initialDelay = .milliseconds(10)
                $0.reconnect.maximumDelay = .milliseconds(10)
                $0.reconnect.firstConnectAttempts = nil
            }
            var events = client.events.makeAsyncIterator()
            try await client.connect()
            var log: [String] = []
            while let event = await events.next() {
                if case .connecting(let server) = event { log.append("\(server)") }
                if case .attemptFailed(let server, _) = event { log.append("not \(server)") }
                if case .connected = event { break }
            }
            let address = "\(scheme)://127.0.0.1:\(bad.port)"
            #expect(log.starts(with: [address, "not \(address)", url(good)]) && log.last == url(good))
            #expect(client.server.map { "\($0)" } == url(good))
            try await client.sendAndConfirm("x", to: "/queue/q")
            await client.disconnect()
        }
        _ = bad
    }

    @Test func movesToTheNextServerWithItsSubscriptions() async throws {
        try await withBroker { second in
            let first = try await LoopbackBroker.judged()
            let client = client([url(first), url(second)]) {
                $0.reconnect.initialDelay = .milliseconds(10)
                $0.reconnect.stableAfter = .zero
            }
            var events = client.events.makeAsyncIterator()
            try await client.connect()
            let messages = try await client.subscribe(to: "/queue/q")
            await first.stop()
            while let event = await events.next() {
                if case .resubscribed("/queue/q") = event { break }
            }
            #expect(client.server.map { "\($0)" } == url(second))
            try await client.sendAndConfirm("moved", to: "/queue/q")
            #expect(try await messages.texts(1) == ["moved"])
            await client.disconnect()
        }
    }

    @Test func `a server without the version is passed over, also when another has accepted it before`() async throws {
        let server = FakeServer()
        let client = server.client(urls: ["stomp://one", "stomp://two"]) { $0.versions = [.v12] }
        async let connecting: Void = client.connect()
        let first = try await server.accept(0)
        try await connecting
        // One that drops its clients at once is tried last.
        first.close()
        let second = try await server.connection(1)
        try await second.expect("CONNECT")
        second.send("CONNECTED\nversion:1.0\n\n\0")
        try await server.accept(2)
        #expect(await eventually { client.state.isConnected })
        #expect(client.server?.host == "one")
        await client.disconnect()
    }

    @Test func `reconnect() and the age of a connection move a client gracefully, with its subscriptions`() async throws
    {
        let clock = try ManualClock()
        let brokers = [try await LoopbackBroker.judged(clock: clock), try await LoopbackBroker.judged(clock: clock)]
        var configuration = STOMPConfiguration()
        configuration.reconnect.maximumConnectionAge = .seconds(3_600)
        let urls = try brokers.map { try $0.stompURL }
        let client = STOMPClient(urls[0], urls[1], configuration: configuration, clock: clock)
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        let messages = try await client.subscribe(to: "/queue/q")
        try await client.reconnect()
        #expect(client.server.map { "\($0)" } == urls[1])
        try await client.sendAndConfirm("at the second", to: "/queue/q")
        #expect(try await messages.texts(1) == ["at the second"])
        await clock.advance(by: .seconds(3_600))
        // The first of the list again.
        #expect(client.server.map { "\($0)" } == urls[0])
        try await client.sendAndConfirm("at the first", to: "/queue/q")
        #expect(try await messages.texts(1) == ["at the first"])
        await client.disconnect()
        var moves: [String] = []
        while let event = await events.next() {
            if case .moving(let server, _) = event { moves.append("\(server)") }
            if case .connectionLost(let error) = event { Issue.record(error) }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(moves == urls)
        for broker in brokers { await broker.stop() }
    }

    @Test func `a move is no disconnect() for calls that are under way, or come while the client leaves`() async throws
    {
        let clock = try ManualClock()
        let brokers = [try await LoopbackBroker.judged(clock: clock), try await LoopbackBroker.judged(clock: clock)]
        let client = STOMPClient(try brokers[0].stompURL, try brokers[1].stompURL, clock: clock)
        try await client.connect()
        func code(_ body: @escaping @Sendable () async throws(STOMPError) -> Void) async -> STOMPError.Code? {
            do throws(STOMPError) {
                try await body()
                return nil
            } catch {
                return error.code
            }
        }
        let asking = Task {
            await code { () throws(STOMPError) in
                _ = try await client.request("?", to: "/queue/nobody", timeout: .seconds(600))
            }
        }
        await clock.waitUntilQuiet()
        #expect(await eventually { client.counters.messagesSent == 1 })
        // It answers DISCONNECT too late.
        await brokers[0].freeze()
        let moving = Task { await code { () throws(STOMPError) in try await client.reconnect() } }
        #expect(await eventually { client.state == .disconnecting })
        #expect(await code { () throws(STOMPError) in try await client.send("x", to: "/queue/q") } == .notConnected)
        await clock.advance(by: .seconds(3))
        #expect(await moving.value == nil)
        #expect(await asking.value == .connectionLost)
        #expect(await code { () throws(STOMPError) in try await client.sendAndConfirm("x", to: "/queue/q") } == nil)
        await client.disconnect()
        await brokers[0].thaw()
        for broker in brokers { await broker.stop() }
    }

    @Test func eachURLHasCredentialsOfItsOwn() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "bob", password: "b:b")]
        try await withBroker(options) { second in
            let bad = try BadServer.start(.closed)
            let client = client([
                "stomp://ann:a@127.0.0.1:\(bad.port)", "stomp://bob:b%3Ab@127.0.0.1:\(second.ports.stomp ?? 0)",
            ])
            try await client.connect()
            #expect(client.server?.credentials?.userName == "bob")
            await client.disconnect()
        }
    }

    @Test func mistakeInAnyURLIsPermanent() async throws {
        try await withBroker { broker in
            for urls in [[url(broker), "mqtt://localhost"], []] {
                await expectError(.badURL) { try await client(urls).connect() }
            }
            #expect(broker.statistics.connections == 0)
        }
    }

    @Test func `after a server fell silent the client begins with another`() async throws {
        let clock = try ManualClock()
        try await ClientChecks.silentServer(clock) { first, second in
            STOMPClient(try first.stompURL, try second.stompURL, clock: clock)
        }
    }

    private static func waitForAnHour(_ configuration: inout STOMPConfiguration) {
        configuration.reconnect.initialDelay = .seconds(3_600)
        configuration.reconnect.maximumDelay = .seconds(3_600)
        configuration.reconnect.jitter = 0
    }

    @Test func `when the system wakes a client keeps a living connection, and leaves one without heart-beats`()
        async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = STOMPConfiguration()
        Self.waitForAnHour(&configuration)
        let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration, clock: clock)
        try await ClientChecks.sleep(of: client, broker, clock, patience: .seconds(25))
    }

    @Test func `a connection that has ended during a sleep is replaced when the system wakes`() async throws {
        let clock = try ManualClock()
        let server = FakeServer()
        let (client, connection) = try await server.connected(clock: clock) {
            Self.waitForAnHour(&$0)
            $0.reconnect.spread = .zero
        }
        await clock.letSystemSleep(for: .seconds(3_600)) { connection.close() }
        let next = try await server.accept(1)
        #expect(await eventually { client.state.isConnected })
        async let leaving: Void = client.disconnect()
        try await next.expect("DISCONNECT")
        next.close()
        await leaving
    }

    @Test func `a silent server is left after five seconds`() async throws {
        let clock = try ManualClock()
        var options = LoopbackBrokerOptions()
        options.faults.ignoresConnect = true
        let brokers = (
            try await LoopbackBroker.judged(options, clock: clock), try await LoopbackBroker.judged(clock: clock)
        )
        let client = STOMPClient(brokers.0.urls.stomp ?? "", brokers.1.urls.stomp ?? "", clock: clock)
        var events = client.events.makeAsyncIterator()
        let connecting = Task { try await client.connect() }
        #expect(await eventually { brokers.0.statistics.connections == 1 })
        await clock.advance(by: .milliseconds(4_800))
        #expect(brokers.1.statistics.connections == 0)
        await clock.advance(by: .milliseconds(400))
        try await connecting.value
        #expect(brokers.1.statistics.connections == 1)
        var failure: STOMPError?
        while failure == nil, let event = await events.next() {
            if case .attemptFailed(_, let error) = event { failure = error }
        }
        #expect(failure?.code == .timedOut && failure?.message.contains("within 5 seconds") == true)
        await client.disconnect()
        await brokers.0.stop()
        await brokers.1.stop()
    }
}

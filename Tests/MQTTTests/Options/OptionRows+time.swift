import ClientTestSupport
import LoopbackBroker
import MQTT
import MessagingShell
import Synchronization
import TestSupport
import Testing
import Transport

/// A client whose connections all fail, or succeed and are then cut.
private func client(
    _ policy: ReconnectPolicy, _ server: ScriptedServer? = nil, servers: Int = 1
) -> MQTTClient {
    if let server { return server.client((0..<servers).map { "mqtt://scripted\($0)" }) { $0.reconnect = policy } }
    var configuration = MQTTConfiguration()
    configuration.reconnect = policy
    return MQTTClient(["mqtt://nowhere"], configuration: configuration, loop: .shared) { () throws(TransportError) in
        throw TransportError(.unreachable, "no network")
    }
}

/// The waits between the first attempts of a client that never succeeds.
private func waits(_ count: Int, _ change: (inout ReconnectPolicy) -> Void) async -> [Duration] {
    var policy = ReconnectPolicy(
        initialDelay: .milliseconds(2), maximumDelay: .seconds(10), multiplier: 2, jitter: 0,
        firstConnectAttempts: count + 1)
    change(&policy)
    let client = client(policy)
    var events = client.events.makeAsyncIterator()
    let connecting = Task { try await client.connect() }
    var waits: [Duration] = []
    while let event = await events.next() {
        if case .stateChanged(.waiting(let delay, _, _)) = event {
            waits.append(delay)
        }
        if case .stateChanged(.disconnected) = event { break }
    }
    _ = await connecting.result
    return waits
}

/// The waits after each of two cuts.
private func waitsAfterCuts(
    servers: Int = 1, _ change: (inout ReconnectPolicy) -> Void
) async throws -> [Duration] {
    let server = ScriptedServer { step in
        if case .connectReceived = step.event { step.accept() }
    }
    var policy = ReconnectPolicy(
        initialDelay: .milliseconds(2), maximumDelay: .seconds(10), multiplier: 2, jitter: 0, spread: .zero)
    change(&policy)
    let client = client(policy, server, servers: servers)
    var events = client.events.makeAsyncIterator()
    try await client.connect()
    var waits: [Duration] = []
    while waits.count < 2, let event = await events.next() {
        if case .connected = event { server.link?.dropConnection() }
        if case .stateChanged(.waiting(let delay, _, _)) = event {
            waits.append(delay)
        }
        if case .stateChanged(.disconnected) = event { break }
    }
    await client.disconnect()
    return waits
}

extension OptionTableTests {
    @Test(arguments: [Duration.seconds(-1), .zero])
    func `a timeout that is not positive is an error that names it`(time: Duration) async throws {
        let changes: [(String, (inout MQTTConfiguration, Duration) -> Void)] = [
            ("connectTimeout", { $0.connectTimeout = $1 }),
            ("requestTimeout", { $0.requestTimeout = $1 }),
            ("acknowledgementTimeout", { $0.acknowledgementTimeout = $1 }),
            ("pingTimeout", { $0.pingTimeout = $1 }),
        ]
        for (name, change) in changes {
            var configuration = MQTTConfiguration()
            configuration.reconnect = .never
            change(&configuration, time)
            // No server is needed to find it.
            let client = MQTTClient("mqtt://127.0.0.1:1", configuration: configuration)
            let error = await #expect(throws: MQTTError.self) { try await client.connect() }
            #expect(error?.code == .invalidRequest && error?.message.contains("\(name) is \(time)") == true)
        }
    }

    static let reconnectRows: [OptionRow] = [
        OptionRow("reconnect") { try await verify(waitsAfterCuts { $0 = .never } == []) },
        OptionRow("reconnect.initialDelay") {
            #expect(await waits(1) { _ in } == [.milliseconds(2)])
            #expect(await waits(1) { $0.initialDelay = .milliseconds(7) } == [.milliseconds(7)])
        },
        OptionRow("reconnect.maximumDelay") {
            #expect(await waits(2) { $0.maximumDelay = .milliseconds(3) } == [.milliseconds(2), .milliseconds(3)])
        },
        OptionRow("reconnect.multiplier") {
            #expect(await waits(2) { $0.multiplier = 3 } == [.milliseconds(2), .milliseconds(6)])
        },
        OptionRow("reconnect.jitter") {
            let waits = await waits(5) {
                $0.jitter = 1
                $0.multiplier = 1
            }
            #expect(Set(waits).count > 1)
        },
        OptionRow("reconnect.firstConnectAttempts") {
            #expect(await waits(1) { $0.firstConnectAttempts = 4 }.count == 3)
        },
        OptionRow("reconnect.stableAfter") {
            try await verify(waitsAfterCuts { $0.stableAfter = .zero } == [.zero, .zero])
            try await verify(waitsAfterCuts { $0.stableAfter = .seconds(10_000) } == [.zero, .milliseconds(2)])
        },
        OptionRow("reconnect.failoverDelay") {
            // The servers drop the client at once: the second wait is one of those that grow.
            let waits = try await waitsAfterCuts(servers: 2) {
                $0.stableAfter = .seconds(10_000)
                $0.failoverDelay = .milliseconds(7)
            }
            #expect(waits == [.milliseconds(7), .milliseconds(2)])
        },
        OptionRow("reconnect.spread") {
            let waits = try await waitsAfterCuts {
                $0.stableAfter = .zero
                $0.spread = .milliseconds(1)
            }
            #expect(waits.count == 2 && waits.allSatisfy { $0 > .zero && $0 <= .milliseconds(1) })
        },
        OptionRow(
            "reconnect.maximumConnectionAge",
            shownBy: MovingTests.`a connection that has reached its age is followed by another one`),
        OptionRow("reconnect.maximumAttempts") {
            try await verify(waitsAfterCuts { $0.maximumAttempts = 0 } == [])
        },
    ]

    /// Options of how long something may take.
    static let timeRows: [OptionRow] = [
        OptionRow("requestTimeout") {
            let clock = try ManualClock()
            let broker = try await LoopbackBroker.judged(clock: clock)
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var configuration = MQTTConfiguration()
            configuration.requestTimeout = .seconds(50)
            let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
            try await client.connect()
            let arrivals = broker.arrivals()
            let isOver = Atomic(false)
            let subscribing = Task {
                defer { isOver.store(true, ordering: .releasing) }
                _ = try await client.subscribe(to: "a")
            }
            _ = await arrivals.first { $0.packet == .mqtt(.subscribe) }
            await clock.advance(by: .seconds(49))
            let isEarly = isOver.load(ordering: .acquiring)
            #expect(!isEarly)
            await clock.advance(by: .seconds(1))
            await #expect { try await subscribing.value } throws: { ($0 as? MQTTError)?.code == .timedOut }
            await client.disconnect()
            await broker.stop()
        },
        OptionRow("acknowledgementTimeout") {
            let clock = try ManualClock()
            let broker = try await LoopbackBroker.judged(clock: clock)
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            var configuration = MQTTConfiguration()
            configuration.acknowledgementTimeout = .seconds(50)
            let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
            try await client.connect()
            let arrivals = broker.arrivals()
            let publishing = Task { try await client.publish("x", to: "a", qos: .atLeastOnce) }
            _ = await arrivals.first { $0.packet == .mqtt(.publish) }
            await clock.advance(by: .seconds(49))
            #expect(client.state.isConnected)
            await clock.advance(by: .seconds(1))
            #expect(!client.state.isConnected)
            publishing.cancel()
            _ = await publishing.result
            await client.disconnect()
            await broker.stop()
        },
        OptionRow("pingTimeout") {
            let clock = try ManualClock()
            let broker = try await LoopbackBroker.judged(clock: clock)
            var configuration = MQTTConfiguration()
            configuration.keepAlive = .seconds(600)
            configuration.pingTimeout = .seconds(50)
            let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
            try await client.connect()
            await broker.freeze()
            await clock.advance(by: .seconds(649))
            #expect(client.state.isConnected)
            await clock.advance(by: .seconds(1))
            #expect(!client.state.isConnected)
            await client.disconnect()
            await broker.stop()
        },
    ]
}

import LoopbackBroker
import MQTT
import MQTTCore
import MessagingShell
import TestSupport
import Testing
import Transport

/// Servers that answer PINGREQ and acknowledge nothing.
@Suite("Client: acknowledgements that do not come", .turns)
struct AcknowledgementTimeoutTests {
    private func client(
        _ first: LoopbackBroker, _ second: LoopbackBroker?, _ clock: ManualClock,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "publisher")
        configuration.keepAlive = .seconds(10)
        configuration.reconnect.jitter = 0
        change(&configuration)
        let url = first.urls.mqtt ?? ""
        guard let other = second?.urls.mqtt else { return MQTTClient(url, configuration: configuration, clock: clock) }
        return MQTTClient(url, other, configuration: configuration, clock: clock)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `the next server is tried, and an event names the oldest message`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let clock = try ManualClock()
        let silent = try await LoopbackBroker.start(clock: clock)
        silent.changeFaults { $0.withholdsAcknowledgements = true }
        let healthy = try await LoopbackBroker.start(clock: clock)
        let client = client(silent, healthy, clock) {
            $0.version = version
            // However long a connection lasts, its server is not asked first again.
            $0.reconnect.stableAfter = .seconds(1)
        }
        let events = client.events
        try await client.connect()
        let arrivals = silent.arrivals()
        async let published = client.publish("x", to: "oldest", qos: qos)
        _ = await arrivals.first { $0.packet == .mqtt(.publish) }
        await clock.advance(by: .seconds(29))
        #expect(client.state.isConnected && silent.clients == ["publisher"])
        await clock.advance(by: .seconds(1))
        #expect(!client.state.isConnected)
        await clock.advance(by: .seconds(5))
        #expect(healthy.clients == ["publisher"])
        #expect(try await !published.isError)
        let named = await events.first { event in
            if case .acknowledgementTimedOut = event { true } else { false }
        }
        guard case .acknowledgementTimedOut("oldest", qos, after: .seconds(30)) = named else {
            Issue.record("\(named as Any)")
            return
        }
        await client.disconnect()
        await silent.stop()
        await healthy.stop()
    }

    @Test func `a server that needs longer gets twice the time on each connection, until it acknowledges`() async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.start(clock: clock)
        broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = client(broker, nil, clock) {
            $0.reconnect.spread = .zero
            $0.reconnect.stableAfter = .zero
        }
        try await client.connect()
        let arrivals = broker.arrivals()
        async let published = client.publish("x", to: "a", qos: .atLeastOnce)
        _ = await arrivals.first { $0.packet == .mqtt(.publish) }
        for (round, seconds) in [30, 60, 120].enumerated() {
            await clock.advance(by: .seconds(seconds - 1))
            #expect(client.counters.connections == round + 1, "\(seconds)")
            await clock.advance(by: .seconds(1))
            #expect(client.counters.connections == round + 2, "\(seconds)")
            #expect(client.state.isConnected, "\(seconds)")
        }
        broker.changeFaults { $0.withholdsAcknowledgements = false }
        await broker.dropAllConnections()
        await clock.advance(by: .seconds(2))
        #expect(try await published == .success)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `a worker that acknowledges nothing keeps its connection`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.start(clock: clock)
        let client = client(broker, nil, clock)
        try await client.connect()
        let jobs = try await client.subscribe(to: "jobs", acknowledgement: .manual)
        await broker.publish("job", to: "jobs", qos: .atLeastOnce)
        #expect(try await jobs.first(1).map(\.text) == ["job"])
        await clock.advance(by: .seconds(3600))
        #expect(client.state.isConnected && client.counters.connections == 1)
        await client.disconnect()
        await broker.stop()
    }
}

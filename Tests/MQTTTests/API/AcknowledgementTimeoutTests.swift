import ClientTestSupport
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
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `the next server is tried, and an event names the oldest message`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let clock = try ManualClock()
        let silent = try await LoopbackBroker.judged(clock: clock)
        silent.changeFaults { $0.withholdsAcknowledgements = true }
        let healthy = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "publisher")
        configuration.version = version
        configuration.keepAlive = .seconds(10)
        configuration.reconnect.jitter = 0
        // However long a connection lasts, its server is not asked first again.
        configuration.reconnect.stableAfter = .seconds(1)
        let client = MQTTClient(
            silent.urls.mqtt ?? "", healthy.urls.mqtt ?? "", configuration: configuration, clock: clock)
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
}

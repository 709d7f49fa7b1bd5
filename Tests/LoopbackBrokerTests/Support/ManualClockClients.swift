import LoopbackBroker
import MQTT
import STOMP

/// Runs a test with a client of MQTT 5.0, connected to a broker on the same manual clock.
func withMQTT(_ body: (LoopbackBroker, MQTTClient, ManualClock) async throws -> Void) async throws {
    let clock = try ManualClock()
    let broker = try await LoopbackBroker.start(clock: clock)
    var configuration = MQTTConfiguration(clientID: "meter")
    configuration.version = .v5_0
    configuration.sessionExpiry = .seconds(600)
    let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
    try await client.connect()
    try await body(broker, client, clock)
    await client.disconnect()
    await broker.stop()
}

/// Runs a test with a STOMP client, connected to a broker on the same manual clock.
func withSTOMP(_ body: (LoopbackBroker, STOMPClient, ManualClock) async throws -> Void) async throws {
    let clock = try ManualClock()
    let broker = try await LoopbackBroker.start(clock: clock)
    let client = STOMPClient(broker.urls.stomp ?? "", clock: clock)
    try await client.connect()
    try await body(broker, client, clock)
    await client.disconnect()
    await broker.stop()
}

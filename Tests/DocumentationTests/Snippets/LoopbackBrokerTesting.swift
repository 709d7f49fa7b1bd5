// The code of Sources/LoopbackBroker/LoopbackBroker.docc/Testing.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT
import Testing

struct ThermostatTests {
    @Test func `The heating is switched on below 20 degrees`() async throws {
        let broker = try await LoopbackBroker.start()
        let house = try MQTTClient(broker.mqttURL, clientID: "house")
        let test = try MQTTClient(broker.mqttURL, clientID: "test")
        try await house.connect()
        try await test.connect()

        let commands = try await test.subscribe(to: "heating/command")
        let thermostat = try await Thermostat(client: house)
        try await test.publish("18.5", to: "heating/temperature", qos: .atLeastOnce)

        var received = commands.makeAsyncIterator()
        #expect(try await received.next()?.text == "on")

        thermostat.stop()
        await house.disconnect()
        await test.disconnect()
        await broker.stop()
    }
}

struct Thermostat {
    private let task: Task<Void, any Error>

    /// Returns when it has subscribed, so that no temperature is missed.
    init(client: MQTTClient) async throws {
        let temperatures = try await client.subscribe(to: "heating/temperature")
        task = Task {
            for try await temperature in temperatures {
                guard let text = temperature.text, let degrees = Double(text) else { continue }
                try await client.publish(degrees < 20 ? "on" : "off", to: "heating/command", qos: .atLeastOnce)
            }
        }
    }

    func stop() { task.cancel() }
}

func loseTheConnection(broker: LoopbackBroker, client: MQTTClient) async throws {
    var states = client.states.makeAsyncIterator()
    await broker.dropAllConnections()
    while let state = await states.next(), state.isConnected {}
    while let state = await states.next(), !state.isConnected {}
}

func repeatAReading(broker: LoopbackBroker, meter: MQTTClient) async throws {
    var arrivals = broker.arrivals().makeAsyncIterator()
    broker.inject(.drop, .sent, .mqtt(.puback), client: "meter")
    async let result = meter.publish("18.5", to: "temperature", qos: .atLeastOnce)
    let first = await arrivals.next()
    await broker.dropConnection(of: "meter")
    let connect = await arrivals.next()
    let second = await arrivals.next()
    _ = try await result
    assert(first?.text == second?.text && connect?.packet == .mqtt(.connect))
}

func noticeASilentServer() async throws {
    let clock = try ManualClock()
    let broker = try await LoopbackBroker.start(clock: clock)
    let client = try MQTTClient(broker.mqttURL, clientID: "meter", clock: clock)
    try await client.connect()

    await broker.freeze()
    await clock.advance(by: .seconds(3600))
    assert(!client.state.isConnected)
    await broker.thaw()
    await clock.advance(by: .seconds(120))
    assert(client.state.isConnected)

    await client.disconnect()
    await broker.stop()
}

func makeImpatientClient(_ broker: LoopbackBroker) throws -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "impatient")
    configuration.reconnect = ReconnectPolicy(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(10))
    configuration.requestTimeout = .seconds(1)
    return try MQTTClient(broker.mqttURL, configuration: configuration)
}

func play(the broker: LoopbackBroker) async {
    await broker.publish("18.5", to: "temperature", retain: true)
    await broker.send("order 7", to: "/queue/orders", headers: ["priority": "9"])
    for await arrival in broker.arrivals() where arrival.packet == .stomp(.ack) { break }
}

func startStrictBroker() async throws -> LoopbackBroker {
    var options = LoopbackBrokerOptions()
    options.users = [LoopbackBrokerOptions.User(name: "meter", password: "secret")]
    options.mqttPort = .preferred(1883)
    options.stompPort = .none
    options.limits.maximumQueueMessages = 100
    return try await LoopbackBroker.start(options)
}

func startTLSBroker(certificate: String, key: String, authority: String) async throws -> (LoopbackBroker, MQTTClient) {
    var options = LoopbackBrokerOptions()
    options.tls = TLSServerOptions(identity: TLSIdentity(certificates: .file(certificate), key: .file(key)))
    let broker = try await LoopbackBroker.start(options)
    var configuration = MQTTConfiguration(clientID: "meter")
    configuration.tls.trust = .authorities([.file(authority)])
    return (broker, try MQTTClient(broker.mqttsURL, configuration: configuration))
}

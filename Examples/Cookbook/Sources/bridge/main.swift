import LoopbackBroker
import MQTT
import Recipe
import STOMP

await recipe(
    """
    Carries readings from MQTT to STOMP, and commands from STOMP to MQTT.
    Usage: bridge [--mqtt URL] [--stomp URL] [--name NAME]

      --mqtt URL      where readings come from (default: a broker inside this program)
      --stomp URL     where they go to (default: another broker inside this program)
      --name NAME     the client identifier, for which the MQTT server keeps readings for a day (default bridge-1)

    home/ROOM/reading    -> /queue/readings, with the topic as a header
    /queue/commands      -> the MQTT topic in the message's header "topic"

    One end acknowledges a message when the other end has confirmed it: none is lost, some may come twice.
    """
) { options in
    try await withBroker(options, \.mqtt, option: "--mqtt") { mqttURL in
        try await withBroker(options, \.stomp, option: "--stomp") { stompURL in
            try await bridge(mqttURL, stompURL, name: options["--name"] ?? "bridge-1")
        }
    }
}

func bridge(_ mqttURL: String, _ stompURL: String, name: String) async throws {
    var configuration = MQTTConfiguration(clientID: name)
    configuration.version = .v5_0
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(86_400)
    let (mqtt, stomp) = (MQTTClient(mqttURL, configuration: configuration), STOMPClient(stompURL))
    // Before the client connects: what the session holds comes to this sequence.
    let readings = mqtt.subscription(to: "home/+/reading", qos: .atLeastOnce, acknowledgement: .manual)
    // Both wait for a server that is away, and say so.
    let reports = [Task { await report(mqtt) }, Task { await report(stomp) }]
    defer { for report in reports { report.cancel() } }
    await mqtt.start()
    await stomp.start()
    var failure: (any Error)?
    do {
        try await mqtt.connect()
        let commands = try await stomp.subscribe(to: "/queue/commands", acknowledgement: .clientIndividual)
        print("bridging \(address(of: mqtt)) and \(address(of: stomp))")
        try await withThrowingTaskGroup { group in
            group.addTask { try await carry(readings, to: stomp) }
            group.addTask { try await carry(commands, to: mqtt) }
            // The first failure ends both.
            while try await group.next() != nil {}
        }
    } catch {
        failure = error
    }
    await mqtt.disconnect()
    await stomp.disconnect()
    // Released while it is connected, the subscription would end for the session too, and readings would be lost.
    withExtendedLifetime(readings) {}
    if let failure { throw failure }
}

/// Says why there is no connection.
func report(_ client: some MessagingClient) async {
    for await state in client.states {
        if case .waiting(_, _, let failure) = state { complain("No connection to \(address(of: client)): \(failure)") }
    }
}

func carry(_ readings: MQTTSubscription, to stomp: STOMPClient) async throws {
    for try await reading in readings {
        try await deliver(reading, to: stomp)
        reading.acknowledge()
        print("\(reading.topic) -> /queue/readings".printable)
    }
}

/// Returns when the broker has confirmed the reading, over a reconnect if need be.
func deliver(_ reading: MQTTMessage, to stomp: STOMPClient) async throws {
    let options = STOMPSendOptions(persistent: true, headers: ["topic": reading.topic])
    while true {
        do throws(STOMPError) {
            return try await stomp.sendAndConfirm(reading.bytes, to: "/queue/readings", options: options)
        } catch {
            guard [.notConnected, .connectionLost, .timedOut].contains(error.code) else { throw error }
            complain("A reading waits for the connection: \(error.message)")
            try await stomp.connect()
        }
    }
}

func reject(_ command: STOMPMessage, because reason: String) {
    complain("A command is rejected: \(reason)")
    // If the connection is lost now, the command is delivered and rejected once more.
    try? command.reject(requeue: false)
}

func carry(_ commands: STOMPSubscription, to mqtt: MQTTClient) async throws {
    // After a reconnect the buffer may hold commands that the broker delivers again.
    for try await command in commands where !command.isStale {
        guard let topic = command.header("topic") else {
            reject(command, because: "it has no topic.")
            continue
        }
        do throws(MQTTError) {
            // Waits while MQTT connects again.
            try await mqtt.publish(command.bytes, to: topic, qos: .atLeastOnce)
        } catch {
            // What is wrong with one command does not stop the others. It would come back at each start.
            guard [.invalidRequest, .notAllowed, .refused].contains(error.code) else { throw error }
            reject(command, because: error.message)
            continue
        }
        do throws(STOMPError) {
            try command.acknowledge()
            print("/queue/commands -> \(topic)".printable)
        } catch {
            // STOMP was reconnected meanwhile: the broker delivers the command again.
            guard error.code == .stale || error.code == .notConnected else { throw error }
        }
    }
}

// The code of Sources/MessagingShell/MessagingShell.docc/Performance.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func publishMany(client: MQTTClient) async throws {
    let payload = Array("21.5".utf8)
    let messages = (0..<100).map { number in
        MQTTOutgoingMessage(payload, to: "meters/\(number)", qos: .atLeastOnce)
    }
    try await client.publish(messages).check()
}

func countBytes(client: MQTTClient) async throws -> Int {
    var bytes = 0
    let readings = try await client.subscribe(to: "meters/#", qos: .atMostOnce)
    for try await batch in readings.batches {
        for reading in batch { bytes += reading.payload.count }
        if bytes > 0 { break }
    }
    return bytes
}

func measureRoundTrips(client: MQTTClient) async throws {
    try await client.withExecutor {
        for _ in 0..<100 {
            try await client.publish("ping", to: "latency", qos: .atLeastOnce)
        }
    }
}

func makeGateway(meters: [String]) -> [MQTTClient] {
    var configuration = MQTTConfiguration()
    configuration.threadCount = 2
    return meters.map { MQTTClient("mqtt://broker.example.com", clientID: $0, configuration: configuration) }
}

func publishPosition(client: MQTTClient, position: [UInt8]) throws {
    let isSent = try client.tryPublish(MQTTOutgoingMessage(position, to: "vehicles/7/position"))
    if !isSent { print("The outbox is full.") }
}

// The code of Sources/MessagingShell/MessagingShell.docc/Buffers.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func readEverything(client: MQTTClient) async throws {
    let readings = try await client.subscribe(
        to: "meters/#", qos: .atMostOnce, buffer: BufferPolicy(overflow: .pauseReading))
    for try await reading in readings {
        store(reading.bytes)
    }
}

func store(_ bytes: [UInt8]) {}

func showLatest(client: MQTTClient) async throws {
    let positions = try await client.subscribe(
        to: "vehicles/+/position", qos: .atMostOnce, buffer: BufferPolicy(messages: 1))
    for try await position in positions {
        if position.droppedBefore > 0 { print("skipped \(position.droppedBefore)") }
        print(position.topic)
        break
    }
}

func processFirst(client: MQTTClient) async throws {
    let payments = try await client.subscribe(to: "payments/#", qos: .atLeastOnce, acknowledgement: .manual)
    for try await payment in payments {
        store(payment.bytes)
        payment.acknowledge()
        break
    }
}

// The code of Sources/Inspector/Inspector.docc/WatchingTraffic.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import Foundation
import Inspector
import MQTT

func inspect(_ client: MQTTClient) async throws -> InspectorPage {
    let log = FrameLog()
    client.inspect(into: log)
    return try await InspectorPage.start(log) { topic, payload in
        try await client.publish(payload, to: topic, qos: .atLeastOnce)
    }
}

func recordFrames(of client: MQTTClient, into file: URL) async throws {
    let log = FrameLog(limit: 10_000)
    client.inspect(into: log)
    try await client.connect()
    try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
    await client.disconnect()
    for frame in log.frames(containing: "kitchen") { print(frame.direction, frame.type, frame.destination ?? "") }
    try Data(log.pcapng()).write(to: file)
}

func printPackets(client: MQTTClient) async {
    for await record in client.inspect() {
        print(record.direction == .sent ? "→" : "←", record)
    }
}

// The code of Sources/Inspector/Inspector.docc/Inspector.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import Inspector
import MQTT

func showTraffic(of client: MQTTClient) async throws -> InspectorPage {
    let log = FrameLog()
    client.inspect(into: log)
    return try await InspectorPage.start(log)
}

// The code of Sources/MQTT/MQTT.docc/MovingFromLightMQTT.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func watchTrams() async throws {
    let client = MQTTClient("mqtts://mqtt.hsl.fi", clientID: "trams-%%%%")
    try await client.connect()
    let positions = try await client.subscribe(to: "/hfp/v2/journey/ongoing/vp/tram/#", qos: .atMostOnce)
    for try await position in positions {
        print(position.topic, position.payload.count)
    }
}

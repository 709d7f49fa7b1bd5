// The code of Sources/MQTT/MQTT.docc/Sessions.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func keepTheSession() -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "meter-%%%%")
    configuration.version = .v5_0
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(86_400)
    configuration.sessionStore = FileSessionStore(directory: "/var/lib/meter/session")
    return configuration
}

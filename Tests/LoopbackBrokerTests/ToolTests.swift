import LoopbackBroker
import TestSupport
import Testing

/// Mosquitto's command-line clients against the broker, as anybody can try them.
@Suite(.requires(program: "mosquitto_sub", "mosquitto_pub"), .turns)
struct ToolTests {
    @Test(arguments: ["mqttv31", "mqttv311", "mqttv5"], ["0", "1", "2"])
    func carriesMessagesOfEveryVersionAndQoS(version: String, qos: String) async throws {
        try await withBroker { broker in
            let port = broker.ports.mqtt ?? 0
            let options = ["-V", version, "-q", qos]
            let subscriber = try await MosquittoClients.subscribe(to: "/mwm/+/motion", port: port, options)
            try await MosquittoClients.publish("one", to: "/mwm/A/motion", port: port, options)
            try await MosquittoClients.publish("two", to: "/mwm/B/motion", port: port, options + ["-r"])
            let first = try await subscriber.waitForLine(containing: "/mwm/A/motion one")
            try await subscriber.waitForLine(containing: "/mwm/B/motion two", after: first)
            let late = try await MosquittoClients.subscribe(to: "/mwm/B/#", port: port, options)
            try await late.waitForLine(containing: "/mwm/B/motion two")
        }
    }

    @Test func publishesTheWillOfAToolThatIsKilled() async throws {
        try await withBroker { broker in
            let port = broker.ports.mqtt ?? 0
            let watcher = try await MosquittoClients.subscribe(to: "/mwm/lastWill/#", port: port)
            let victim = try await MosquittoClients.subscribe(
                to: "x", port: port, ["--will-topic", "/mwm/lastWill", "--will-payload", "bye", "--will-qos", "2"])
            await victim.kill()
            try await watcher.waitForLine(containing: "/mwm/lastWill bye")
        }
    }
}

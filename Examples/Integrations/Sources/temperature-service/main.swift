import Logging
import MQTT
import MessagingLogging
import MessagingMetrics
import MessagingServices
import ServiceLifecycle

// A service that converts temperatures, until SIGINT or SIGTERM:
//
//     temperature-service mqtt://localhost

/// Publishes each temperature in degrees Fahrenheit too.
struct Converter: Service {
    let client: MQTTClient

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await convert() }
        } catch {
            // Cancelled when the group shuts down.
            guard (error as? MQTTError)?.code == .cancelled else { throw error }
        }
    }

    private func convert() async throws {
        for try await celsius in try await client.subscribe(to: "celsius/+", as: Double.self) {
            guard let value = try? celsius.value else { continue }
            let topic = "fahrenheit/\(celsius.captures[0])"
            try await client.publish(value * 1.8 + 32, as: .json, to: topic, qos: .atLeastOnce)
        }
    }
}

/// The client's events in the log.
struct EventLog: Service {
    let client: MQTTClient
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown { await client.logEvents(to: logger) }
    }
}

let logger = Logger(label: "temperature-service")
var configuration = MQTTConfiguration(clientID: "converter-%%%%")
configuration.messageHook = .metrics
let client = MQTTClient(CommandLine.arguments.dropFirst().first ?? "mqtt://localhost", configuration: configuration)
// From here on the subscription waits for a connection; the service disconnects in the end.
await client.start()
let group = ServiceGroup(
    services: [EventLog(client: client, logger: logger), ClientService(client), Converter(client: client)],
    gracefulShutdownSignals: [.sigint, .sigterm], logger: logger)
try await group.run()

// The code of Sources/MQTT/MQTT.docc/RunningForMonths.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import Foundation
import MQTT

func makeMeter(_ url: String, store directory: String) -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-1")
    configuration.version = .v5_0
    // The server keeps its part of the session for a week, and the directory the readings that were not delivered.
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(7 * 86_400)
    configuration.sessionStore = FileSessionStore(directory: directory)
    // A store that is full drops what is oldest instead of refusing what is new.
    configuration.queueOverflow = .dropOldest
    configuration.will = MQTTWill("offline", to: "meters/1/status", qos: .atLeastOnce, retain: true)
    return MQTTClient(url, configuration: configuration)
}

/// Reports readings until the client disconnects; throws when it has stopped, for example because its password is refused.
func runMeter(
    _ client: MQTTClient, every interval: Duration = .seconds(60), read: @escaping @Sendable () async -> Double,
    log: @escaping @Sendable (String) -> Void
) async throws {
    // Made before the client starts, so that they have the first connection too.
    let (events, states) = (client.events, client.states)
    let tasks = [
        Task { for await event in events { log("\(event)") } },
        Task {
            for await state in states where state.isConnected {
                _ = try? await client.publish("online", to: "meters/1/status", qos: .atLeastOnce, retain: true)
            }
        },
        Task {
            while !Task.isCancelled {
                let reading = MQTTOutgoingMessage("\(await read())", to: "meters/1/reading")
                // Returns when the reading is in the store, with a connection or without.
                do { try await client.enqueue(reading) } catch { log("\(error)") }
                try? await Task.sleep(for: interval)
            }
        },
    ]
    defer { for task in tasks { task.cancel() } }
    try await client.run()
}

/// Ends the client gracefully; the server publishes its will, "offline".
func end(_ client: MQTTClient) async {
    // Throws if the server cannot be told so; the connection then continues.
    try? await client.disconnect(reason: .disconnectWithWillMessage)
    await client.disconnect()
}

/// Ends the client on Ctrl-C and on SIGTERM, for as long as the sources are kept.
func endOnSignal(_ client: MQTTClient) -> [any DispatchSourceSignal] {
    [SIGINT, SIGTERM].map { number in
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler { @Sendable in Task { await end(client) } }
        source.resume()
        return source
    }
}

func runMeterProgram() async throws {
    let client = makeMeter("mqtts://broker.example.com", store: "/var/lib/meter/session")
    let signals = endOnSignal(client)
    try await runMeter(client, read: { 21.5 }, log: { print($0) })
    withExtendedLifetime(signals) {}
}

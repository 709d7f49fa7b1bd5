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

/// Calls `handle` on a signal from now on, for as long as the source is kept.
func onSignal(_ number: Int32, _ handle: @escaping @Sendable () -> Void) async -> any DispatchSourceSignal {
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler { @Sendable in handle() }
    // Until Dispatch has registered the source, a signal ends the program as usual, and none is lost.
    await withCheckedContinuation { registered in
        source.setRegistrationHandler { @Sendable in registered.resume() }
        source.activate()
    }
    #if canImport(Darwin)
        // There the signal would end the program now too. Dispatch sees it nevertheless.
        signal(number, SIG_IGN)
    #endif
    return source
}

func runMeterProgram() async throws {
    let client = makeMeter("mqtts://broker.example.com", store: "/var/lib/meter/session")
    let meter = Task { try await runMeter(client, read: { 21.5 }, log: { print($0) }) }
    let stop = { @Sendable in stopMeter(meter, client) }
    let signals = await [onSignal(SIGINT, stop), onSignal(SIGTERM, stop)]
    defer { for signal in signals { signal.cancel() } }
    try await meter.value
}

/// Ends the meter, also before it runs: the client is idle then, and `end` alone would end nothing.
func stopMeter(_ meter: Task<Void, any Error>, _ client: MQTTClient) {
    Task {
        await end(client)
        meter.cancel()
    }
}

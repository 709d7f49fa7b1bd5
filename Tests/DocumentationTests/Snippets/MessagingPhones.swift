// The code of Sources/Messaging/Messaging.docc/Phones.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import Observation

@MainActor @Observable
final class DoorModel {
    private(set) var isOnline = false
    private(set) var doors: [String: String] = [:]
    private(set) var problem: String?
    private let client: MQTTClient

    init(client: MQTTClient) { self.client = client }

    /// Runs until the task that calls it is cancelled.
    func run() async {
        async let states: Void = watchStates()
        async let messages: Void = watchDoors()
        _ = await (states, messages)
    }

    private func watchStates() async {
        for await state in client.states { isOnline = state.isConnected }
    }

    private func watchDoors() async {
        await client.start()
        do {
            for try await door in try await client.subscribe(to: "house/+/door") {
                doors[door.captures[0]] = door.text
            }
        } catch {
            problem = "\(error)"
        }
    }
}

#if canImport(SwiftUI)
    import MQTT
    import SwiftUI

    struct DoorApp: View {
        let client: MQTTClient
        @Environment(\.scenePhase) private var phase

        var body: some View {
            Text("Doors")
                .onChange(of: phase) {
                    if phase == .active { client.resume() }
                    if phase == .background { Task { await client.suspend() } }
                }
        }
    }
#endif

#if canImport(SwiftUI)
    import Dispatch
    import MQTT
    import Network

    func watchNetwork(for client: MQTTClient) -> NWPathMonitor {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            if path.status == .satisfied { client.networkChanged() }
        }
        monitor.start(queue: .main)
        return monitor
    }
#endif

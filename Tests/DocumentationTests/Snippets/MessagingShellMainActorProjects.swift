// The code of Sources/MessagingShell/MessagingShell.docc/MainActorProjects.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import Observation

nonisolated struct RoomReading: Codable, Sendable {
    var celsius: Double
}

extension MQTTTopic<RoomReading> {
    nonisolated static let roomReadings = MQTTTopic("rooms/+/reading", as: .json)
}

@Observable
final class RoomModel {
    private(set) var status = "offline"
    private(set) var rooms: [String: Double] = [:]
    private(set) var problem: String?
    private let client: MQTTClient

    init(client: MQTTClient) { self.client = client }

    /// Shows the connection until its task is cancelled.
    func watchConnection() async {
        for await state in client.states { status = state.isConnected ? "online" : "offline" }
    }

    /// Shows the rooms until its task is cancelled, or the client stops.
    func watchRooms() async {
        await client.start()
        do {
            for try await reading in try await client.subscribe(to: .roomReadings) {
                // One payload that cannot be decoded must not end the others.
                guard let value = try? reading.value else { continue }
                rooms[reading.captures[0]] = value.celsius
            }
        } catch {
            if !Task.isCancelled { problem = "\(error)" }
        }
    }

    /// Called by a button.
    func report(_ celsius: Double, of room: String) async {
        do {
            try await client.publish(RoomReading(celsius: celsius), to: .roomReadings.at(room))
        } catch {
            problem = "\(error)"
        }
    }
}

#if canImport(SwiftUI)
    import SwiftUI

    struct RoomList: View {
        let model: RoomModel

        var body: some View {
            List(model.rooms.keys.sorted(), id: \.self) { room in
                Text("\(room): \(model.rooms[room] ?? 0) °C")
            }
            .task { await model.watchConnection() }
            .task { await model.watchRooms() }
        }
    }
#endif

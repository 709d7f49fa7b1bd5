import MQTT
import Recipe

/// A line that a person typed, or the fact that the person came or left.
struct Line: Codable, Sendable {
    var name: String
    var text: String?
    var isPresent = true
}

extension MQTTTopic<Line> {
    /// The last level is the room.
    static let rooms = MQTTTopic("chat/rooms/+", as: .json, qos: .atLeastOnce)
}

await recipe(
    """
    Talks with others in a room: each line of standard input goes to everybody there.
    Usage: chat --name NAME [--room ROOM] [--broker URL]

      -n, --name NAME   who you are
      -r, --room ROOM   where you talk (default lobby)
      -b, --broker URL  mqtt:, mqtts:, ws: or wss: (default: a broker inside this program, which others may join)
    """
) { options in
    guard let name = options["--name"] else { throw UsageError("A --name is missing.") }
    let room = try MQTTTopic.rooms.at(options["--room"] ?? "lobby")
    try await withBroker(options) { url in
        var configuration = MQTTConfiguration(clientID: "chat-%%%%")
        configuration.will = try MQTTWill(Line(name: name, isPresent: false), to: room)
        try await MQTTClient(url, configuration: configuration).withConnection { client in
            let lines = try await client.subscribe(to: room)
            // The will has told the others that this person left, when a connection was lost.
            let returns = client.states.filter(\.isConnected).dropFirst()
            print("You are \(name) at \(address(of: client))")
            do {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        for try await element in lines {
                            guard let line = try? element.value, line.name != name else { continue }
                            let words =
                                line.isPresent ? "\(line.name): \(line.text ?? "(is here)")" : "\(line.name) has left"
                            print(words.printable)
                        }
                    }
                    group.addTask { for await _ in returns { try await client.publish(Line(name: name), to: room) } }
                    group.addTask {
                        try await client.publish(Line(name: name), to: room)
                        for await text in inputLines() {
                            try await client.publish(Line(name: name, text: text), to: room)
                        }
                    }
                    // The first that ends is the input, unless something fails: the subscription, for example.
                    try await group.next()
                    group.cancelAll()
                }
            } catch let error as MQTTError where error.code == .cancelled {
                // Ctrl-C came in the middle of a publish. The others are told all the same.
            }
            // Ctrl-C cancels this task, but not the farewell, which waits for a lost connection for two seconds at most.
            let farewell = Task { try await client.publish(Line(name: name, isPresent: false), to: room) }
            let limit = Task {
                try await Task.sleep(for: .seconds(2))
                farewell.cancel()
            }
            _ = await farewell.result
            limit.cancel()
        }
    }
}

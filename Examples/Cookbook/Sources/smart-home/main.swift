import MQTT
import Recipe

await recipe(
    """
    A house with lamps on MQTT 5.0: each lamp obeys commands, publishes its state, and is reported as offline when it
    vanishes.
    Usage: smart-home [--broker URL] ROOM=on|off…

      -b, --broker URL   mqtt:, mqtts:, ws: or wss:, of a broker that speaks 5.0 (default: one inside this program)
    """, takesArguments: true
) { options in
    let commands = try options.rest.map { argument in
        let parts = argument.split(separator: "=")
        guard parts.count == 2, let power = Lamp.Power(rawValue: String(parts[1])) else {
            throw UsageError("A command is ROOM=on or ROOM=off, not '\(argument)'.")
        }
        return (room: String(parts[0]), power: power)
    }
    guard !commands.isEmpty else { throw UsageError("Name what to switch, such as kitchen=on.") }
    try await withBroker(options) { url in
        // The lamps of the house: each is a device of its own.
        var lamps: [Lamp] = []
        var failure: (any Error)?
        do {
            for room in Set(commands.map(\.room)).sorted() { lamps.append(try await Lamp(room: room, url)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lamp in lamps { group.addTask { try await lamp.work() } }
                group.addTask { try await control(commands, url) }
                // The first that ends is the control, unless a lamp fails.
                try await group.next()
                group.cancelAll()
            }
        } catch {
            failure = error
        }
        // A lamp that does not say goodbye is reported as offline.
        for lamp in lamps { await lamp.stop() }
        if let failure { throw failure }
    }
}

/// Gives the commands, and prints what the lamps do until each command has been obeyed.
func control(_ commands: [(room: String, power: Lamp.Power)], _ url: String) async throws {
    var configuration = MQTTConfiguration(clientID: "remote-%%%%")
    configuration.version = .v5_0
    try await MQTTClient(url, configuration: configuration).withConnection { remote in
        let states = try await remote.subscribe(to: .states)
        for (room, power) in commands {
            // A command that comes late is worse than none. It says who gave it.
            try await remote.publish(
                power.rawValue, to: "home/\(room)/lamp/set", qos: .atLeastOnce,
                properties: [.messageExpiryInterval(5), .userProperty("from", "remote control")])
        }
        var left = commands.count
        for try await state in states {
            // Anybody may publish bytes that are no text.
            let value = (try? state.value) ?? "?"
            print("\(state.captures[0]): \(value)\(state.isRetained ? " (as it was)" : "")".printable)
            // Not those that an earlier command has left at the broker.
            if !state.isRetained, state.message.properties.userProperty("by") != nil { left -= 1 }
            if left == 0 { break }
        }
    }
}

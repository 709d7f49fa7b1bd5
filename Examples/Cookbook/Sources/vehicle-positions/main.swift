import MQTT
import Recipe

await recipe(
    """
    Follows the vehicles of a city, as public transport authorities publish them:
    {"VP":{"veh":"H9171","lat":60.20808,"long":24.920565,"spd":7.5,"hdg":135,"dl":60}}
    Usage: vehicle-positions [--broker URL] [--vehicles NUMBER] [--count NUMBER]

      -b, --broker URL       where positions are published (default: a broker inside this program)
      -v, --vehicles NUMBER  also publish the positions of so many invented vehicles (default 5; 0 with --broker)
      -c, --count NUMBER     end after so many positions
    """
) { options in
    let vehicles = try options.number("--vehicles", in: 0...10_000) ?? (options.has("--broker") ? 0 : 5)
    let limit = try options.number("--count", in: 1...Int.max)
    try await withBroker(options) { url in
        try await MQTTClient(url, clientID: "positions-%%%%").withConnection { client in
            let positions = try await client.subscribe(to: .positions)
            try await withThrowingTaskGroup(of: Void.self) { group in
                if vehicles > 0 { group.addTask { try await publishPositions(of: vehicles, with: client) } }
                group.addTask { try await show(positions, limit: limit) }
                // A broker of MQTT 3.1.1 refuses a message by ending the connection, and the client would try for ever.
                group.addTask { for await case .requestPassedOver(let error) in client.events { throw error } }
                // The first that ends has shown enough, unless the feed fails.
                try await group.next()
                group.cancelAll()
            }
        }
    }
}

/// Prints positions, `limit` of them if there is a limit.
func show(_ positions: MQTTDecodedMessages<VehicleMessage>, limit: Int?) async throws {
    var count = 0
    for try await element in positions {
        do {
            print("\(try element.value.position)".printable)
        } catch {
            complain("\(element.topic) is skipped: \(error)")
        }
        count += 1
        if count == limit { break }
    }
}

import MQTT
import Recipe
import STOMP

await recipe(
    """
    Asks a service to add numbers. The service is a part of this program, with a client of its own.
    Usage: request-reply [--stomp] [--broker URL] NUMBER…

      -s, --stomp        over STOMP instead of MQTT 5.0
      -b, --broker URL   of that protocol (default: a broker inside this program)
    """
) { options in
    let numbers = options.rest.compactMap { Int($0) }
    guard !numbers.isEmpty, numbers.count == options.rest.count else { throw UsageError("What are the numbers?") }
    let isSTOMP = options.has("--stomp")
    try await withBroker(options, isSTOMP ? \.stomp : \.mqtt) { url in
        print(isSTOMP ? try await addOverSTOMP(numbers, url) : try await addOverMQTT(numbers, url))
    }
}

func addOverMQTT(_ numbers: [Int], _ url: String) async throws -> Int {
    var configuration = MQTTConfiguration(clientID: "adder-%%%%")
    configuration.version = .v5_0
    return try await MQTTClient(url, configuration: configuration).withConnection { server in
        let requests = try await server.subscribe(to: "sums", as: [Int].self)
        let service = Task {
            for try await request in requests {
                try await server.reply(to: request.message, with: try request.value.reduce(0, +), as: .json)
            }
        }
        defer { service.cancel() }
        return try await MQTTClient(url, configuration: configuration).withConnection { client in
            try await client.request(numbers, as: .json, to: "sums", returning: Int.self, timeout: .seconds(5)).value
        }
    }
}

func addOverSTOMP(_ numbers: [Int], _ url: String) async throws -> Int {
    try await STOMPClient(url).withConnection { server in
        let requests = try await server.subscribe(to: "/queue/sums", as: [Int].self)
        let service = Task {
            for try await request in requests {
                try await server.reply(to: request.message, with: try request.value.reduce(0, +), as: .json)
            }
        }
        defer { service.cancel() }
        return try await STOMPClient(url).withConnection { client in
            try await client.request(numbers, as: .json, to: "/queue/sums", returning: Int.self).value
        }
    }
}

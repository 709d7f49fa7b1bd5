import MQTT
import Recipe
import STOMP

await recipe(
    """
    Asks a service to add numbers. The service is a part of this program, with a client of its own.
    Usage: request-reply [--stomp] [--broker URL] NUMBER…

      -s, --stomp        over STOMP instead of MQTT 5.0
      -b, --broker URL   of that protocol (default: a broker inside this program)
    """, takesArguments: true
) { options in
    let numbers = options.rest.compactMap { Int($0) }
    guard !numbers.isEmpty, numbers.count == options.rest.count else { throw UsageError("What are the numbers?") }
    let isSTOMP = options.has("--stomp")
    try await withBroker(options, isSTOMP ? \.stomp : \.mqtt) { url in
        let answer = isSTOMP ? try await addOverSTOMP(numbers, url) : try await addOverMQTT(numbers, url)
        guard let sum = answer.sum else { throw Refusal(description: answer.problem ?? "There is no answer.") }
        print(sum)
    }
}

/// What the service answers: the sum, or why there is none.
struct Answer: Codable, Sendable {
    var sum: Int?
    var problem: String?

    /// Anybody may send a request: one that is no list of numbers is answered, too.
    init(adding numbers: () throws -> [Int]) {
        do {
            var sum = 0
            for number in try numbers() {
                let (next, overflows) = sum.addingReportingOverflow(number)
                if overflows {
                    problem = "The sum does not fit in \(Int.bitWidth) bits."
                    return
                }
                sum = next
            }
            self.sum = sum
        } catch {
            problem = "\(error)"
        }
    }
}

/// The service has refused the request.
struct Refusal: Error, CustomStringConvertible {
    let description: String
}

/// Answers one request. The next ones wait for their answers too, although this one may not say where its own goes, for
/// example.
func answering(_ reply: () async throws -> Void) async throws {
    do {
        try await reply()
    } catch {
        if Task.isCancelled { throw error }
        complain("A request is not answered: \(error)")
    }
}

func addOverMQTT(_ numbers: [Int], _ url: String) async throws -> Answer {
    var configuration = MQTTConfiguration(clientID: "adder-%%%%")
    configuration.version = .v5_0
    return try await MQTTClient(url, configuration: configuration).withConnection { server in
        let requests = try await server.subscribe(to: "sums", as: [Int].self)
        let service = Task {
            for try await request in requests {
                try await answering {
                    let answer = Answer(adding: { try request.value })
                    try await server.reply(to: request.message, with: answer, as: .json)
                }
            }
        }
        defer { service.cancel() }
        return try await MQTTClient(url, configuration: configuration).withConnection { client in
            try await client.request(numbers, as: .json, to: "sums", returning: Answer.self).value
        }
    }
}

func addOverSTOMP(_ numbers: [Int], _ url: String) async throws -> Answer {
    try await STOMPClient(url).withConnection { server in
        let requests = try await server.subscribe(to: "/queue/sums", as: [Int].self)
        let service = Task {
            for try await request in requests {
                try await answering {
                    let answer = Answer(adding: { try request.value })
                    try await server.reply(to: request.message, with: answer, as: .json)
                }
            }
        }
        defer { service.cancel() }
        return try await STOMPClient(url).withConnection { client in
            try await client.request(numbers, as: .json, to: "/queue/sums", returning: Answer.self).value
        }
    }
}

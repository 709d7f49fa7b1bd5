// The code of Sources/STOMP/STOMP.docc/Acknowledgements.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP
import Synchronization

func processOrders(client: STOMPClient) async throws {
    let orders = try await client.subscribe(
        to: "/queue/orders", acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: 50))
    // After a reconnect the buffer may hold messages that the broker delivers again.
    for try await order in orders where !order.isStale {
        do {
            if isComplete(order) { try order.acknowledge() } else { try order.reject(requeue: false) }
        } catch {
            // The connection was lost during the work: the order comes again.
            guard error.code == .stale else { throw error }
        }
    }
}

func isComplete(_ order: STOMPMessage) -> Bool { order.text?.contains("pizza") == true }

extension STOMPDestination<String> {
    // The exchange behind /topic/, so that a durable subscription keeps the dead letters.
    static let checkedOrders = STOMPDestination.text(
        "/queue/orders",
        queue: .rabbitMQ(durable: true, deadLetterExchange: "amq.topic", deadLetterRoutingKey: "orders.dead"))
}

func useDeadLetters(client: STOMPClient) async throws {
    let dead = try await client.subscribe(
        to: "/topic/orders.dead", acknowledgement: .clientIndividual,
        options: STOMPSubscribeOptions(durableName: "orders-dead"))
    let orders = try await client.subscribe(to: .checkedOrders, acknowledgement: .clientIndividual)
    try await client.sendAndConfirm("{}", to: .checkedOrders)
    for try await order in orders {
        try order.reject(requeue: false)
        break
    }
    for try await order in dead {
        print("cannot be processed: \(order.text ?? "")")
        try order.acknowledge()
        break
    }
}

func moveOneOrder(client: STOMPClient) async throws {
    for try await order in try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual) {
        try await client.withTransaction { transaction in
            try await client.send(order.bytes, to: "/queue/paid", in: transaction)
            try order.acknowledge(in: transaction)
        }
        break
    }
}

func payInSteps(client: STOMPClient) async throws {
    let transaction = try client.begin(named: "order 17")
    try await client.send("17", to: "/queue/paid", in: transaction)
    try await client.commit(transaction)
}

func watchNews() async throws {
    var configuration = STOMPConfiguration()
    configuration.clientID = "reader-1"
    let client = STOMPClient("stomp://localhost", configuration: configuration)
    try await client.connect()
    let news = try await client.subscribe(
        to: "/topic/news", acknowledgement: .clientIndividual,
        options: STOMPSubscribeOptions(durableName: "reader-1-news"))
    for try await item in news where !item.isStale {
        print(item.text ?? "")
        // Throws if the connection was lost meanwhile: the item comes again.
        try? item.acknowledge()
    }
}

func readEurope(client: STOMPClient) async throws {
    let europe = try await client.subscribe(
        to: "/topic/prices", options: STOMPSubscribeOptions(selector: "country IN ('FR', 'DE', 'IT')"))
    for try await price in europe { print(price.header("country") ?? "", price.text ?? "") }
}

func readStream(client: STOMPClient) async throws {
    // Keep it in a file if the next process is to continue.
    let next = Atomic(0)
    var options = STOMPSubscribeOptions(
        prefetch: 100, headers: ["x-queue-type": "stream", "durable": "true", "auto-delete": "false"])
    options.headersProvider = { ["x-stream-offset": "offset=\(next.load(ordering: .acquiring))"] }
    let entries = try await client.subscribe(
        to: "/queue/log", acknowledgement: .clientIndividual, options: options)
    for try await entry in entries where !entry.isStale {
        print(entry.text ?? "")
        if let offset = entry.headers["x-stream-offset"].flatMap({ Int($0) }) {
            next.store(offset + 1, ordering: .releasing)
        }
        // It asks for more messages, and deletes none.
        try? entry.acknowledge()
    }
}

// The code of Sources/STOMP/STOMP.docc/GettingStarted.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import STOMP

func workOnOrders() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        let orders = try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual)
        for try await order in orders where !order.isStale {
            print(order.text ?? "\(order.body.count) bytes")
            // Throws if the connection was lost meanwhile: the order comes again.
            try? order.acknowledge()
        }
    }
}

func readOneOrder(client: STOMPClient) async throws {
    let orders = try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual)
    for try await order in orders {
        print(order.destination, order.messageID ?? "", order.contentType ?? "", order.header("region") ?? "")
        try order.acknowledge()
        break
    }
    try await orders.unsubscribe()
}

func printOrdersInATask(client: STOMPClient) -> Task<Void, Never> {
    Task {
        do throws(STOMPError) {
            let orders = try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual)
            for try await order in orders where !order.isStale {
                print(order.text ?? "")
                try? order.acknowledge()
            }
        } catch {
            if error.code != .cancelled { print(error.message) }
        }
    }
}

func sendOrders(client: STOMPClient) async throws {
    // Returns when the bytes are on their way.
    try await client.send("{\"pizza\":1}", to: "/queue/orders")

    // Returns when the broker has processed the message (RECEIPT).
    try await client.sendAndConfirm("{\"pizza\":2}", to: "/queue/orders")

    // Sends now, waits for the receipt later.
    let receipt = try await client.sendForReceipt(STOMPOutgoingMessage("{\"pizza\":3}", to: "/queue/orders"))
    try await receipt.confirmed()
}

func sendUrgently(client: STOMPClient) async throws {
    let options = STOMPSendOptions(
        contentType: "application/json", persistent: true, priority: 9, expiresAfter: .seconds(60),
        headers: ["region": "north"])
    try await client.sendAndConfirm("{\"pizza\":1}", to: "/queue/orders", options: options)
}

struct Order: Codable, Sendable, Equatable {
    var pizza: Int
}

extension STOMPDestination<Order> {
    static let orders = STOMPDestination("/topic/orders", as: .json)
}

func copyOrders(client: STOMPClient) async throws {
    let orders = try await client.subscribe(to: .orders)
    try await client.send(Order(pizza: 1), to: .orders)
    for try await order in orders {
        print(try order.value.pizza)
        break
    }
}

func askForThePrice(client: STOMPClient) async throws -> String? {
    let price = try await client.request("pizza", to: "/queue/prices", timeout: .seconds(5))
    return price.text
}

func tellPrices(client: STOMPClient) async throws {
    for try await question in try await client.subscribe(to: "/queue/prices") {
        do {
            try await client.reply(to: question, with: "12.50")
        } catch {
            guard [.invalidRequest, .notConnected].contains(error.code) else { throw error }
            print("No answer to \(question.messageID ?? ""): \(error.message)")
        }
    }
}

func askAServiceWithoutCorrelation(client: STOMPClient) async throws -> String? {
    let options = STOMPSendOptions(replyTo: "/queue/prices.for-ann")
    let answers = try await client.subscribe(to: "/queue/prices.for-ann")
    try await client.send("pizza", to: "/queue/prices", options: options)
    for try await answer in answers { return answer.text }
    return nil
}

func makeOrderClient() -> STOMPClient {
    var configuration = STOMPConfiguration()
    configuration.host = "shop"
    configuration.credentials = Credentials(userName: "worker", password: "secret")
    configuration.clientID = "worker-1"
    configuration.outgoingHeartBeat = .seconds(5)
    configuration.incomingHeartBeat = .seconds(5)
    return STOMPClient("stomps://broker.example.com", configuration: configuration)
}

func tryQueuesOut() async throws {
    let broker = try await LoopbackBroker.start()
    let client = try STOMPClient(broker.stompURL)
    try await client.connect()
    try await client.sendAndConfirm("hello", to: "/queue/greetings")
    for try await greeting in try await client.subscribe(to: "/queue/greetings") {
        print(greeting.destination, greeting.text ?? "")
        break
    }
    await client.disconnect()
    await broker.stop()
}

import Recipe
import STOMP

struct Order: Codable, Sendable {
    var number: Int
    var pizza: String
}

struct Invoice: Codable, Sendable {
    var order: Int
    var euros: Double
}

extension STOMPDestination<Order> {
    static let orders = STOMPDestination("/queue/orders", as: .json)
}

extension STOMPDestination<Invoice> {
    static let invoices = STOMPDestination("/queue/invoices", as: .json)
}

await recipe(
    """
    Processes a queue of orders: each becomes an invoice, and a message that is not an order becomes a dead letter.
    Usage: order-worker [--broker URL] [--orders NUMBER]

      -b, --broker URL     stomp:, stomps:, ws: or wss: (default: a broker inside this program)
      -o, --orders NUMBER  how many orders are placed before the work begins (default 3)
    """
) { options in
    let count = try options.number("--orders", in: 1...1000) ?? 3
    try await withBroker(options, \.stomp) { url in
        try await STOMPClient(url).withConnection { client in
            // Tells the orders of this run from those of others, and so their invoices.
            let run = STOMPSendOptions(headers: ["run": "\(UInt64.random(in: 1...UInt64.max))"])
            for number in 1...count {
                try await client.sendAndConfirm(
                    Order(number: number, pizza: "Margherita"), to: .orders, options: run)
            }
            try await client.sendAndConfirm("one pizza, please", to: "/queue/orders", options: run)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await work(client) }
                group.addTask { try await awaitResults(of: count, client, run: run.headers["run"]) }
                // The first that ends is the second, unless the worker fails.
                try await group.next()
                group.cancelAll()
            }
        }
    }
}

/// Returns when each order has its invoice, and the message that is not an order has become a dead letter. The worker cannot
/// count them: if the answer to a COMMIT is lost with the connection, it does not know whether the order comes again.
func awaitResults(of count: Int, _ client: STOMPClient, run: String?) async throws {
    var unbilled = Set(1...count)
    let invoices = try await client.subscribe(to: .invoices, acknowledgement: .clientIndividual)
    for try await invoice in invoices where invoice.message.header("run") == run {
        unbilled.remove(try invoice.value.order)
        // Throws if the connection was lost meanwhile: the invoice comes again.
        try? invoice.acknowledge()
        if unbilled.isEmpty { break }
    }
    let letters = try await client.subscribe(to: "/queue/orders.dead", acknowledgement: .clientIndividual)
    for try await letter in letters where letter.header("run") == run {
        let reason = letter.header("reason") ?? "for no reason"
        print("dead letter: \(letter.text ?? "") (\(reason))".printable)
        try? letter.acknowledge()
        break
    }
}

/// Processes orders until its task is cancelled. The result and the acknowledgement are in one transaction: with a single
/// ActiveMQ broker, a worker that is killed neither loses an order nor bills it twice. The article on workers has one for
/// RabbitMQ.
func work(_ client: STOMPClient) async throws {
    let orders = try await client.subscribe(
        to: .orders, acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: 10))
    // After a reconnect the buffer may hold orders that the broker delivers again.
    for try await order in orders where !order.isStale {
        do {
            try await process(order, client)
        } catch {
            guard let error = error as? STOMPError,
                [.notConnected, .connectionLost, .stale, .timedOut].contains(error.code)
            else { throw error }
            // The broker delivers the order again, unless it was billed: over the next connection, which after a time-out
            // need not come soon.
            complain("order postponed: \(error.message)")
        }
    }
}

func process(_ order: STOMPDecodedMessage<Order>, _ client: STOMPClient) async throws {
    var options = STOMPSendOptions()
    options.headers["run"] = order.message.header("run")
    try await client.withTransaction { transaction in
        do {
            let (number, pizza) = (try order.value.number, try order.value.pizza)
            try await client.send(Invoice(order: number, euros: 9.5), to: .invoices, options: options, in: transaction)
            print("order \(number): \(pizza)".printable)
        } catch let failure as DecodeFailure {
            options.headers["reason"] = "\(failure)"
            try await client.send(order.bytes, to: "/queue/orders.dead", options: options, in: transaction)
        }
        try order.acknowledge(in: transaction)
    }
}

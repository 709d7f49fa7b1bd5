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
            for number in 1...count {
                try await client.sendAndConfirm(Order(number: number, pizza: "Margherita"), to: .orders)
            }
            try await client.sendAndConfirm("one pizza, please", to: "/queue/orders")
            try await work(client, on: count + 1)

            for try await letter in try await client.subscribe(to: "/queue/orders.dead") {
                let reason = letter.header("reason") ?? "for no reason"
                print("dead letter: \(letter.text ?? "") (\(reason))".printable)
                break
            }
        }
    }
}

/// Processes `count` messages. The result and the acknowledgement are in one transaction: with a single ActiveMQ broker, a
/// worker that is killed neither loses an order nor bills it twice. The article on workers has one for RabbitMQ.
func work(_ client: STOMPClient, on count: Int) async throws {
    let orders = try await client.subscribe(
        to: .orders, acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: 10))
    var left = count
    for try await order in orders {
        do {
            try await process(order, client)
            left -= 1
        } catch {
            guard let error = error as? STOMPError,
                [.notConnected, .connectionLost, .stale, .timedOut].contains(error.code)
            else { throw error }
            // The broker delivers the order again, unless it was billed: over the next connection, which after a time-out
            // need not come soon.
            complain("order postponed: \(error.message)")
        }
        if left == 0 { break }
    }
}

func process(_ order: STOMPDecodedMessage<Order>, _ client: STOMPClient) async throws {
    try await client.withTransaction { transaction in
        do {
            let (number, pizza) = (try order.value.number, try order.value.pizza)
            try await client.send(Invoice(order: number, euros: 9.5), to: .invoices, in: transaction)
            print("order \(number): \(pizza)".printable)
        } catch let failure as DecodeFailure {
            try await client.send(
                order.bytes, to: "/queue/orders.dead", options: STOMPSendOptions(headers: ["reason": "\(failure)"]),
                in: transaction)
        }
        try order.acknowledge(in: transaction)
    }
}

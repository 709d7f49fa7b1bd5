// The code of Sources/STOMP/STOMP.docc/MovingFromStompJS.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

func acknowledgeOrders() async throws {
    var configuration = STOMPConfiguration()
    configuration.credentials = Credentials(userName: "user", password: "secret")
    let client = STOMPClient("wss://example.com/ws", configuration: configuration)
    try await client.connect()
    try await client.send("one pizza", to: "/queue/orders")
    let orders = try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual)
    for try await order in orders where !order.isStale {
        // Throws if the connection was lost meanwhile: the order comes again.
        try? order.acknowledge()
    }
}

// The code of Sources/STOMP/STOMP.docc/MovingFromStompKit.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

func takeOrders() async throws {
    var configuration = STOMPConfiguration()
    configuration.credentials = Credentials(userName: "user", password: "secret")
    let client = STOMPClient("stomp://localhost", configuration: configuration)
    try await client.connect()
    try await client.sendAndConfirm("one pizza", to: "/queue/orders")
    for try await order in try await client.subscribe(to: "/queue/orders", acknowledgement: .clientIndividual) {
        print(order.text ?? "")
        try order.acknowledge()
    }
}

// The code of Sources/Messaging/Messaging.docc/Clusters.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

func sendOrdersToTheCluster() async throws {
    var configuration = STOMPConfiguration()
    configuration.serverOrder = .shuffled
    configuration.proxy = .environment
    let nodes = ["stomps://one.example.com", "stomps://two.example.com", "stomps://three.example.com"]
    let client = STOMPClient(nodes, configuration: configuration)
    let quorum: STOMPHeaders = ["x-queue-type": "quorum", "durable": "true", "auto-delete": "false"]
    try await client.withConnection { client in
        try await client.sendAndConfirm(
            "{\"pizza\":1}", to: "/queue/orders", options: STOMPSendOptions(persistent: true, headers: quorum))
    }
}

// The code of Sources/STOMP/STOMP.docc/STOMP.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

func sendOneOrder() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        try await client.sendAndConfirm("{\"pizza\":1}", to: "/queue/orders")
    }
}

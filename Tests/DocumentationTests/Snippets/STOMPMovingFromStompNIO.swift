// The code of Sources/STOMP/STOMP.docc/MovingFromStompNIO.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

func readParcels() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        for try await parcel in try await client.subscribe(to: "/queue/parcels") {
            print(parcel.text ?? "")
        }
    }
}

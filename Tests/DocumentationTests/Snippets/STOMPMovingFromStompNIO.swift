// The code of Sources/STOMP/STOMP.docc/MovingFromStompNIO.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

func readParcels() async throws {
    let client = STOMPClient("stomp://localhost")
    try await client.withConnection { client in
        let parcels = try await client.subscribe(to: "/queue/parcels", acknowledgement: .clientIndividual)
        for try await parcel in parcels where !parcel.isStale {
            print(parcel.text ?? "")
            // Throws if the connection was lost meanwhile: the parcel comes again.
            try? parcel.acknowledge()
        }
    }
}

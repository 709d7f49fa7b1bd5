// The code of Sources/STOMP/STOMP.docc/MovingFromStompClientLib.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import STOMP

struct Price: Decodable, Sendable {
    var symbol: String
    var value: Double
}

func followPrices() async throws {
    let client = STOMPClient("wss://example.com/stomp")
    try await client.connect()
    let prices = try await client.subscribe(to: "/topic/prices")
    for try await price in prices.values(Price.self, as: .json) {
        if let value = try? price.get() { print(value.symbol) }
    }
}

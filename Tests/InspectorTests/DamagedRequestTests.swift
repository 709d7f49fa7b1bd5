import Inspector
import MessagingShell
import TestSupport
import Testing

/// Requests with bytes changed, dropped and added, against one page: fuzzing of its server.
@Suite(.turns) struct DamagedRequestTests {
    @Test func `whatever is sent to a page, it goes on answering others`() async throws {
        let page = try await InspectorPage.start(FrameLog())
        let client = InspectorClient(page: page)
        var random = SeededGenerator(seed: Campaign.seed)
        let requests = [
            "GET \(client.root) HTTP/1.1\r\nHost: \(client.host)\r\n\r\n",
            "GET \(client.root)frame?number=1 HTTP/1.1\r\nHost: \(client.host)\r\nX: y\r\n\r\n",
            "HEAD \(client.root)inspector.js HTTP/1.1\r\nHost: \(client.host)\r\n\r\n",
            "POST \(client.root)pause HTTP/1.1\r\nHost: \(client.host)\r\nOrigin: http://\(client.host)\r\n"
                + "Content-Length: 3\r\n\r\nabc",
            "POST \(client.root)x HTTP/1.1\r\nHost: \(client.host)\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "GET \(client.root)events?since=18446744073709551616 HTTP/1.0\r\n\r\n",
        ].map { Array($0.utf8) }
        for _ in 0..<Campaign.rounds(10_000, least: 100) {
            var bytes = requests.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...5, using: &random) where !bytes.isEmpty {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.removeSubrange(index..<min(bytes.count, index + Int.random(in: 1...9, using: &random)))
                case 2: bytes.insert(contentsOf: random.bytes(Int.random(in: 1...5, using: &random)), at: index)
                default: bytes.insert(contentsOf: bytes[index...].prefix(40), at: index)
                }
            }
            let connection = try await RawConnection.open(port: page.port)
            // The server may have refused it, and closed, before all is sent.
            try? await connection.send(bytes)
        }
        #expect(try await client.get("").hasPrefix("HTTP/1.1 200 OK"))
        await page.stop()
    }
}

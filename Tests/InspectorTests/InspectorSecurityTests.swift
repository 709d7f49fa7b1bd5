import Inspector
import Synchronization
import TestSupport
import Testing

/// Requests that an inspector page must not answer.
@Suite(.turns)
struct InspectorSecurityTests {
    private static let reads = [
        "GET /", "GET /inspector.js", "GET /events", "GET /frame?number=1", "GET /frames.pcapng",
    ]
    private static let orders = ["POST /pause", "POST /clear", "POST /publish?topic=a"]

    /// Sends everything that the page may send, with these header fields; returns the answers that are not 403.
    private func admitted(
        _ requests: [String], token: String? = nil, _ fields: (InspectorClient) -> [String]
    ) async throws -> [String] {
        let log = FrameLog()
        let isPublished = Mutex(false)
        let page = try await InspectorPage.start(log) { _, _ in isPublished.withLock { $0 = true } }
        let client = InspectorClient(page: page)
        var admitted: [String] = []
        for request in requests {
            let parts = request.split(separator: " ")
            let path = (token ?? String(client.root.dropLast())) + parts[1]
            let answer = try await client.exchange("\(parts[0]) \(path)", fields(client))
            if !answer.hasPrefix("HTTP/1.1 403 ") { admitted.append("\(request): \(answer.prefix(40))") }
        }
        #expect(!log.isPaused)
        #expect(!isPublished.withLock { $0 })
        await page.stop()
        return admitted
    }

    @Test(arguments: [
        "Host: evil.example", "Host: 127.0.0.1.evil.example", "Host: 127.0.0.1:x", "Host: localhost:80@evil.example",
        "X: no host", "Host: 127.0.0.1\r\nHost: evil.example",
    ])
    func `refuses every request for a wrong host, even with the token`(fields: String) async throws {
        #expect(try await admitted(Self.reads + Self.orders) { _ in [fields, "Origin: http://127.0.0.1"] } == [])
    }

    @Test(arguments: [
        "Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:81", "Origin: https://HOST",
        "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://HOST\r\nOrigin: http://evil.example",
    ])
    func `refuses every request of another site, even with the token`(field: String) async throws {
        let refused = try await admitted(Self.reads + Self.orders) { client in
            ["Host: \(client.host)", field.replacing("HOST", with: client.host)]
        }
        #expect(refused == [])
    }

    @Test func `refuses a form of another site that an old browser sends without an origin`() async throws {
        let refused = try await admitted(Self.orders) { client in
            ["Host: \(client.host)", "Content-Type: application/x-www-form-urlencoded"]
        }
        #expect(refused == [])
    }

    @Test(arguments: ["", "/", "/wrongwrongwrongwrong", "/AAAAAAAAAAAAAAAAAAAA"])
    func `refuses every request without the token`(token: String) async throws {
        let refused = try await admitted(Self.reads + Self.orders, token: token) { client in
            ["Host: \(client.host)", "Origin: http://\(client.host)"]
        }
        #expect(refused == [])
    }

    @Test func `gives each page another token`() async throws {
        let log = FrameLog()
        var tokens: Set<String> = []
        for _ in 0..<3 {
            let page = try await InspectorPage.start(log)
            let root = InspectorClient(page: page).root
            #expect(root.utf8.count == 22)
            tokens.insert(root)
            await page.stop()
        }
        #expect(tokens.count == 3)
    }

    @Test func `answers with fields that keep the address and the content to itself`() async throws {
        let page = try await InspectorPage.start(FrameLog())
        let client = InspectorClient(page: page)
        let answer = try await client.get("")
        for field in [
            "Content-Security-Policy: default-src 'none'; script-src 'self'", "X-Content-Type-Options: nosniff",
            "Referrer-Policy: same-origin", "Cross-Origin-Resource-Policy: same-origin", "Cache-Control: no-store",
        ] {
            #expect(answer.contains(field), "\(field)")
        }
        await page.stop()
    }
}

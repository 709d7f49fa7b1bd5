import MessagingWebSocketCore
import MessagingWire
import TestSupport
import Testing
import Transport

/// Servers that do not open a WebSocket, over real sockets.
@Suite(.turns) struct WebSocketRefusalTests {
    /// Connects to a server that reads the request, answers with `answer` and ends the connection.
    private func refusal(
        _ answer: String?, target: String = "/ws", headers: [(name: String, value: String)] = [],
        timeout: Int64 = 60_000_000_000
    ) async throws -> TransportError? {
        let streams = Collected<SocketStream>()
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
            streams.append(stream)
            guard let answer else { return }
            Link(machine: FakeServerMachine(answer), loop: .shared, maximumOutboxBytes: 1 << 20).attach(stream)
        }
        var failure: TransportError?
        var options = WebSocketOptions()
        options.headers = headers
        do throws(TransportError) {
            let layer = try WebSocketLayer(
                host: "localhost", port: listener.port, isSecure: false, target: target, subprotocols: ["mqtt"],
                options: options, textMessages: nil)
            let stream = try await Connector.connect(
                to: .host("127.0.0.1", port: listener.port), timeout: 60_000_000_000, loop: .shared)
            let layers = LayerStack(
                [layer], deadline: MonotonicClock.now + timeout, timeout: TransportError(.timedOut, "too slow"))
            try await LayerHandshake.run(layers, over: stream, loop: .shared)
            EventLoop.shared.execute { stream.close() }
        } catch {
            failure = error
        }
        await listener.close()
        return failure
    }

    private static let upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

    @Test(arguments: [
        (
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
            ["401 Unauthorized", "Basic realm=\"x\"", "Authorization"]
        ),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\nnot you", ["403 Forbidden", "'not you'"]),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", ["404", "path"]),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: wss://elsewhere.example/mqtt\r\nContent-Length: 0\r\n\r\n",
            ["307", "wss://elsewhere.example/mqtt"]
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://portal.example/login\r\nContent-Length: 0\r\n\r\n",
            ["302", "http://portal.example/login", "login page of a network"]
        ),
        (
            "HTTP/1.1 301 Moved\r\nLocation: //localhost:1/there\r\nContent-Length: 0\r\n\r\n",
            ["301", "It redirects to //localhost:1/there. Use that address."]
        ),
        (
            "HTTP/1.1 301 Moved\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n",
            ["301", "It redirects to /there. Use that address."]
        ),
        ("HTTP/1.1 200 OK\r\n\r\n<html>\u{1}hello</html>", ["200 OK", "<html> hello</html>"]),
        ("HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n", ["503", "nothing"]),
    ])
    func `another status is reported with what to do`(answer: String, words: [String]) async throws {
        let failure = try await refusal(answer)
        #expect(failure?.code == .webSocketRefused)
        for word in words { #expect(failure?.message.contains(word) == true, "\(failure?.message ?? "none")") }
    }

    /// Gateways repeat the address of the request, and pages of errors even its fields.
    @Test(arguments: [
        ("301 Moved", "Location: /mqtt/?token=SECRET-1234&a=b\r\n", "", "/mqtt/?•••. Use that address."),
        (
            "302 Found", "Location: https://u:SECRET-1234@localhost/\r\n", "",
            "https://•••@localhost/. Use that address."
        ),
        ("302 Found", "Location: //SECRET-1234@portal/x@y#SECRET-1234\r\n", "", "//•••@portal/x@y#•••"),
        ("301 Moved", "Location: /SECRET-1234/\r\n", "", "/•••/"),
        ("403 Forbidden", "", "no /ws?token=SECRET-1234&a=b here", "'no /ws?••• here'"),
        ("403 Forbidden", "", "/ws?token=SECRET-1234&amp;a=b", "'/ws?•••&amp;a=b'"),
        ("403 Forbidden", "", "token SECRET-4321+x/y= expired", "'token ••• expired'"),
        ("503 Busy", "", "\(String(repeating: "x", count: 190))/ws?token=SECRET-1234&a=b", "/ws?•••"),
        ("500 of /ws?token=SECRET-1234&a=b", "", "Bearer SECRET-5678", "500 of /ws?•••. It answered: '•••'"),
        ("500 Oops", "", "Cookie: id=SECRET-9012; a=b", "'Cookie: •••'"),
        ("500 Oops", "", "id is SECRET-9012, a is b", "'id is •••, a is b'"),
        ("403 Forbidden", "", "no user has SECRET-7777==", "'no user has •••'"),
        ("403 Forbidden", "", "no user has SECRET-7777", "'no user has •••'"),
        ("403 Forbidden", "", "sig=SECRET-8888%2B%3D", "'•••'"),
        ("403 Forbidden", "", "SECRET-8888+= is not the signature", "'••• is not the signature'"),
        ("401 No", "WWW-Authenticate: Bearer error=\"SECRET-5678 expired\"\r\n", "", "(Bearer error=\"••• expired\")"),
    ])
    func `an answer that repeats secrets of the request does not get them into the error`(
        status: String, field: String, body: String, words: String
    ) async throws {
        let failure = try await refusal(
            "HTTP/1.1 \(status)\r\n\(field)Content-Length: \(body.utf8.count)\r\n\r\n\(body)",
            target: "/ws?token=SECRET-1234&a=b" + (body.contains("4321") ? "&sig=SECRET-4321%2Bx%2Fy%3D" : ""),
            headers: [
                ("Authorization", "Bearer SECRET-5678"), ("Cookie", "id=SECRET-9012; a=b"),
                ("Proxy-Authorization", "Basic SECRET-7777=="),
                ("X-Token", "SharedAccessSignature sr=x&sig=SECRET-8888%2B%3D&se=1"),
            ])
        #expect(failure?.code == .webSocketRefused)
        #expect(failure?.message.contains("SECRET") == false, "\(failure?.message ?? "none")")
        #expect(failure?.message.contains(words) == true, "\(failure?.message ?? "none")")
    }

    struct Advice: Sendable {
        let answer: String
        var target = "/ws"
        var headers: [String] = []
        let words: [String]
        var others: [String] = []
    }

    @Test(arguments: [
        Advice(
            answer: "401 No\r\nWWW-Authenticate: Bearer", headers: ["authorization"],
            words: ["requires credentials (Bearer).", "refused those in the header Authorization", "expired"],
            others: ["Set the header"]),
        Advice(
            answer: "401 No", words: ["requires credentials. Set the header Authorization in the WebSocket options."],
            others: ["()", "query"]),
        Advice(
            answer: "401 No", target: "/ws?token=x",
            words: ["Set the header Authorization", "query of the URL", "expired"]),
        Advice(answer: "400 Bad Request", words: ["A proxy in front", "Upgrade and Connection"]),
        Advice(answer: "426 Upgrade Required", words: ["A proxy in front", "Upgrade and Connection"]),
        Advice(answer: "503 Busy", words: ["answered: nothing."], others: ["proxy"]),
    ])
    func `the advice fits what was sent and what came back`(_ advice: Advice) async throws {
        let failure = try await refusal(
            "HTTP/1.1 \(advice.answer)\r\nContent-Length: 0\r\n\r\n", target: advice.target,
            headers: advice.headers.map { ($0, "Bearer abc") })
        #expect(failure?.code == .webSocketRefused)
        let message = failure?.message ?? "none"
        for word in advice.words { #expect(message.contains(word), "\(message)") }
        for word in advice.others { #expect(!message.contains(word), "\(message)") }
    }

    @Test(arguments: [
        ("401 Unauthorized", "WWW-Authenticate: Basic realm="),
        ("307 Temporary Redirect", "Location: wss://a.example/"), ("503 ", "Content-Length: 4000\r\n\r\n\u{1b}[31m"),
    ])
    func `what a server sends neither fills a log nor forges its lines`(status: String, field: String) async throws {
        let long = String(repeating: "x", count: 3_000)
        let failure = try await refusal("HTTP/1.1 \(status)\(long)\r\n\(field)\(long)\r\n\r\n")
        #expect(failure?.code == .webSocketRefused)
        let message = failure?.message ?? ""
        #expect((1..<700).contains(message.count), "\(message.count)")
        #expect(!message.unicodeScalars.contains { $0.value < 0x20 })
    }

    @Test(arguments: [
        (upgrade + "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n", "key"),
        (upgrade + "\r\n", "Sec-WebSocket-Accept"), ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "websocket"),
        ("220 mail.example ESMTP\r\n", "HTTP"), ("\u{20}\u{2}\u{0}\u{0}", "HTTP"), ("HTTP/1.1 40", "closed"),
    ])
    func `what is no handshake of a WebSocket fails at once`(answer: String, word: String) async throws {
        let failure = try await refusal(answer)
        #expect(failure?.code == .webSocketFailed, "\(failure?.message ?? "none")")
        #expect(failure?.message.contains(word) == true, "\(failure?.message ?? "none")")
    }

    /// nats-server before 2.10.24 and netty before 4.1.56 send these codes, which RFC 6455 section 7.4.1 forbids.
    @Test(arguments: [1005, 1006] as [UInt16])
    func `a close code that may not be sent is the end of the WebSocket and no other violation`(code: UInt16) throws {
        let layer = try WebSocketLayer(
            host: "localhost", port: 80, isSecure: false, target: "/ws", subprotocols: ["mqtt"],
            options: WebSocketOptions(), textMessages: nil)
        var (wire, plain): ([UInt8], [UInt8]) = ([], [])
        try layer.opened(at: 0, wire: &wire)
        let key = try #require(
            String(decoding: wire, as: UTF8.self).split(separator: "\r\n")
                .first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19))
        let answer =
            Self.upgrade + "Sec-WebSocket-Accept: \(WebSocketKey.accept(for: String(key)))\r\n\r\n"
        try layer.receive(Array(answer.utf8).span.bytes, at: 0, plain: &plain, wire: &wire)
        let close: [UInt8] = [0x88, 2, UInt8(code >> 8), UInt8(truncatingIfNeeded: code)]
        let error = #expect(throws: TransportError.self) {
            try layer.receive(close.span.bytes, at: 0, plain: &plain, wire: &wire)
        }
        #expect(error?.code == .webSocketClosed && error?.message.contains("\(code)") == true)
    }

    @Test func `a server that says nothing is given up at the deadline`() async throws {
        #expect(try await refusal(nil, timeout: 100_000_000) == TransportError(.timedOut, "too slow"))
    }

    /// What a client reports at its deadline of a server that sends `answer` and leaves the connection open.
    private func failureAtDeadline(_ answer: String, through proxy: ProxyServer? = nil) async throws -> TransportError?
    {
        let clock = try ManualClock()
        let pair = MemoryPair.make()
        let layer = try WebSocketLayer(
            host: "localhost", port: 80, isSecure: false, target: "/ws", subprotocols: ["mqtt"],
            options: WebSocketOptions(), textMessages: nil)
        let layers = LayerStack(
            try [proxy?.layer(to: "localhost", port: 80)].compactMap(\.self) + [layer],
            deadline: clock.loop.now + 10_000_000_000, timeout: TransportError(.timedOut, "too slow"))
        async let opening: TransportError? = {
            do throws(TransportError) {
                try await LayerHandshake.run(layers, over: pair.client, loop: clock.loop)
                return nil
            } catch {
                return error
            }
        }()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 1)
        defer { unsafe buffer.deallocate() }
        let isAsked = await eventually {
            if case .bytes = unsafe pair.server.read(into: buffer) { true } else { false }
        }
        #expect(isAsked)
        _ = unsafe Array(answer.utf8).withUnsafeBytes { unsafe pair.server.write(from: $0) }
        await clock.waitUntilQuiet()
        await clock.advance(by: .seconds(11))
        return await opening
    }

    @Test(arguments: [
        ("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\r\n", "Basic realm=\"x\""),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 70\r\n\r\nnot you", "'not you'"),
        ("HTTP/1.1 503 \r\nTransfer-Encoding: chunked\r\n\r\n7\r\nbusy no", "'busy no'"),
    ])
    func `a refusal whose body does not end is reported at the deadline`(answer: String, words: String) async throws {
        let failure = try await failureAtDeadline(answer)
        #expect(failure?.code == .webSocketRefused)
        #expect(failure?.message.contains(words) == true, "\(failure?.message ?? "none")")
    }

    @Test(arguments: ["", "HTTP/1.1 401 Unauthor", "HTTP/1.1 401 Unauthorized\r\n"])
    func `an answer without a whole head is too slow at the deadline`(answer: String) async throws {
        #expect(try await failureAtDeadline(answer) == TransportError(.timedOut, "too slow"))
    }

    @Test func `a proxy's refusal does not wait for the end of its body`() async throws {
        let proxy = ProxyServer(.http, endpoint: .host("proxy", port: 3128))
        #expect(try await failureAtDeadline("HTTP/1.1 403 No\r\n\r\n", through: proxy)?.code == .proxyRefused)
        let failure = try await failureAtDeadline("HTTP/1.1 200 Connected\r\n\r\n", through: proxy)
        #expect(failure == TransportError(.timedOut, "too slow"))
        let refusal = "HTTP/1.1 200 Connected\r\n\r\nHTTP/1.1 401 Unauthorized\r\n\r\n"
        #expect(try await failureAtDeadline(refusal, through: proxy)?.code == .webSocketRefused)
    }
}

/// Reads a request's head, answers, and ends the connection.
private struct FakeServerMachine: LinkMachine, ~Copyable {
    typealias AfterLock = SinkMachine.SinkAfterLock

    private let answer: String
    var output: [UInt8] = []
    var nextDeadline: Int64 { .max }
    var wantsClose = false
    var wantsReadingPaused: Bool { false }

    init(_ answer: String) {
        self.answer = answer
    }

    mutating func connectionOpened(at now: Int64, into afterLock: AfterLock) {}
    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: AfterLock) {}
    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: AfterLock) {}

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        guard text.utf8.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return 0 }
        output += Array(answer.utf8)
        wantsClose = true
        return bytes.byteCount
    }
}

import MessagingHTTPCore
import MessagingWire
import TestSupport
import Testing

@testable import MessagingWebSocketCore

/// What a server makes of a request.
struct RequestVector: Sendable, CustomTestStringConvertible {
    enum Expected: Sendable, Equatable {
        case accepted(String?)
        case refused(Int)
        case plain(String)
        case failed(HTTPError.Code)
        case nothing
    }

    var name: String
    var request: String
    var expected: Expected
    var testDescription: String { name }

    static let good = [
        "GET /mqtt?x=1 HTTP/1.1", "Host: Broker.example:9001", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: other, mqtt",
    ]

    static func with(_ index: Int, _ line: String?) -> String {
        var lines = good
        if index < lines.count { lines.remove(at: index) }
        if let line { lines.insert(line, at: min(index, lines.count)) }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    init(_ name: String, _ request: String, _ expected: Expected) {
        self.name = name
        self.request = request
        self.expected = expected
    }

    static let all: [RequestVector] = [
        RequestVector("the usual", with(9, nil), .accepted("mqtt")),
        RequestVector("as a browser asks", with(3, "Connection: keep-alive, Upgrade"), .accepted("mqtt")),
        RequestVector("whole URL", with(0, "GET http://broker.example/mqtt HTTP/1.1"), .accepted("mqtt")),
        RequestVector("upper case", with(2, "UPGRADE: WEBSOCKET"), .accepted("mqtt")),
        RequestVector("an origin that may", with(9, "Origin: http://localhost"), .accepted("mqtt")),
        RequestVector("extensions offered", with(9, "Sec-WebSocket-Extensions: permessage-deflate"), .accepted("mqtt")),
        RequestVector(
            "protocols in two fields", with(6, "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: mqtt"),
            .accepted("mqtt")),
        RequestVector("no protocol offered", with(6, nil), .refused(400)),
        RequestVector("no protocol that we speak", with(6, "Sec-WebSocket-Protocol: v12.stomp"), .refused(400)),
        RequestVector("protocol twice", with(6, "Sec-WebSocket-Protocol: mqtt, mqtt"), .refused(400)),
        RequestVector("protocol that is no token", with(6, "Sec-WebSocket-Protocol: m(q"), .refused(400)),
        RequestVector("an origin that may not", with(9, "Origin: http://evil.example"), .refused(403)),
        RequestVector("two origins", with(9, "Origin: http://localhost\r\nOrigin: http://localhost"), .refused(400)),
        RequestVector("another host", with(1, "Host: evil.example"), .refused(403)),
        RequestVector("no host", with(1, nil), .refused(400)),
        RequestVector("empty host", with(1, "Host:"), .refused(400)),
        RequestVector("two hosts", with(1, "Host: broker.example\r\nHost: broker.example"), .refused(400)),
        RequestVector("another path", with(0, "GET /other HTTP/1.1"), .refused(404)),
        RequestVector("path in other case", with(0, "GET /MQTT HTTP/1.1"), .refused(404)),
        RequestVector("no version", with(5, nil), .refused(426)),
        RequestVector("version 8", with(5, "Sec-WebSocket-Version: 8"), .refused(426)),
        RequestVector("versions 13 and 8", with(5, "Sec-WebSocket-Version: 13, 8"), .refused(426)),
        RequestVector("no key", with(4, nil), .refused(400)),
        RequestVector("short key", with(4, "Sec-WebSocket-Key: Zm9v"), .refused(400)),
        RequestVector("key that is no Base64", with(4, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ$=="), .refused(400)),
        RequestVector("two keys", with(4, good[4] + "\r\n" + good[4]), .refused(400)),
        RequestVector("POST", with(0, "POST /mqtt HTTP/1.1"), .refused(400)),
        RequestVector("HTTP/1.0", with(0, "GET /mqtt HTTP/1.0"), .refused(400)),
        RequestVector("Upgrade without Connection", with(3, nil), .refused(400)),
        RequestVector("a body", with(9, "Content-Length: 3"), .refused(400)),
        RequestVector("chunks", with(9, "Transfer-Encoding: chunked"), .refused(400)),
        RequestVector("an upgrade to something else", with(2, "Upgrade: h2c"), .plain("/mqtt")),
    ]
}

@Suite(.heavy) struct ServerHandshakeTests {
    private var policy: WebSocketServerPolicy {
        var policy = WebSocketServerPolicy()
        policy.paths = ["/mqtt"]
        policy.hosts = ["broker.example", "[::1]"]
        policy.origins = ["http://localhost"]
        policy.subprotocols = ["mqtt"]
        policy.requiresSubprotocol = true
        return policy
    }

    private func result(of vector: RequestVector, _ split: Split) -> RequestVector.Expected {
        var parser = HTTPRequestParser()
        do {
            for piece in split.pieces(of: text(vector.request)) { _ = try parser.receive(piece.span.bytes) }
            guard let head = parser.request else { return .nothing }
            guard head.fields.list("Upgrade", contains: "websocket") else { return .plain(head.path) }
            return .accepted(try policy.decide(try WebSocketUpgradeRequest(head)))
        } catch let refusal as WebSocketRefusal {
            return .refused(refusal.status)
        } catch let error as HTTPError {
            return .failed(error.code)
        } catch {
            return .nothing
        }
    }

    @Test(arguments: RequestVector.all)
    func `reads a request the same however it arrives`(vector: RequestVector) {
        for split in Split.allCases { #expect(result(of: vector, split) == vector.expected) }
    }

    private func head(_ request: String) throws -> HTTPRequestHead {
        var parser = HTTPRequestParser()
        _ = try parser.receive(text(request).span.bytes)
        return try #require(parser.request)
    }

    @Test func `shows what was asked for`() throws {
        let request = try WebSocketUpgradeRequest(try head(RequestVector.with(9, "Origin: http://localhost")))
        #expect(request.path == "/mqtt" && request.query == "x=1" && request.host == "Broker.example:9001")
        #expect(request.origin == "http://localhost" && request.subprotocols == ["other", "mqtt"])
    }

    @Test func `accepts with the answer of the specification`() throws {
        let request = try WebSocketUpgradeRequest(try head(RequestVector.with(9, nil)))
        var output: [UInt8] = []
        try request.accept(subprotocol: "mqtt", fields: ["Server": "x"], into: &output)
        let lines = [
            "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Protocol: mqtt", "Server: x", "", "",
        ]
        #expect(String(decoding: output, as: UTF8.self) == lines.joined(separator: "\r\n"))
    }

    @Test func `does not accept with a sub-protocol that was not offered, or with forged fields`() throws {
        let request = try WebSocketUpgradeRequest(try head(RequestVector.with(9, nil)))
        var output: [UInt8] = []
        #expect(throws: WebSocketError.self) { try request.accept(subprotocol: "v12.stomp", into: &output) }
        #expect(throws: WebSocketError.self) {
            try request.accept(subprotocol: nil, fields: ["X": "a\r\nY: b"], into: &output)
        }
        #expect(throws: WebSocketError.self) {
            try request.accept(subprotocol: nil, fields: ["upgrade": "x"], into: &output)
        }
        #expect(output.isEmpty)
    }

    @Test func `a refusal says why, closes, and names the version to use`() throws {
        var output: [UInt8] = []
        try WebSocketRefusal.wrongVersion.response.write(into: &output)
        let response = String(decoding: output, as: UTF8.self)
        #expect(response.hasPrefix("HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\nContent-Length: "))
        #expect(response.contains("\r\nSec-WebSocket-Version: 13\r\n"))
        #expect(response.hasSuffix("\r\n\r\nthis server supports only version 13 of the WebSocket protocol\n"))
    }

    @Test(arguments: [
        "http://127.0.0.1", "http://127.0.0.1:8080", "http://localhost:1", "HTTP://LOCALHOST", "http://[::1]:61614",
        "https://own.example",
    ])
    func `takes pages of this machine whatever their port, and those that are named`(origin: String) throws {
        #expect(
            try originPolicy.decide(try WebSocketUpgradeRequest(try head(RequestVector.with(9, "Origin: \(origin)"))))
                == "mqtt")
    }

    @Test(arguments: [
        "null", "http://elsewhere.example", "https://localhost", "http://localhost.elsewhere.example",
        "http://localhost:80@elsewhere.example", "http://localhost:", "http://localhost:x", "http://[::1", "http://",
        "http://127.0.0.1.elsewhere.example", "http://own.example", "http:/localhost", "file://",
    ])
    func `refuses all other pages with a sentence`(origin: String) throws {
        let request = try WebSocketUpgradeRequest(try head(RequestVector.with(9, "Origin: \(origin)")))
        let refusal = #expect(throws: WebSocketRefusal.self) { try originPolicy.decide(request) }
        #expect(refusal?.status == 403)
        #expect(refusal?.message.hasSuffix("may not connect to this server") == true)
    }

    private var originPolicy: WebSocketServerPolicy {
        var policy = WebSocketServerPolicy()
        policy.origins = ["https://own.example"]
        policy.acceptsLoopbackOrigins = true
        policy.subprotocols = ["mqtt"]
        return policy
    }

    @Test(arguments: [("[::1]:80", true), ("[::1]", true), ("[::2]:80", false), ("broker.example.evil", false)])
    func `hosts are compared without their ports`(host: String, isOurs: Bool) throws {
        let request = try WebSocketUpgradeRequest(try head(RequestVector.with(1, "Host: \(host)")))
        if isOurs {
            #expect(try policy.decide(request) == "mqtt")
        } else {
            #expect(throws: WebSocketRefusal.self) { try policy.decide(request) }
        }
    }

    @Test(arguments: [nil, "v11.stomp"] as [String?])
    func `both sides of the handshake understand each other`(subprotocol: String?) throws {
        let offered = ["v12.stomp", "v11.stomp", "v10.stomp"]
        var client = try WebSocketClientHandshake(
            WebSocketClientRequest(host: "::1", port: 61614, subprotocols: offered), keyBytes: text("0123456789abcdef"))
        var wire: [UInt8] = []
        try client.writeRequest(into: &wire)
        let request = try WebSocketUpgradeRequest(try head(String(decoding: wire, as: UTF8.self)))
        #expect(request.subprotocols == offered && request.host == "[::1]:61614")
        var answer: [UInt8] = []
        try request.accept(subprotocol: subprotocol, into: &answer)
        #expect(try client.receive(answer.span.bytes) == answer.count)
        guard case .accepted(let chosen, _) = client.outcome else {
            Issue.record("\(String(describing: client.outcome))")
            return
        }
        #expect(chosen == subprotocol)
    }
}

@Suite(.heavy) struct HandshakeCampaignTests {
    @Test func `damaged heads are read the same for every split, and never trap`() throws {
        var generator = SeededGenerator(seed: Campaign.seed &+ 3)
        for _ in 0..<Campaign.rounds(200_000) {
            var bytes = text(
                Bool.random(using: &generator)
                    ? RequestVector.all.randomElement(using: &generator)!.request
                    : ResponseVector.all.randomElement(using: &generator)!.response)
            guard !bytes.isEmpty, bytes.count < 1000 else { continue }
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            let pieces = bytes.randomPieces(using: &generator)
            try #require(serverSide([bytes]) == serverSide(pieces), "\(bytes)")
            try #require(try clientSide([bytes]) == clientSide(pieces), "\(bytes)")
        }
    }

    private func serverSide(_ pieces: [[UInt8]]) -> String {
        var parser = HTTPRequestParser()
        do {
            for piece in pieces { _ = try parser.receive(piece.span.bytes) }
            guard let head = parser.request else { return "nothing" }
            return "\(try WebSocketUpgradeRequest(head))"
        } catch {
            return "\(error)"
        }
    }

    private func clientSide(_ pieces: [[UInt8]]) throws -> String {
        var handshake = try WebSocketClientHandshake(
            WebSocketClientRequest(host: "h", subprotocols: ["mqtt"]), keyBytes: text("the sample nonce"), bodyLimit: 16
        )
        do throws(WebSocketHandshakeError) {
            for piece in pieces { _ = try handshake.receive(piece.span.bytes) }
            try handshake.streamEnded()
            return "\(String(describing: handshake.outcome))"
        } catch {
            return "\(error)"
        }
    }
}

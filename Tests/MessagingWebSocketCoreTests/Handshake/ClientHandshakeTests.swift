import MessagingHTTPCore
import MessagingWire
import TestSupport
import Testing

@testable import MessagingWebSocketCore

/// What a client makes of a response.
struct ResponseVector: Sendable, CustomTestStringConvertible {
    enum Expected: Sendable, Equatable {
        case accepted(String?)
        case refused(Int, body: String)
        case failed(WebSocketHandshakeError.Code)
        case nothing
    }

    var name: String
    var response: String
    var expected: Expected
    /// Bytes after the response that have to be left for the frames.
    var rest = 0
    /// Whether the stream ends after it.
    var ends = false
    var testDescription: String { name }

    static let upgrade = [
        "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    ]

    /// The good response with one line replaced or added.
    static func with(_ index: Int, _ line: String?) -> String {
        var lines = upgrade
        if index < lines.count { lines.remove(at: index) }
        if let line { lines.insert(line, at: min(index, lines.count)) }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    static let all: [ResponseVector] = [
        ResponseVector(name: "the usual", response: with(9, nil), expected: .accepted(nil)),
        ResponseVector(
            name: "sub-protocol", response: with(9, "Sec-WebSocket-Protocol: mqtt"), expected: .accepted("mqtt")),
        ResponseVector(
            name: "second sub-protocol", response: with(9, "sec-websocket-protocol:\tmqttv3.1 "),
            expected: .accepted("mqttv3.1")),
        ResponseVector(
            name: "frames behind it", response: with(9, nil) + "\u{1}\u{2}", expected: .accepted(nil), rest: 2),
        ResponseVector(name: "upper case", response: with(1, "UPGRADE: WebSocket"), expected: .accepted(nil)),
        ResponseVector(
            name: "list of tokens", response: with(2, "connection: keep-alive , UPGRADE"), expected: .accepted(nil)),
        ResponseVector(name: "no reason", response: with(0, "HTTP/1.1 101"), expected: .accepted(nil)),
        ResponseVector(name: "empty reason", response: with(0, "HTTP/1.1 101 "), expected: .accepted(nil)),
        ResponseVector(
            name: "empty extensions", response: with(9, "Sec-WebSocket-Extensions: "), expected: .accepted(nil)),
        ResponseVector(
            name: "interim responses first",
            response: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + with(9, nil),
            expected: .accepted(nil)),
        ResponseVector(name: "no Upgrade", response: with(1, nil), expected: .failed(.wrongUpgrade)),
        ResponseVector(name: "other Upgrade", response: with(1, "Upgrade: h2c"), expected: .failed(.wrongUpgrade)),
        ResponseVector(
            name: "two upgrades", response: with(1, "Upgrade: websocket, h2c"), expected: .failed(.wrongUpgrade)),
        ResponseVector(
            name: "Upgrade that only begins right", response: with(1, "Upgrade: websockets"),
            expected: .failed(.wrongUpgrade)),
        ResponseVector(name: "no Connection", response: with(2, nil), expected: .failed(.wrongUpgrade)),
        ResponseVector(
            name: "other Connection", response: with(2, "Connection: close"), expected: .failed(.wrongUpgrade)),
        ResponseVector(name: "no Accept", response: with(3, nil), expected: .failed(.wrongAccept)),
        ResponseVector(
            name: "wrong Accept", response: with(3, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp="),
            expected: .failed(.wrongAccept)),
        ResponseVector(
            name: "Accept in other case", response: with(3, "Sec-WebSocket-Accept: S3PPLMBiTxaQ9kYGzzhZRbK+xOo="),
            expected: .failed(.wrongAccept)),
        ResponseVector(name: "two Accepts", response: with(9, upgrade[3]), expected: .failed(.wrongAccept)),
        ResponseVector(
            name: "extension", response: with(9, "Sec-WebSocket-Extensions: permessage-deflate"),
            expected: .failed(.unofferedExtension)),
        ResponseVector(
            name: "foreign sub-protocol", response: with(9, "Sec-WebSocket-Protocol: v12.stomp"),
            expected: .failed(.wrongSubprotocol)),
        ResponseVector(
            name: "sub-protocol in other case", response: with(9, "Sec-WebSocket-Protocol: MQTT"),
            expected: .failed(.wrongSubprotocol)),
        ResponseVector(
            name: "two sub-protocols", response: with(9, "Sec-WebSocket-Protocol: mqtt, mqttv3.1"),
            expected: .failed(.wrongSubprotocol)),
        ResponseVector(
            name: "sub-protocol twice",
            response: with(9, "Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Protocol: mqtt"),
            expected: .accepted("mqtt")),
        ResponseVector(
            name: "sub-protocol twice, joined by a proxy", response: with(9, "Sec-WebSocket-Protocol: mqtt, mqtt"),
            expected: .accepted("mqtt")),
        ResponseVector(
            name: "two sub-protocols in two fields",
            response: with(9, "Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Protocol: mqttv3.1"),
            expected: .failed(.wrongSubprotocol)),
        ResponseVector(
            name: "HTTP/1.0", response: with(0, "HTTP/1.0 101 Switching Protocols"), expected: .failed(.wrongUpgrade)),
        ResponseVector(name: "HTTP/2", response: with(0, "HTTP/2 101 x"), expected: .failed(.notHTTP)),
        ResponseVector(name: "status of two digits", response: with(0, "HTTP/1.1 10 x"), expected: .failed(.notHTTP)),
        ResponseVector(name: "status with a sign", response: with(0, "HTTP/1.1 +10 x"), expected: .failed(.notHTTP)),
        ResponseVector(name: "another protocol", response: "SSH-2.0-x\r\n\r\n", expected: .failed(.notHTTP)),
        ResponseVector(
            name: "greeting of another protocol, without an end", response: "SSH-2.0-OpenSSH_9.2p1\r\n",
            expected: .failed(.notHTTP)),
        ResponseVector(name: "binary", response: "\u{0}\u{1}", expected: .failed(.notHTTP)),
        ResponseVector(
            name: "folded line", response: with(9, "X: a\r\n b"), expected: .failed(.malformedHead)),
        ResponseVector(name: "line without colon", response: with(9, "Nonsense"), expected: .failed(.malformedHead)),
        ResponseVector(name: "name with a space", response: with(9, "Upgrade : x"), expected: .failed(.malformedHead)),
        ResponseVector(name: "empty name", response: with(9, ": x"), expected: .failed(.malformedHead)),
        ResponseVector(name: "NUL in a value", response: with(9, "X: a\u{0}b"), expected: .failed(.malformedHead)),
        ResponseVector(name: "bare line feed", response: with(9, "X: a\nY: b"), expected: .failed(.malformedHead)),
        ResponseVector(
            name: "line feeds alone, as of a portal",
            response: "HTTP/1.1 302 Found\nLocation: http://portal.example/\r\nContent-Length: 2\n\nab",
            expected: .refused(302, body: "ab")),
        ResponseVector(name: "line feed after another protocol", response: "ERROR\n", expected: .failed(.notHTTP)),
        ResponseVector(name: "bare carriage return", response: with(9, "X: a\rb"), expected: .failed(.malformedHead)),
        ResponseVector(
            name: "too many bytes", response: with(9, "X: " + String(repeating: "x", count: 20_000)),
            expected: .failed(.headTooLarge)),
        ResponseVector(
            name: "too many fields", response: with(9, String(repeating: "X: y\r\n", count: 100)),
            expected: .failed(.headTooLarge)),
        ResponseVector(
            name: "endless interim responses",
            response: String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 1000), expected: .failed(.headTooLarge)),
        ResponseVector(
            name: "not found", response: "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnope!",
            expected: .refused(404, body: "nope!")),
        ResponseVector(
            name: "body up to its length", response: "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nab",
            expected: .refused(403, body: "ab")),
        ResponseVector(
            name: "body up to our limit", response: "HTTP/1.1 500 x\r\n\r\n0123456789abcdefghij",
            expected: .refused(500, body: "0123456789abcdef"), rest: 4),
        ResponseVector(
            name: "body up to the end", response: "HTTP/1.1 500 x\r\n\r\noops", expected: .refused(500, body: "oops"),
            ends: true),
        ResponseVector(
            name: "chunks", response: "HTTP/1.1 502 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            expected: .refused(502, body: "abc")),
        ResponseVector(
            name: "chunks cut off", response: "HTTP/1.1 502 x\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nabcdefghijk",
            expected: .refused(502, body: "abcdefghijk")),
        ResponseVector(
            name: "chunk of absurd size",
            response: "HTTP/1.1 502 x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffff\r\nab",
            expected: .refused(502, body: ""), rest: 2),
        ResponseVector(name: "no content", response: "HTTP/1.1 204 x\r\n\r\n", expected: .refused(204, body: "")),
        ResponseVector(
            name: "length below zero", response: "HTTP/1.1 400 x\r\nContent-Length: -5\r\n\r\n",
            expected: .refused(400, body: "")),
        ResponseVector(
            name: "head cut off", response: "HTTP/1.1 101 Switching", expected: .failed(.endedEarly), ends: true),
        ResponseVector(name: "nothing at all", response: "", expected: .failed(.endedEarly), ends: true),
        ResponseVector(name: "not yet whole", response: "HTTP/1.1 101 Switching Proto", expected: .nothing),
    ]
}

@Suite(.heavy) struct ClientHandshakeTests {
    private static let key = text("the sample nonce")

    private func result(of vector: ResponseVector, _ split: Split) throws -> (ResponseVector.Expected, consumed: Int) {
        var handshake = try WebSocketClientHandshake(
            WebSocketClientRequest(host: "h", subprotocols: ["mqtt", "mqttv3.1"]), keyBytes: Self.key, bodyLimit: 16)
        var consumed = 0
        do throws(WebSocketHandshakeError) {
            for piece in split.pieces(of: text(vector.response)) {
                consumed += try handshake.receive(piece.span.bytes)
            }
            if vector.ends { try handshake.streamEnded() }
        } catch {
            return (.failed(error.code), consumed)
        }
        switch handshake.outcome {
        case .accepted(let subprotocol, _): return (.accepted(subprotocol), consumed)
        case .refused(let response):
            return (.refused(response.status, body: String(decoding: response.body, as: UTF8.self)), consumed)
        case nil: return (.nothing, consumed)
        }
    }

    @Test(arguments: [
        ("", false, "serves WebSocket at this port and path. If it expects TLS at this port, use wss:// instead."),
        ("", true, "serves WebSocket at this port and path."),
        ("HTTP", false, "serves WebSocket at this port and path."),
    ])
    func `a server that ends its answer early may have no WebSocket at this port and path, or expect TLS`(
        answer: String, isSecure: Bool, words: String
    ) throws {
        var handshake = try WebSocketClientHandshake(
            WebSocketClientRequest(host: "h", isSecure: isSecure), keyBytes: Self.key)
        _ = try handshake.receive(Array(answer.utf8).span.bytes)
        let error = #expect(throws: WebSocketHandshakeError.self) { try handshake.streamEnded() }
        #expect(error?.message.hasSuffix(words) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [([0x15], false, true), ([0x15, 3, 3, 0, 2, 2, 50], false, true), ([0x15, 3, 3], true, false)])
    func `a TLS alert is answered with the scheme for TLS`(bytes: [UInt8], isSecure: Bool, isTold: Bool) throws {
        var handshake = try WebSocketClientHandshake(
            WebSocketClientRequest(host: "h", isSecure: isSecure), keyBytes: Self.key)
        let error = #expect(throws: WebSocketHandshakeError.self) { try handshake.receive(bytes.span.bytes) }
        #expect(error?.code == .notHTTP)
        #expect(error?.message.contains("(wss://)") == isTold, "\(error?.message ?? "")")
    }

    @Test func `a greeting of another protocol is answered with what to check`() throws {
        var handshake = try WebSocketClientHandshake(WebSocketClientRequest(host: "h"), keyBytes: Self.key)
        let greeting = Array("220 mail.example ESMTP\r\n".utf8)
        let error = #expect(throws: WebSocketHandshakeError.self) { try handshake.receive(greeting.span.bytes) }
        #expect(error?.code == .notHTTP)
        #expect(error?.message.hasSuffix("Check that it serves WebSocket at this port.") == true)
    }

    @Test(arguments: ResponseVector.all)
    func `reads a response the same however it arrives`(vector: ResponseVector) throws {
        for split in Split.allCases {
            let (result, consumed) = try result(of: vector, split)
            #expect(result == vector.expected)
            if case .failed = result { continue }
            #expect(consumed == vector.response.utf8.count - vector.rest)
        }
    }

    @Test func `writes the request of the specification`() throws {
        let request = WebSocketClientRequest(
            host: "server.example.com", target: "/chat", subprotocols: ["chat", "superchat"],
            fields: ["Origin": "http://example.com"])
        let handshake = try WebSocketClientHandshake(request, keyBytes: Self.key)
        var output: [UInt8] = []
        try handshake.writeRequest(into: &output)
        let lines = [
            "GET /chat HTTP/1.1", "Host: server.example.com", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: chat, superchat", "Origin: http://example.com", "", "",
        ]
        #expect(String(decoding: output, as: UTF8.self) == lines.joined(separator: "\r\n"))
    }

    @Test(
        arguments: [
            ("example.com", nil, false, "example.com"), ("example.com", 80, false, "example.com"),
            ("example.com", 443, false, "example.com:443"), ("example.com", 443, true, "example.com"),
            ("example.com", 80, true, "example.com:80"), ("127.0.0.1", 8080, false, "127.0.0.1:8080"),
            ("::1", 9001, false, "[::1]:9001"), ("[::1]", nil, false, "[::1]"),
            ("fe80::1%eth0", 1, true, "[fe80::1]:1"),
        ] as [(String, UInt16?, Bool, String)]
    )
    func `names the host with its port only where it is not the scheme's own`(
        host: String, port: UInt16?, isSecure: Bool, expected: String
    ) throws {
        #expect(try WebSocketClientRequest(host: host, port: port, isSecure: isSecure).authority() == expected)
    }

    @Test(
        arguments: [
            (WebSocketClientRequest(host: ""), WebSocketError.Code.invalidHost),
            (WebSocketClientRequest(host: "a b"), .invalidHost), (WebSocketClientRequest(host: "a/b"), .invalidHost),
            (WebSocketClientRequest(host: "a\r\nX: y"), .invalidHost),
            (WebSocketClientRequest(host: "bücher"), .invalidHost),
            (WebSocketClientRequest(host: "u@h"), .invalidHost), (WebSocketClientRequest(host: "h:80"), .invalidHost),
            (WebSocketClientRequest(host: "%"), .invalidHost),
            (WebSocketClientRequest(host: "h", target: ""), .invalidTarget),
            (WebSocketClientRequest(host: "h", target: "chat"), .invalidTarget),
            (WebSocketClientRequest(host: "h", target: "/a b"), .invalidTarget),
            (WebSocketClientRequest(host: "h", target: "/a#b"), .invalidTarget),
            (WebSocketClientRequest(host: "h", target: "/ü"), .invalidTarget),
            (WebSocketClientRequest(host: "h", target: "/ HTTP/1.1\r\nX: y"), .invalidTarget),
            (WebSocketClientRequest(host: "h", subprotocols: ["a", "a"]), .invalidSubprotocol),
            (WebSocketClientRequest(host: "h", subprotocols: ["a,b"]), .invalidSubprotocol),
            (WebSocketClientRequest(host: "h", subprotocols: [""]), .invalidSubprotocol),
            (WebSocketClientRequest(host: "h", fields: ["X": "a\r\nY: b"]), .invalidField),
            (WebSocketClientRequest(host: "h", fields: ["X Y": "a"]), .invalidField),
            (WebSocketClientRequest(host: "h", fields: ["": "a"]), .invalidField),
            (WebSocketClientRequest(host: "h", fields: ["host": "other"]), .invalidField),
            (WebSocketClientRequest(host: "h", fields: ["Sec-WebSocket-Extensions": "x"]), .invalidField),
        ]
    )
    func `refuses to write what would not be one proper request`(
        request: WebSocketClientRequest, code: WebSocketError.Code
    ) throws {
        let handshake = try WebSocketClientHandshake(request, keyBytes: Self.key)
        var output: [UInt8] = []
        let error = #expect(throws: WebSocketError.self) { try handshake.writeRequest(into: &output) }
        #expect(error?.code == code && output.isEmpty)
    }

    @Test func `refuses a key that is not 16 bytes`() {
        let error = #expect(throws: WebSocketError.self) {
            try WebSocketClientHandshake(WebSocketClientRequest(host: "h"), keyBytes: [1, 2, 3])
        }
        #expect(error?.code == .invalidKey)
    }

    @Test func `reports where a redirect points to and what a 401 challenges with`() throws {
        func refusal(_ response: String) throws -> WebSocketRefusedResponse? {
            var handshake = try WebSocketClientHandshake(WebSocketClientRequest(host: "h"), keyBytes: Self.key)
            _ = try handshake.receive(text(response).span.bytes)
            guard case .refused(let refusal) = handshake.outcome else { return nil }
            return refusal
        }
        let moved = try refusal("HTTP/1.1 302 Found\r\nLocation: wss://o/\r\nContent-Length: 0\r\n\r\n")
        #expect(moved?.location == "wss://o/" && moved?.reason == "Found")
        let challenged = try refusal(
            "HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=\"x\"\r\nwww-authenticate: Bearer\r\n"
                + "Location: /no\r\nContent-Length: 0\r\n\r\n")
        #expect(challenged?.authenticationChallenges == ["Basic realm=\"x\"", "Bearer"])
        #expect(challenged?.location == nil)
    }
}

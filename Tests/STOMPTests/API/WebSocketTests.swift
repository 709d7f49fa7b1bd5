import MessagingHTTPCore
import MessagingWebSocketCore
import TestSupport
import Testing
import Transport

@testable import STOMP
@testable import STOMPCore

/// STOMP over a WebSocket pays no heed to where messages of the WebSocket end.
@Suite(.turns) struct WebSocketTests {
    /// How a server cuts what it says.
    enum Cut: CaseIterable {
        /// Several frames in one message, which is text or not.
        case oneText, oneBinary
        /// One frame in many messages: of a byte each, and at random with empty ones between.
        case bytes, random
        /// One message whose fragments end anywhere.
        case fragments

        func send(_ bytes: [UInt8], over server: FakeWebSocket) throws {
            switch self {
            case .oneText: try server.send([bytes[...]], as: .text)
            case .oneBinary: try server.send([bytes[...]], as: .binary)
            case .bytes: for index in bytes.indices { try server.send([bytes[index...index]], as: .binary) }
            case .random: for piece in pieces(of: bytes) { try server.send([piece], as: .binary) }
            case .fragments: try server.send(pieces(of: bytes), as: .text)
            }
        }

        private func pieces(of bytes: [UInt8]) -> [ArraySlice<UInt8>] {
            var random = SeededGenerator(seed: Campaign.seed)
            var pieces: [ArraySlice<UInt8>] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                pieces.append(rest.prefix(Int.random(in: 0...20, using: &random)))
                rest.removeFirst(pieces.last?.count ?? 0)
            }
            return pieces
        }
    }

    private static let bodies = (0..<3).map { "\($0)\0é🛰\n" }

    @Test(arguments: Cut.allCases)
    func framesAreFoundHoweverTheyAreCut(cut: Cut) async throws {
        try await FakeWebSocket.withClient { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try cut.send(Array("CONNECTED\nversion:1.2\nserver:é/1\n\n\0\n".utf8), over: server)
            try await connecting
            async let subscribing = client.subscribe(to: "/topic/t")
            let asked = try await server.frame("SUBSCRIBE")
            var answer = "\nRECEIPT\nreceipt-id:\(header("receipt", of: asked))\n\n\0\n\r\n"
            for body in Self.bodies {
                answer += "MESSAGE\nsubscription:\(header("id", of: asked))\nmessage-id:1\ndestination:/topic/t\n"
                answer += "content-length:\(body.utf8.count)\nnaïve:\\c🛰\n\n\(body)\0\n"
            }
            try cut.send(Array(answer.utf8), over: server)
            let messages = try await subscribing.first(3)
            #expect(messages.map(\.text) == Self.bodies)
            #expect(messages.map { $0.header("naïve") } == [":🛰", ":🛰", ":🛰"])
            #expect(client.counters.connections == 1)
            try await server.end(with: client)
        }
    }

    /// RFC 6455 section 8.1, but RabbitMQ sends bodies of any bytes as text.
    @Test(arguments: [("other/1", true, false), ("RabbitMQ/3.10.8", true, true), ("other/1", false, true)])
    func textThatIsNotUTF8EndsTheConnectionUnlessItIsExpected(
        _ name: String, _ validates: Bool, _ isAccepted: Bool
    ) async throws {
        try await FakeWebSocket.withClient {
            $0.webSocket.validatesText = validates
            $0.reconnect = .never
        } _: { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try server.send([Array("CONNECTED\nversion:1.2\nserver:\(name)\n\n\0".utf8)[...]], as: .text)
            try await connecting
            async let subscribing = client.subscribe(to: "/topic/t")
            let asked = try await server.frame("SUBSCRIBE")
            try server.send([Array("RECEIPT\nreceipt-id:\(header("receipt", of: asked))\n\n\0".utf8)[...]], as: .text)
            let subscription = try await subscribing
            let head = "MESSAGE\nsubscription:\(header("id", of: asked))\nmessage-id:1\ndestination:/topic/t\n\n"
            server.sendUncheckedText(Array(head.utf8) + [0xFF, 0xFE, 0])
            if isAccepted {
                #expect(try await subscription.first(1).map(\.body) == [[0xFF, 0xFE]])
                try await server.end(with: client)
            } else {
                await #expect { _ = try await subscription.first(1) } throws: {
                    (($0 as? STOMPError)?.underlying as? TransportError)?.code == .webSocketFailed
                        && "\($0)".contains("UTF-8")
                }
            }
        }
    }

    /// ActiveMQ reads one frame of each message, and drops what follows it.
    @Test func `as text each frame is a message of its own, and only one that is not UTF-8 is binary`() async throws {
        try await FakeWebSocket.withClient { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try server.send([Array("CONNECTED\nversion:1.2\n\n\0".utf8)[...]], as: .text)
            try await connecting
            let before = server.kinds.count
            // Written at once.
            try client.core.link.perform { machine throws(STOMPUsageError) in
                for byte: UInt8 in [65, 0xFF, 66] {
                    try machine.engine.send(destination: "/queue/a", body: [byte], at: client.core.loop.now)
                }
            }
            for _ in 0..<3 { try await server.frame("SEND") }
            #expect(server.kinds[before...] == [.text, .binary, .text])
            try await server.end(with: client)
        }
    }

    /// As Tomcat is below Spring unless configured otherwise; Spring puts the messages together.
    private static let shortMessages = 8_192

    @Test func `a server that takes short messages gets a long frame in several, cut between characters`() async throws
    {
        try await FakeWebSocket.withClient(maximumMessageSize: Self.shortMessages) {
            $0.webSocket.maximumMessageSize = Self.shortMessages
        } _: { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try server.send([Array("CONNECTED\nversion:1.2\n\n\0".utf8)[...]], as: .text)
            try await connecting
            let before = server.kinds.count
            let text = String(repeating: "é🛰x", count: 3_000)
            for shift in 0..<7 {
                let body = String(repeating: "y", count: shift) + text
                try await client.send(body, to: "/app/a")
                #expect(try await server.frame("SEND").hasSuffix("\n\n" + body))
            }
            #expect(server.kinds[before...].count == 21 && server.kinds[before...].allSatisfy { $0 == .text })
            // Nor is the rest of a frame that is not UTF-8 lost.
            try await client.send([UInt8](repeating: 0xBF, count: 20_000), to: "/app/a")
            try await server.frame("SEND")
            #expect(server.kinds.count == before + 24 && server.kinds.last == .binary)
            try await server.end(with: client)
        }
    }

    @Test func `such a server ends the connection for a long message`() async throws {
        try await FakeWebSocket.withClient(maximumMessageSize: Self.shortMessages) {
            $0.reconnect = .never
        } _: { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try server.send([Array("CONNECTED\nversion:1.2\n\n\0".utf8)[...]], as: .text)
            try await connecting
            let messages = client.subscription(to: "/topic/a")
            try await server.frame("SUBSCRIBE")
            try await client.send(String(repeating: "x", count: 20_000), to: "/app/a")
            await #expect(throws: (any Error).self) { try await server.frame("SEND") }
            await #expect { for try await _ in messages {} } throws: { "\($0)".contains("1009") }
        }
    }

    @Test func `silence after binary messages is explained by servers that take only text`() async throws {
        let clock = try ManualClock()
        try await FakeWebSocket.withClient(clock: clock) {
            $0.reconnect = .never
            $0.webSocket.sendsText = false
        } _: { client, server in
            let connecting = Task { try await client.connect() }
            try await server.frame("CONNECT")
            await clock.advance(by: .seconds(60))
            await expectError(.timedOut, containing: "webSocket.sendsText") { try await connecting.value }
        }
    }

    /// RabbitMQ answers DISCONNECT by closing the WebSocket; its RECEIPT never comes.
    @Test func closeInsteadOfAReceiptIsAnOrderlyEnd() async throws {
        try await FakeWebSocket.withClient { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try server.send([Array("CONNECTED\nversion:1.2\n\n\0".utf8)[...]], as: .text)
            try await connecting
            // So long that the test would not end if the RECEIPT were waited for.
            client.core.link.perform { $0.engine.configuration.disconnectTimeout = 3_600_000_000_000 }
            try await withTimeout(.patience, "disconnecting") { try await server.end(with: client) }
            if case .disconnected(nil) = client.state {} else { Issue.record("\(client.state)") }
        }
    }

    private func header(_ name: String, of frame: String) -> Substring {
        frame.split(separator: "\n").first { $0.hasPrefix(name + ":") }?.dropFirst(name.count + 1) ?? ""
    }

    /// Spring serves STOMP without SockJS at the endpoint's path with `/websocket` behind it.
    @Test(arguments: ["/portfolio/websocket", "/app/portfolio/websocket?access_token=a%20b&x="])
    func `a path such as Spring's is asked for as it is written, with STOMP's sub-protocols`(path: String) async throws
    {
        try await FakeWebSocket.withClient(path: path) { client, server in
            async let connecting: Void = client.connect()
            try await server.frame("CONNECT")
            try server.send([Array("CONNECTED\nversion:1.2\n\n\0".utf8)[...]], as: .text)
            try await connecting
            #expect(server.request?.target == path)
            #expect(server.request?.fields.list("Sec-WebSocket-Protocol", contains: "v12.stomp") == true)
            try await server.end(with: client)
        }
    }
}

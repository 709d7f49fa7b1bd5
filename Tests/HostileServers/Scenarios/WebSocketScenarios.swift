import Foundation
import MQTT
import MessagingShell
import MessagingWebSocketCore
import STOMP

extension Peer {
    /// Reads a WebSocket request and accepts it with what it offers.
    func acceptWebSocket(_ subprotocol: String = "mqtt", accept: String? = nil) throws {
        var head = ""
        while !head.contains("\r\n\r\n") { head += String(decoding: try receive(), as: UTF8.self) }
        let key = head.split(whereSeparator: \.isNewline).first { $0.lowercased().hasPrefix("sec-websocket-key:") }
            .map { $0.split(separator: ":", maxSplits: 1)[1].trimmingCharacters(in: .whitespaces) }
        let answer = accept ?? WebSocketKey.accept(for: key ?? "")
        try send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(answer)\r\nSec-WebSocket-Protocol: \(subprotocol)\r\n\r\n")
    }
}

extension Scenario {
    static let webSocketAll: [Scenario] = [
        opening("never-accepts", serve: nil),
        opening("frozen") { try $0.freeze() },
        opening("closes-after-the-request") { _ = try $0.receive() },
        opening("half-closes-after-the-request") {
            _ = try $0.receive()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        opening("garbage") { try $0.flood([0xFF, 0x00, 0xAA]) },
        opening("endless-status-line") { try $0.flood(Array("HTTP/1.1 101".utf8)) },
        opening("endless-header-line") {
            try $0.send("HTTP/1.1 101 Switching Protocols\r\nX-Long: ")
            try $0.flood(Array("long".utf8))
        },
        opening("endless-head") {
            try $0.send("HTTP/1.1 101 Switching Protocols\r\n")
            try $0.flood(Array("X-More: yes\r\n".utf8))
        },
        opening("slow-loris-head") {
            try $0.drip(Array(("HTTP/1.1 101 Switching Protocols\r\n" + String(repeating: "X: y\r\n", count: 50)).utf8))
        },
        opening("endless-100-continue") { try $0.flood(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) },
        opening("refusal-with-an-endless-body") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n")
            try $0.flood(Array("4\r\nbody\r\n".utf8))
        },
        opening("redirects-to-itself") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
        },
        opening("wrong-accept") { try $0.acceptWebSocket(accept: "AAAAAAAAAAAAAAAAAAAAAAAAAAA=") },
        opening("wrong-subprotocol") { try $0.acceptWebSocket("telnet") },
        opening("frozen-after-the-upgrade") {
            try $0.acceptWebSocket()
            try $0.freeze()
        },
        opening("closes-half-after-the-upgrade") {
            try $0.acceptWebSocket()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        flood(
            "ping-flood-without-reading", [0x89, 125] + [UInt8](repeating: 1, count: 125), Bounds(memory: 12),
            reading: false),
        flood(
            "ping-flood-with-reading", [0x89, 125] + [UInt8](repeating: 1, count: 125), Bounds(seconds: 8, sent: .max)),
        flood("pong-flood", [0x8A, 0]),
        flood("empty-ping-flood-without-reading", [0x89, 0], reading: false),
        flood("close-flood", [0x88, 2, 0x03, 0xE8]),
        flood("empty-frames-forever", [0x82, 0]),
        flood("empty-fragments-forever", [0x00, 0], first: [0x02, 0]),
        flood("fragments-of-one-byte-forever", [0x00, 1, 0x20], first: [0x02, 1, 0x20]),
        flood("a-frame-of-8-exabytes", [0x20, 0, 0], first: [0x82, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7)),
        flood("length-with-the-highest-bit", [0], first: [0x82, 127] + [UInt8](repeating: 0xFF, count: 8)),
        flood("masked-frames", [0x82, 0x81, 1, 2, 3, 4, 5]),
        flood("reserved-opcode", [0x83, 0]),
        flood("reserved-bits", [0xF2, 0]),
        flood("text-frames-to-mqtt", [0x81, 1, 0x61]),
        flood("continuation-of-nothing", [0x80, 0]),
        stomp("invalid-utf8", act: .nothing, url: "ws://127.0.0.1:PORT/") {
            try $0.acceptWebSocket("v12.stomp")
            try $0.flood([0x81, 4, 0xFF, 0xC0, 0x80, 0x0A])
        }.named("websocket"),
        stomp("ping-flood-after-connected", Bounds(memory: 12, seconds: nil), url: "ws://127.0.0.1:PORT/") { peer in
            try peer.acceptWebSocket("v12.stomp")
            _ = try peer.receive()
            let connected = Array("CONNECTED\nversion:1.2\n\n\0".utf8)
            try peer.send([0x82, UInt8(connected.count)] + connected)
            try peer.flood([0x89, 125] + [UInt8](repeating: 1, count: 125), reading: false)
        }.named("websocket"),
        mqtt(
            "ping-flood-after-connack", Bounds(memory: 12, seconds: nil), act: .publishWithoutEnd,
            url: "ws://127.0.0.1:PORT/"
        ) { peer in
            try peer.acceptWebSocket()
            _ = try peer.receive()
            try peer.send([0x82, UInt8(MQTTBytes.connack.count)] + MQTTBytes.connack)
            try peer.flood([0x89, 125] + [UInt8](repeating: 1, count: 125), reading: false)
        }.named("websocket"),
    ]

    private static func opening(_ name: String, _ bounds: Bounds = .ends, serve: Listener.Script?) -> Scenario {
        mqtt(name, bounds, url: "ws://127.0.0.1:PORT/mqtt?token=x", serve: serve).named("websocket")
    }

    private static func flood(
        _ name: String, _ bytes: [UInt8], first: [UInt8] = [], _ bounds: Bounds = .ends, reading: Bool = true
    ) -> Scenario {
        opening(name, bounds) { peer in
            try peer.acceptWebSocket()
            try peer.send(first)
            try peer.flood(bytes, reading: reading)
        }
    }
}

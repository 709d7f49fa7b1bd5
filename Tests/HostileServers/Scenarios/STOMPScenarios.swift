import MessagingShell
import STOMP

extension Peer {
    /// Reads CONNECT and accepts it, with heart-beats of a second.
    func acceptSTOMP() throws {
        try expect("\0")
        try send("CONNECTED\nversion:1.2\nheart-beat:1000,1000\n\n\0")
    }
}

extension Scenario {
    static let stompAll: [Scenario] = [
        stomp("never-accepts", serve: nil),
        stomp("frozen-before-connected") { try $0.freeze() },
        stomp("closes-at-once") { _ in },
        stomp("resets-after-connect") {
            _ = try $0.receive()
            $0.reset()
        },
        stomp("half-closes-after-connect") {
            _ = try $0.receive()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        stomp("garbage") { try $0.send((0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 5) }) },
        stomp("zeros-forever") { try $0.flood([UInt8](repeating: 0, count: 4096)) },
        stomp("speaks-http") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        },
        stomp("slow-loris-connected") {
            _ = try $0.receive()
            try $0.drip(Array("CONNECTED\nversion:1.2\n\(String(repeating: "a:b\n", count: 100))\n\0".utf8))
        },
        stomp("endless-command") { try $0.flood(Array("CONNECTED".utf8)) },
        stomp("endless-header-line") {
            try $0.send("CONNECTED\nversion:")
            try $0.flood(Array("1.2".utf8))
        },
        stomp("endless-headers") {
            try $0.send("CONNECTED\n")
            try $0.flood(Array("a:b\n".utf8))
        },
        stomp("line-ends-forever-before-connected") { try $0.flood([0x0A]) },
        stomp("connected-without-version-12") {
            _ = try $0.receive()
            try $0.send("CONNECTED\nversion:9.9\n\n\0")
            try $0.freeze(reads: true)
        },
        stomp("connected-with-a-huge-heart-beat", .holds) {
            _ = try $0.receive()
            try $0.send("CONNECTED\nversion:1.2\nheart-beat:99999999999999999999,99999999999999999999\n\n\0")
            try $0.freeze(reads: true)
        },
        stomp("error-with-an-endless-body", Bounds(memory: 80)) {
            _ = try $0.receive()
            try $0.send("ERROR\nmessage:no\n\n")
            try $0.flood(Array("because ".utf8))
        },
        stomp("refuses-for-ever", Bounds(connections: 12, seconds: nil)) { configuration, _ in
            configuration.reconnect = ReconnectPolicy(firstConnectAttempts: nil)
        } serve: {
            _ = try $0.receive()
            try $0.send("ERROR\nmessage:busy\n\n\0")
        },
        stomp("closes-after-accepting-for-ever", Bounds(connections: 16, seconds: nil)) { configuration, _ in
            configuration.reconnect = ReconnectPolicy()
        } serve: {
            try $0.acceptSTOMP()
        },
        session("frozen-after-connected", .silence) { try $0.freeze() },
        session("frozen-while-sending", .silence, act: .publishWithoutEnd) { try $0.freeze() },
        session("frozen-while-sending-slowly", .silence, act: .publishSlowly) { try $0.freeze() },
        session("reads-without-answering", .ends, act: .publish) { try $0.freeze(reads: true) },
        session("half-closes-after-connected", .ends) {
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        session("garbage-after-connected", .ends) { try $0.flood([0xFF, 0x0A, 0xAA]) },
        session("does-not-end-after-disconnect", Bounds(seconds: 11), act: .disconnect) { try $0.freeze(reads: true) },
        session("connected-flood", .ends) { try $0.flood(Array("CONNECTED\nversion:1.2\n\n\0".utf8)) },
        session("error-flood", .ends) { try $0.flood(Array("ERROR\nmessage:no\n\n\0".utf8)) },
        session("receipt-flood", .holds) { try $0.flood(Array("RECEIPT\nreceipt-id:7\n\n\0".utf8)) },
        session("heart-beat-flood", .holds) { try $0.flood([0x0A]) },
        session("unknown-command-flood", Bounds(memory: 96, seconds: nil)) {
            try $0.flood(Array("PING\na:b\n\n\0".utf8))
        },
        session("message-flood-unmatched", .holds) {
            try $0.flood(Array("MESSAGE\nsubscription:99\nmessage-id:1\ndestination:/queue/a\n\nx\0".utf8))
        },
        session("message-flood-to-a-sleeping-reader", Bounds(memory: 200, seconds: nil), act: .subscribeAndSleep) {
            try $0.flood(message("x"))
        },
        session("message-flood-to-a-reader", Bounds(memory: 200, seconds: nil), act: .subscribe) {
            try $0.flood(message("x"))
        },
        session("message-with-a-million-headers", .ends, act: .subscribe) {
            try $0.send("MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/queue/a\n")
            try $0.flood(Array("a:b\n".utf8), times: 1_000_000)
        },
        session("message-with-an-endless-body", Bounds(memory: 80), act: .subscribe) {
            try $0.send("MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/queue/a\n\n")
            try $0.flood(Array("body".utf8))
        },
        session("message-of-4-exabytes", .ends, act: .subscribe) {
            try $0.send(
                "MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/queue/a\ncontent-length:4611686018427387904\n\n")
            try $0.flood(Array("body".utf8))
        },
        session("slow-loris-message", .holds, act: .subscribe) {
            try $0.drip(message(String(repeating: "x", count: 100)), every: .milliseconds(1500))
        },
        session("ten-million-destinations", Bounds(memory: 200, seconds: nil), act: .subscribe) { peer in
            var number = 0
            while true {
                let frames = (0..<1000).map { _ in
                    number += 1
                    return "MESSAGE\nsubscription:1\nmessage-id:\(number)\ndestination:/topic/\(number)\n\nx\0"
                }
                try peer.send(frames.joined())
                _ = try peer.receive(waiting: false)
            }
        },
    ]

    private static func message(_ body: String) -> [UInt8] {
        Array("MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/queue/a\n\n\(body)\0".utf8)
    }

    private static func session(
        _ name: String, _ bounds: Bounds, act: Act = .nothing, then: @escaping Listener.Script
    ) -> Scenario {
        stomp(name, bounds, act: act) { peer in
            try peer.acceptSTOMP()
            if act == .subscribe || act == .subscribeAndSleep {
                // The client asks for a receipt, which it is given.
                var text = ""
                while !text.contains("SUBSCRIBE") || !text.hasSuffix("\0") {
                    text += String(decoding: try peer.receive(), as: UTF8.self)
                }
                let receipt = text.split(separator: "\n").first { $0.hasPrefix("receipt:") }?.dropFirst(8)
                if let receipt { try peer.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0") }
            }
            try then(peer)
        }
    }
}

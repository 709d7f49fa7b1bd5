import Foundation
import MQTT

extension Scenario {
    /// Servers that misbehave before they accept the connection.
    static let mqttConnecting: [Scenario] = [
        mqtt("never-accepts", serve: nil),
        mqtt("frozen-before-connack") { try $0.freeze() },
        mqtt("frozen-before-connack-reading") { try $0.freeze(reads: true) },
        mqtt("closes-at-once") { _ in },
        mqtt("closes-after-connect") { _ = try $0.receive() },
        mqtt("resets-after-connect") {
            _ = try $0.receive()
            $0.reset()
        },
        mqtt("half-closes-after-connect") {
            _ = try $0.receive()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        mqtt("garbage") { try $0.send((0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 5) }) },
        mqtt("random-forever") { peer in
            var random = SystemRandomNumberGenerator()
            while true { try peer.send((0..<4096).map { _ in UInt8.random(in: 0...255, using: &random) }) }
        },
        mqtt("zeros-forever") { try $0.flood([UInt8](repeating: 0, count: 4096)) },
        mqtt("speaks-http") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        },
        mqtt("speaks-ssh") { try $0.send("SSH-2.0-OpenSSH_9.2\r\n") },
        mqtt("slow-loris-connack") {
            try $0.drip(MQTTBytes.packet(0x20, [0, 0, 100] + [UInt8](repeating: 0, count: 100)))
        },
        mqtt("connack-length-without-end") { try $0.flood([0x20, 0xFF, 0xFF, 0xFF, 0xFF]) },
        mqtt("connack-of-256-MB") { peer in
            _ = try peer.receive()
            try peer.send([0x20, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0])
            try peer.flood([UInt8](repeating: 0x26, count: 1024))
        },
        mqtt("connack-of-three-million-properties", Bounds(memory: 12)) { peer in
            _ = try peer.receive()
            let property: [UInt8] = [0x26, 0, 0, 0, 0]
            let count = 3_000_000
            let properties = MQTTBytes.length(count * property.count)
            try peer.send(
                [0x20] + MQTTBytes.length(2 + properties.count + count * property.count) + [0, 0] + properties)
            try peer.flood(property, times: count)
            try peer.freeze(reads: true)
        },
        mqtt("connack-of-a-reason-of-15-MB", Bounds(memory: 12)) { peer in
            _ = try peer.receive()
            // In parts: what the server holds would count as memory of the client, whose process is the same.
            let string = MQTTBytes.string(String(repeating: "x", count: 65_000))
            let property = [0x26] + string + string
            let count = 115
            let properties = MQTTBytes.length(count * property.count)
            try peer.send(
                [0x20] + MQTTBytes.length(2 + properties.count + count * property.count) + [0, 0x87] + properties)
            try peer.flood(property, times: count)
            try peer.freeze(reads: true)
        },
        mqtt("connack-twice") {
            try $0.acceptMQTT()
            try $0.flood(MQTTBytes.connack)
        },
        mqtt("connack-with-unlisted-reason") {
            _ = try $0.receive()
            try $0.send([0x20, 3, 0, 1, 0])
            try $0.freeze(reads: true)
        },
        mqtt("session-present-after-clean-start") {
            _ = try $0.receive()
            try $0.send([0x20, 3, 1, 0, 0])
            try $0.freeze(reads: true)
        },
        mqtt("pingresp-flood-before-connack") { try $0.flood(MQTTBytes.pingresp) },
        mqtt("publish-flood-before-connack") { try $0.flood(MQTTBytes.publish0) },
        mqtt("refuses-for-ever", Bounds(connections: 12, seconds: nil)) { configuration, _ in
            configuration.reconnect = ReconnectPolicy(firstConnectAttempts: nil)
        } serve: {
            _ = try $0.receive()
            try $0.send([0x20, 3, 0, 0x89, 0])
        },
    ]

    /// Redirections and authentication that never end.
    static let mqttRedirecting: [Scenario] = [
        mqtt("redirects-to-itself-in-connack", Bounds(connections: 24, seconds: nil), following) { peer in
            _ = try peer.receive()
            try peer.send(MQTTBytes.redirect(0x9C, to: "127.0.0.1"))
        },
        redirectsAfterAccepting("redirects-to-itself-after-accepting", 0x9C),
        redirectsAfterAccepting("moves-to-itself-after-accepting", 0x9D),
        mqtt("redirects-to-ten-thousand-servers", Bounds(connections: 24, seconds: nil), following) { peer in
            _ = try peer.receive()
            let names = String(repeating: "127.0.0.1:1 ", count: 5000)
            try peer.send(MQTTBytes.redirect(0x9C, to: names))
        },
        mqtt("redirects-to-nonsense", Bounds(connections: 12, seconds: nil), following) { peer in
            _ = try peer.receive()
            try peer.send(MQTTBytes.redirect(0x9D, to: ":::]//@?#"))
        },
        mqtt("redirects-one-that-does-not-follow") { peer in
            _ = try peer.receive()
            try peer.send(MQTTBytes.redirect(0x9C, to: "127.0.0.1"))
        },
        mqtt("auth-without-end-before-connack", .ends, authenticating) { peer in
            _ = try peer.receive()
            while true {
                try peer.send(MQTTBytes.auth)
                _ = try peer.receive()
            }
        },
        mqtt("auth-flood-before-connack", .ends, authenticating) { peer in
            _ = try peer.receive()
            try peer.flood(MQTTBytes.auth)
        },
        mqtt("auth-flood-to-a-slow-answer", .ends, slowlyAuthenticating) { peer in
            _ = try peer.receive()
            try peer.flood(MQTTBytes.auth)
        },
        mqtt("auth-flood-after-connack", .ends, slowlyAuthenticating) { peer in
            _ = try peer.receive()
            try peer.send(MQTTBytes.packet(0x20, [0, 0] + MQTTBytes.length(4) + [0x15] + MQTTBytes.string("x")))
            try peer.flood(MQTTBytes.auth)
        },
        mqtt("auth-without-a-method") { peer in
            _ = try peer.receive()
            try peer.flood(MQTTBytes.auth)
        },
        mqtt("frozen-in-auth", .ends, authenticating) { peer in
            _ = try peer.receive()
            try peer.send(MQTTBytes.auth)
            try peer.freeze(reads: true)
        },
    ]

    private static let following: @Sendable (inout MQTTConfiguration, Int) -> Void = { configuration, _ in
        configuration.followsRedirects = true
        configuration.reconnect = ReconnectPolicy(firstConnectAttempts: nil)
    }

    private static func redirectsAfterAccepting(_ name: String, _ reason: UInt8) -> Scenario {
        mqtt(name, Bounds(connections: 24, seconds: nil), following) { peer in
            try peer.acceptMQTT()
            let properties = [0x1C] + MQTTBytes.string("127.0.0.1")
            try peer.send(MQTTBytes.packet(0xE0, [reason] + MQTTBytes.length(properties.count) + properties))
        }
    }

    private static let authenticating: @Sendable (inout MQTTConfiguration, Int) -> Void = { configuration, _ in
        configuration.authentication = MQTTAuthentication(method: "x", begin: { [1] }, respond: { _ in [2] })
    }

    private static let slowlyAuthenticating: @Sendable (inout MQTTConfiguration, Int) -> Void = { configuration, _ in
        configuration.authentication = MQTTAuthentication(
            method: "x", begin: { [1] },
            respond: { _ in
                try await Task.sleep(for: .seconds(60))
                return [2]
            })
    }
}

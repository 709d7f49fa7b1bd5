import MessagingWebSocketCore
import MessagingWire
import Synchronization
import TestSupport
import Testing
import Transport

/// A peer that makes layers answer and takes none of the answers.
@Suite(.turns) struct AnswerFloodTests {
    /// Answers each byte with ten, and passes nothing on.
    private final class TalkativeLayer: ByteLayer {
        let isOpen: Bool
        let isFinished = false

        init(isOpen: Bool) { self.isOpen = isOpen }

        func opened(at now: Int64, wire: inout [UInt8]) {}
        func receive(_ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]) {
            wire.append(contentsOf: [UInt8](repeating: 7, count: bytes.byteCount * 10))
        }
        func send(_ plain: RawSpan, wire: inout [UInt8]) { plain.withUnsafeBytes { wire += $0 } }
        func close(wire: inout [UInt8]) {}
        func endReceived() {}
    }

    private func stack(_ layer: any ByteLayer) -> LayerStack {
        LayerStack([layer], deadline: .max, timeout: TransportError(.timedOut, "never"))
    }

    private func write(_ bytes: [UInt8], to stream: MemoryStream) -> Int {
        guard case .bytes(let count) = bytes.withUnsafeBytes({ stream.write(from: $0) }) else { return 0 }
        return count
    }

    private func readAll(_ stream: MemoryStream) -> [UInt8] {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case .bytes(let count) = buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
            all += buffer[..<count]
        }
        return all
    }

    @Test(arguments: SelectorKind.allCases)
    func `answers of layers count against the outbox, and reading pauses`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.bytesPerRead = 500 }
        pair.server.changeFaults { $0.capacity = 1_000 }
        let server = setting.link(Probe(), limit: 10_000)
        let layers = stack(TalkativeLayer(isOpen: true))
        try await LayerHandshake.run(layers, over: pair.server, loop: setting.loop)
        server.attach(pair.server, layers: layers)
        #expect(await eventually { server.probe.openings == 1 })
        let flood = [UInt8](repeating: 1, count: 100_000)
        #expect(write(flood, to: pair.client) == flood.count)
        try await pair.client.settle()
        // What is written, what is being written, and what waits: twice the limit and one read each.
        #expect(pair.client.progress.acknowledged <= 2 * (2_000 + 500) + 100)
        // The peer reads after all: everything is answered.
        pair.server.changeFaults { $0.capacity = 1 << 20 }
        var answered = 0
        let isComplete = await eventually {
            answered += readAll(pair.client).count
            return answered == flood.count * 10
        }
        #expect(isComplete, "\(answered)")
        server.dropConnection()
    }

    @Test(arguments: SelectorKind.allCases)
    func `a handshake stops reading while its answers are not taken`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        pair.client.changeFaults { $0.bytesPerRead = 500 }
        pair.server.changeFaults { $0.capacity = 1_000 }
        let handshake = LayerHandshake(
            serving: stack(TalkativeLayer(isOpen: false)), over: pair.server, loop: setting.loop)
        setting.loop.execute { handshake.start { _ in } }
        let flood = [UInt8](repeating: 1, count: 100_000)
        #expect(write(flood, to: pair.client) == flood.count)
        try await pair.client.settle()
        #expect(pair.client.progress.acknowledged <= 8_000)
        setting.loop.execute { handshake.cancel() }
    }

    @Test(arguments: SelectorKind.allCases, [WebSocketRole.client, .server])
    func `of pings that a peer does not read the answers to, one pong waits, and it is the newest`(
        selector: SelectorKind, role: WebSocketRole
    ) async throws {
        let setting = try Setting(selector, .memory)
        let pair = MemoryPair.make()
        let (peer, ours) = (pair.client, pair.server)
        ours.changeFaults { $0.capacity = 2_000 }
        let server = WebSocketServerLayer(WebSocketServerOptions([.init("mqtt")]))
        let client = try WebSocketLayer(
            host: "h", port: 80, isSecure: false, target: "/", subprotocols: ["mqtt"], options: WebSocketOptions(),
            textMessages: nil)
        let link = setting.link(Probe())
        let layers = stack(role == .client ? client : server)
        async let handshake: Void = LayerHandshake.run(layers, over: ours, loop: setting.loop)
        // The peer's side of the handshake, by hand.
        var wire: [UInt8] = []
        if role == .client {
            let hand = WebSocketServerLayer(WebSocketServerOptions([.init("mqtt")]))
            #expect(await eventually { ours.progress.written > 100 })
            var plain: [UInt8] = []
            let request = readAll(peer)
            try hand.receive(request.span.bytes, at: 0, plain: &plain, wire: &wire)
        } else {
            let hand = try WebSocketLayer(
                host: "h", port: 80, isSecure: false, target: "/", subprotocols: ["mqtt"],
                options: WebSocketOptions(), textMessages: nil)
            try hand.opened(at: 0, wire: &wire)
        }
        #expect(write(wire, to: peer) == wire.count)
        try await handshake
        link.attach(ours, layers: layers)
        #expect(await eventually { link.probe.openings == 1 })

        let count = 20_000
        var number = 0
        while number < count {
            var pings: [UInt8] = []
            for _ in 0..<100 {
                number += 1
                let payload = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - $0 * 8)) }
                // A client masks, here with zeros.
                pings += role == .server ? [0x89, 0x84, 0, 0, 0, 0] + payload : [0x89, 4] + payload
            }
            #expect(await eventually { peer.progress.written - peer.progress.acknowledged < 500_000 })
            #expect(write(pings, to: peer) == pings.count)
        }
        #expect(await eventually { peer.progress.acknowledged == peer.progress.written })
        // The pipe is full, and one pong waits behind it. The estimate of what layers add is part of the total.
        link.perform { $0.nextDeadline = MonotonicClock.now }
        #expect(await eventually { link.probe.timeouts.count == 1 })
        #expect(link.probe.progress.total < 2_000 + 300 + 1_024)
        var received: [UInt8] = []
        let newest = (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - $0 * 8)) }
        let isAnswered = await eventually {
            received += readAll(peer)
            guard received.count >= 10 else { return false }
            // Unmask what a client wrote.
            var payload = Array(received.suffix(4))
            if role == .client { for index in 0..<4 { payload[index] ^= received[received.count - 8 + index] } }
            return payload == newest
        }
        #expect(isAnswered)
        #expect(received.count < 4_000)
        link.dropConnection()
    }
}

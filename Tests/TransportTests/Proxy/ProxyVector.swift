import MessagingWire
import TestSupport
import Testing
import Transport

/// What became of a layer that was fed a proxy's answers.
struct ProxyOutcome: Equatable, Sendable {
    var wire: [UInt8] = []
    var plain: [UInt8] = []
    var isOpen = false
    var error: TransportError?
}

extension ProxyServer {
    /// Feeds `answers` to a new layer, whole, byte by byte and cut at random; all outcomes must be the same.
    func outcome(
        to host: String, port: UInt16 = 1883, _ answers: [UInt8], ends: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> ProxyOutcome {
        var random = SeededGenerator(seed: Campaign.seed)
        let whole = try run(host, port, [answers], ends)
        let single = try run(host, port, answers.map { [$0] }, ends)
        #expect(single == whole, sourceLocation: sourceLocation)
        for _ in 0..<10 {
            var pieces: [[UInt8]] = []
            var rest = answers[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...max(1, answers.count / 2), using: &random))
                pieces.append(Array(piece))
                rest = rest.dropFirst(piece.count)
            }
            #expect(try run(host, port, pieces, ends) == whole, sourceLocation: sourceLocation)
        }
        return whole
    }

    private func run(_ host: String, _ port: UInt16, _ pieces: [[UInt8]], _ ends: Bool) throws -> ProxyOutcome {
        let layer = try layer(to: host, port: port)
        var outcome = ProxyOutcome()
        do throws(TransportError) {
            try layer.opened(at: 0, wire: &outcome.wire)
            for piece in pieces {
                try layer.receive(piece.span.bytes, at: 0, plain: &outcome.plain, wire: &outcome.wire)
            }
            if ends { try layer.endReceived() }
        } catch {
            outcome.error = error
        }
        outcome.isOpen = layer.isOpen
        return outcome
    }
}

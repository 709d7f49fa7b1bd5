import MessagingWire
import TestSupport
import Testing

@testable import MessagingWebSocketCore

@Suite(.heavy) struct ConnectionCampaignTests {
    /// Frames of `sender` that mostly make sense.
    private func someFrames(from sender: WebSocketRole, using generator: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let opcode = ([0, 1, 2, 2, 8, 9, 10] as [UInt8]).randomElement(using: &generator)!
            let count = Int.random(in: 0...20, using: &generator)
            let payload =
                opcode == 8
                ? closing(UInt16.random(in: 998...1016, using: &generator))
                : opcode == 1 ? [UInt8](repeating: 0x61, count: count) : generator.bytes(count)
            bytes += frame(
                opcode, payload, from: sender, isFinal: UInt8.random(in: 0...3, using: &generator) > 0,
                key: generator.bytes(4), form: UInt8.random(in: 0...15, using: &generator) == 0 ? .sixtyFour : .shortest
            )
        }
        return bytes
    }

    @Test func `damaged frames end in messages or in a violation, the same for every split, and never in a trap`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        var small = WebSocketConfiguration()
        small.maximumFrameSize = 64
        small.maximumMessageSize = 100
        var violations = 0
        var frames = 0
        let full = Campaign.rounds(10_000_000)
        while frames < full {
            let receiver: WebSocketRole = Bool.random(using: &generator) ? .client : .server
            var bytes = someFrames(from: receiver.peer, using: &generator)
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                let at = Int.random(in: 0..<bytes.count, using: &generator)
                switch UInt8.random(in: 0...3, using: &generator) {
                case 0: bytes[at] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes[at] ^= 1 << UInt8.random(in: 0...7, using: &generator)
                case 2: bytes.removeSubrange(at..<min(bytes.count, at + 3))
                default: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: at)
                }
                if bytes.isEmpty { bytes = [0x82] }
            }
            frames += 3
            let whole = transcript(of: [bytes], role: receiver, configuration: small)
            if whole.violation != nil { violations += 1 }
            let pieces = bytes.randomPieces(using: &generator)
            guard transcript(of: pieces, role: receiver, configuration: small) == whole else {
                Issue.record("differs when split, seed \(Campaign.seed), \(receiver): \(bytes) as \(pieces)")
                return
            }
        }
        #expect(violations > 0)
    }

    @Test func `noise never traps`() {
        var generator = SeededGenerator(seed: Campaign.seed &+ 1)
        for _ in 0..<Campaign.rounds(1_000_000) {
            let bytes = generator.bytes(Int.random(in: 0...40, using: &generator))
            let role: WebSocketRole = Bool.random(using: &generator) ? .client : .server
            _ = transcript(of: [bytes], role: role, configuration: .byteStream(acceptsText: true))
        }
    }

    @Test func `what is written is read, in messages of any size, kind and fragmentation`() throws {
        var generator = SeededGenerator(seed: Campaign.seed &+ 2)
        for round in 0..<Campaign.rounds(20_000) {
            let sender: WebSocketRole = Bool.random(using: &generator) ? .client : .server
            var configuration = WebSocketConfiguration()
            configuration.outgoingFrameSize = Int.random(in: 1...300, using: &generator)
            var connection = WebSocketConnection(role: sender, configuration: configuration)
            var output: [UInt8] = []
            var expected: [UInt8] = []
            var messages: [WebSocketEvents.Message] = []
            for _ in 0..<5 {
                let isText = Bool.random(using: &generator)
                let count = Int.random(in: 0...400, using: &generator)
                let payload =
                    isText
                    ? text(String(repeating: "aé€😀".randomElement(using: &generator)!, count: count))
                    : generator.bytes(count)
                try connection.send(payload.span.bytes, as: isText ? .text : .binary, into: &output, using: &generator)
                expected += payload
                messages.append(WebSocketEvents.Message(kind: isText ? .text : .binary, byteCount: payload.count))
            }
            let result = transcript(of: output.randomPieces(using: &generator), role: sender.peer)
            try #require(result.plaintext == expected && result.events.messages == messages, "round \(round)")
            try #require(result.violation == nil && result.phase == .open)
        }
    }
}

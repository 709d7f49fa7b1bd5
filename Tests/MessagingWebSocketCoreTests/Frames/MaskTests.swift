import TestSupport
import Testing

@testable import MessagingWebSocketCore

@Suite(.heavy) struct MaskTests {
    @Test func `masks like the definition, at every length and every cut`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        for count in 0..<70 {
            let key = generator.bytes(4)
            let bytes = generator.bytes(count)
            let expected = bytes.enumerated().map { $1 ^ key[$0 % 4] }
            for cut in 0...count {
                var masked = bytes
                var mask = WebSocketMask(littleEndian: key.reversed().reduce(0) { $0 << 8 | UInt32($1) })
                masked.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[..<cut])) }
                masked.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[cut...])) }
                #expect(masked == expected)
            }
        }
    }
}

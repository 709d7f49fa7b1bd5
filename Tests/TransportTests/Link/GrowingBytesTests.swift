import TestSupport
import Testing
import Wire

@testable import Transport

/// A packet that arrives in parts costs little more than what has arrived.
@Suite struct GrowingBytesTests {
    @Test func takesAnEighthMoreThanHasArrivedAtMost() {
        let part = [UInt8](repeating: 7, count: 512 << 10)
        var bytes = GrowingBytes()
        for number in 1...128 {
            bytes.append(part.span.bytes)
            #expect(bytes.count == number * part.count)
            #expect(bytes.capacity <= bytes.count + bytes.count / 8)
        }
    }

    @Test(arguments: [0, 1, (1 << 20) - 1, 1 << 20, 3_500_000])
    func `moves its bytes to an array and is empty then`(count: Int) {
        var random = SeededGenerator(seed: Campaign.seed)
        // A length that no power of two is a multiple of, so that no two parts are the same.
        let pattern = random.bytes(4_099)
        var expected: [UInt8] = []
        while expected.count < count { expected += pattern.prefix(count - expected.count) }
        var bytes = GrowingBytes()
        bytes.append(expected.span.bytes)
        #expect(bytes.takeArray() == expected)
        #expect(bytes.isEmpty && bytes.capacity == 0)
        bytes.append(expected.span.bytes)
        #expect(bytes.withBytes { $0.copied } == expected)
    }

    @Test func keepsWhatIsAppendedAndForgetsWhatIsRemoved() {
        var random = SeededGenerator(seed: Campaign.seed)
        var bytes = GrowingBytes()
        var expected: [UInt8] = []
        for _ in 0..<200 {
            let part = random.bytes(Int.random(in: 0...3_000, using: &random))
            bytes.append(part.span.bytes)
            expected += part
            let gone = Int.random(in: 0...min(2_900, expected.count), using: &random)
            bytes.removeFirst(gone)
            expected.removeFirst(gone)
            #expect(bytes.withBytes { $0.copied } == expected)
        }
    }
}

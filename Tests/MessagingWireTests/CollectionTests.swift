import TestSupport
import Testing

@testable import MessagingWire

@Suite struct CollectionTests {
    @Test func `a ring behaves as an array does`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        var ring = Ring<Int>()
        var array: [Int] = []
        for step in 0..<5_000 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<4:
                ring.append(step)
                array.append(step)
            case 4:
                ring.prepend(step)
                array.insert(step, at: 0)
            case 5 where !array.isEmpty:
                let position = Int.random(in: 0..<array.count, using: &generator)
                ring[position] = -step
                array[position] = -step
            default:
                #expect(ring.popFirst() == (array.isEmpty ? nil : array.removeFirst()))
            }
            #expect(ring.count == array.count && ring.first == array.first)
            #expect(ring.isEmpty == array.isEmpty)
        }
        #expect((0..<ring.count).map { ring[$0] } == array)
        ring.removeAll()
        #expect(ring.isEmpty && ring.popFirst() == nil)
    }

    @Test func `names are equal only if their bytes are`() {
        let composed = "caf\u{E9}"
        let decomposed = "cafe\u{301}"
        #expect(composed == decomposed)
        #expect(!composed.hasSameBytes(as: decomposed))
        #expect(ByteKey(composed) != ByteKey(decomposed))
        #expect(Set([ByteKey(composed), ByteKey(decomposed), ByteKey("caf" + "\u{E9}")]).count == 2)
        #expect(ByteKey("abc").hashValue == ByteKey(String("abcd".dropLast())).hashValue)
        #expect("a".hasSameBytes(as: String(Substring("xa").dropFirst())))
    }

    @Test func `deadlines stop at never instead of overflowing`() {
        #expect(Int64(5).advanced(byNanoseconds: 7) == 12)
        #expect(Int64(5).advanced(byNanoseconds: -7) == -2)
        #expect(Int64.max.advanced(byNanoseconds: 1) == .max)
        #expect((Int64.max - 3).advanced(byNanoseconds: 4) == .max)
        #expect(Int64.min.advanced(byNanoseconds: -1) == .min)
        #expect(Duration.seconds(1.5).inNanoseconds == 1_500_000_000)
        #expect(Duration.seconds(Int64.max).inNanoseconds == .max)
        #expect(Duration.seconds(-Int64.max).inNanoseconds == .min)
    }
}

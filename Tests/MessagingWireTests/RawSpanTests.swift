import TestSupport
import Testing

@testable import MessagingWire

@Suite struct RawSpanTests {
    @Test func `finds the first of one or two bytes as a plain loop does, in every range`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<400 {
            // Few different bytes, so that there are matches, and those whose highest bit or neighbours mislead.
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                [UInt8(0), 1, 9, 10, 11, 0x8A, 0xFF].randomElement(using: &generator)!
            }
            let span = bytes.span.bytes
            let start = Int.random(in: 0...bytes.count, using: &generator)
            let end = Int.random(in: start...bytes.count, using: &generator)
            let one = span.firstOffset(of: 10, from: start, to: end)
            #expect(one == bytes[start..<end].firstIndex(of: 10))
            let either = span.firstOffset(of: 10, or: 0, from: start, to: end)
            #expect(either == bytes[start..<end].firstIndex { $0 == 10 || $0 == 0 })
        }
    }

    @Test func `compares stretches of any length and notices any single difference`() {
        for count in 0...100 {
            var bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            bytes += bytes
            #expect(verdicts(bytes, count) == [true, true, true])
            for position in 0..<count {
                bytes[position] ^= 0x80
                #expect(verdicts(bytes, count) == [false, false, false])
                bytes[position] ^= 0x80
            }
        }
    }

    /// What the three comparisons report of the first and the second half of the bytes.
    private func verdicts(_ bytes: [UInt8], _ count: Int) -> [Bool] {
        let span = bytes.span.bytes
        return [
            span.isEqualUnchecked(0, count, count: count), span.isEqual(at: count, to: span.extracting(0..<count)),
            span.isEqual(0, count, to: span, at: count),
        ]
    }

    @Test func `a comparison beyond the end is false`() {
        let bytes = Array("content-length".utf8)
        let span = bytes.span.bytes
        let found = [span.holds("content-length", at: 0), span.holds("length", at: 8)]
        #expect(found == [true, true])
        let length = Array("length".utf8)
        let notFound = [
            span.holds("length:", at: 8), span.holds("content-lengtx", at: 0),
            span.isEqual(at: 9, to: length.span.bytes),
        ]
        #expect(notFound == [false, false, false])
    }

    @Test func `reads integers in both orders at any address`() {
        let bytes: [UInt8] = [0xFF, 1, 2, 3, 4, 5, 6, 7, 8]
        let span = bytes.span.bytes
        let two = span.bigEndian(UInt16.self, at: 1)
        let four = span.bigEndian(UInt32.self, at: 1)
        let reversed = span.littleEndian(UInt32.self, at: 1)
        let word = span.word(at: 1)
        #expect(two == 0x0102 && four == 0x0102_0304 && reversed == 0x0403_0201 && word == 0x0807_0605_0403_0201)
        let part = span.bytes(in: 1..<3)
        #expect(part == [1, 2])
    }

    @Test func `text is checked, and only whole characters are UTF-8`() {
        let bytes = Array("grüße, 🚗".utf8)
        let span = bytes.span.bytes
        let (whole, cut) = (span.text(in: 0..<bytes.count), span.text(in: 3..<bytes.count))
        #expect(whole == "grüße, 🚗" && cut == nil)
        let verdicts = [span.isUTF8(from: 0, to: bytes.count), span.isUTF8(from: 0, to: bytes.count - 1)]
        #expect(verdicts == [true, false])
    }
}

import TestSupport
import Testing

@testable import MessagingWire

@Suite(.heavy) struct UTF8ValidatorTests {
    private func verdict(_ bytes: [UInt8]) -> (bad: Int?, isWhole: Bool) {
        var validator = UTF8Validator()
        let bad = validator.check(bytes.span.bytes)
        return (bad, validator.isAtBoundary)
    }

    @Test func `agrees with the standard library on every pair and many longer sequences`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        func check(_ bytes: [UInt8]) {
            let (bad, isWhole) = verdict(bytes)
            #expect((bad == nil && isWhole) == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
        }
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max { check([first, second]) }
        }
        let telling: [UInt8] = [
            0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
            0xEF,
            0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
        ]
        for _ in 0..<Campaign.rounds(1_000_000) {
            check((0..<Int.random(in: 3...5, using: &generator)).map { _ in telling.randomElement(using: &generator)! })
        }
    }

    @Test func `takes every scalar, cut anywhere`() {
        var validator = UTF8Validator()
        for value in stride(from: UInt32(0), through: 0x10FFFF, by: 7) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            for byte in String(scalar).utf8 {
                guard validator.check([byte].span.bytes) == nil else {
                    Issue.record("U+\(String(value, radix: 16)) was refused")
                    return
                }
            }
            guard validator.isAtBoundary else {
                Issue.record("U+\(String(value, radix: 16)) did not end")
                return
            }
        }
    }

    @Test(
        arguments: [
            ("ce ba e1 bd b9 cf 83 ce bc ce b5 ed a0 80 65", 12), ("f4 90 80 80", 1), ("c0 af", 0), ("e0 80 af", 1),
            ("f0 80 80 af", 1), ("41 42 43 44 45 46 47 48 49 ff", 9), ("80", 0), ("c3 28", 1), ("f0 9f 98 28", 3),
        ]
    )
    func `names the first byte that cannot be`(hex: String, offset: Int) {
        #expect(verdict([UInt8](hex: hex)).bad == offset)
    }

    @Test(arguments: ["c3", "e2 82", "f0 9f 98", "41 41 41 41 41 41 41 41 e2"])
    func `knows that a character has not ended`(hex: String) {
        let (bad, isWhole) = verdict([UInt8](hex: hex))
        #expect(bad == nil && !isWhole)
    }
}

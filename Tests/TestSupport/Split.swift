/// How the input of a decoder is divided into calls of `receive`.
package enum Split: Sendable, Hashable, CaseIterable {
    case whole, byByte, random, randomAgain

    package func pieces(of bytes: [UInt8]) -> [[UInt8]] {
        switch self {
        case .whole: return [bytes]
        case .byByte: return bytes.map { [$0] }
        case .random, .randomAgain:
            var generator = SeededGenerator(seed: Campaign.seed ^ UInt64(bytes.count) ^ (self == .random ? 0 : 99))
            return bytes.randomPieces(using: &generator)
        }
    }
}

extension [UInt8] {
    /// Cuts anywhere; pieces may be empty, most are short.
    package func randomPieces(using generator: inout SeededGenerator) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var start = 0
        while start < count {
            let longest = Bool.random(using: &generator) ? 5 : count
            let end = Swift.min(count, start + Int.random(in: 0...longest, using: &generator))
            pieces.append(Array(self[start..<end]))
            start = end
        }
        return pieces
    }
}

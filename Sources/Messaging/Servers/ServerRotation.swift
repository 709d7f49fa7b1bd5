/// Which of several servers is tried next, without a clock or a connection: rounds in which each has its turn.
package struct ServerRotation: Sendable {
    private let count: Int
    private let kind: ServerOrder.Kind
    private var seed: UInt64
    private var round: [Int] = []
    private var position = 0
    /// Of the connection that was lost last: comes first, as long as no other works.
    private var proven: Int?

    /// - Parameter count: none counts as one, whose absence is reported by whoever opens it.
    package init(count: Int, order: ServerOrder) {
        self.count = max(1, count)
        kind = order.kind
        seed = if case .seeded(let seed) = order.kind { seed } else { 0 }
        beginRound(last: nil)
    }

    /// The place in the list of the server whose turn it is.
    package var current: Int { round[position] }

    /// It failed: the next one has its turn.
    ///
    /// - Returns: false when that was the last of the round, and another round begins.
    package mutating func failed() -> Bool {
        if position + 1 < round.count {
            position += 1
            return true
        }
        beginRound(last: nil)
        return false
    }

    /// Its connection was lost: a round begins.
    ///
    /// - Parameter held: whether the connection had been of use.
    package mutating func lost(held: Bool) {
        let server = current
        proven = held ? server : nil
        beginRound(last: held ? nil : server)
    }

    private mutating func beginRound(last: Int?) {
        position = 0
        round = Array(0..<count)
        switch kind {
        case .listed: break
        case .shuffled: round.shuffle()
        case .seeded:
            var generator = SplitMix(state: seed)
            round.shuffle(using: &generator)
            seed = generator.state
        }
        if let proven {
            round.removeAll { $0 == proven }
            round.insert(proven, at: 0)
        } else if let last {
            round.removeAll { $0 == last }
            round.append(last)
        }
    }
}

/// A small generator whose whole state is its seed.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// SplitMix64: a small generator whose whole state is its seed.
package struct SplitMix: RandomNumberGenerator, Sendable {
    package private(set) var state: UInt64

    package init(state: UInt64) { self.state = state }

    /// A generator of its own for the part `number` of what has this seed.
    package init(seed: UInt64, part number: UInt64) {
        var first = SplitMix(state: seed)
        var second = SplitMix(state: first.next() ^ number)
        state = second.next()
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, `bound`, which is positive.
    package mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: next() % UInt64(bound)) }
}

/// Random numbers for what lives on a loop: the system's, or in a simulation those that follow from its seed.
package struct LoopRandom: RandomNumberGenerator {
    private let world: (any LoopWorld)?

    package init(_ world: (any LoopWorld)? = nil) { self.world = world }

    package mutating func next() -> UInt64 {
        if let world { return world.nextRandom() }
        var system = SystemRandomNumberGenerator()
        return system.next()
    }
}

extension EventLoop {
    /// Random numbers for what lives on this loop.
    package var random: LoopRandom { LoopRandom(manualTime?.world) }
}

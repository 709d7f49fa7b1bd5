/// What vectors become by small changes, from a seed: inputs that a peer might send.
struct Mutations {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    /// A number below `bound`, which is not 0.
    mutating func next(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(truncatingIfNeeded: state >> 33) % bound
    }

    /// The bytes with one to four of them changed, removed, inserted or repeated.
    mutating func change(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0...next(4) {
            let place = next(bytes.count + 1)
            switch next(4) {
            case 0 where place < bytes.count: bytes[place] = UInt8(next(256))
            case 1 where place < bytes.count: bytes.remove(at: place)
            case 2: bytes.insert([0, 1, 0x7F, 0x80, 0xFF, UInt8(next(256))][next(6)], at: place)
            default: bytes += bytes.prefix(next(9))
            }
        }
        return bytes
    }
}

/// Writes down a state for ``ExhaustiveSearch``: small numbers, and identifiers under names that are given in the order of
/// their first appearance, so that states that differ by the numbers of their identifiers alone are equal.
public struct StateWriter {
    private var names: [UInt64] = []
    private var low: UInt64 = 0xCBF2_9CE4_8422_2325
    private var high: UInt64 = 0x6C62_272E_07BB_0142

    public init() {}

    /// The state that was written; two states have the same key by accident once in 2^64 pairs and less.
    public var key: StateKey { StateKey(low: low, high: high) }

    /// Appends a number from -1 to 254.
    public mutating func put(_ value: Int) {
        precondition((-1...254).contains(value), "\(value) does not fit in a byte")
        put(byte: UInt8(value + 1))
    }

    public mutating func put(_ value: Bool) { put(byte: value ? 1 : 0) }

    /// Appends the flags as the bits of a number.
    public mutating func put(_ flags: Bool...) {
        put(flags.reduce(0) { $0 << 1 | ($1 ? 1 : 0) })
    }

    public mutating func put(byte: UInt8) {
        low = (low ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        high = (high ^ UInt64(byte)) &* 0x9E37_79B9_7F4A_7C15
        high ^= high >> 29
    }

    public mutating func put(bytes: some Collection<UInt8>) {
        put(bytes.count)
        for byte in bytes { put(byte: byte) }
    }

    public mutating func put(_ values: [Int]) {
        put(values.count)
        for value in values { put(value) }
    }

    /// Appends the name of an identifier.
    public mutating func put(name identifier: UInt64) { put(name(of: identifier)) }

    /// Appends the names of identifiers whose order means nothing.
    public mutating func put(namesOf identifiers: [UInt64]) {
        put(identifiers.map { name(of: $0) }.sorted())
    }

    /// Appends the name of an identifier that may not be in use: -1 if it has no name yet, and it gets none.
    public mutating func put(nameIfKnown identifier: UInt64) {
        put(names.firstIndex(of: identifier) ?? -1)
    }

    private mutating func name(of identifier: UInt64) -> Int {
        if let index = names.firstIndex(of: identifier) { return index }
        names.append(identifier)
        return names.count - 1
    }
}

/// What is remembered of a visited state.
public struct StateKey: Hashable, Sendable {
    let low: UInt64
    let high: UInt64
}

/// An input of the fuzzer: its first bytes choose between variants, the rest is what a peer sends.
struct FuzzInput {
    private(set) var bytes: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        self.bytes = bytes[...]
    }

    /// The next byte; 0 at the end.
    mutating func byte() -> UInt8 { bytes.popFirst() ?? 0 }

    /// One of `values`.
    mutating func choice<Value>(_ values: [Value]) -> Value { values[Int(byte()) % values.count] }

    /// A short text of the next bytes, made of few different characters, so that texts are equal often.
    mutating func text(_ alphabet: [String]) -> String {
        (0..<Int(byte() % 5)).map { _ in choice(alphabet) }.joined()
    }

    /// The rest, in pieces whose lengths repeat after `pattern`.
    func pieces(_ pattern: UInt8) -> [[UInt8]] {
        guard pattern > 0 else { return bytes.map { [$0] } }
        var pieces: [[UInt8]] = []
        var rest = bytes
        var length = Int(pattern & 7) + 1
        while !rest.isEmpty {
            pieces.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
            length = length * 5 % 29 + Int(pattern >> 3)
        }
        return pieces
    }
}

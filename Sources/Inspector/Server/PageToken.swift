/// The secret part of a page's address: who does not know the address gets nothing.
struct PageToken: Sendable {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    /// Characters of 62: 119 random bits.
    private static let length = 20

    let text: String

    init() {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<Self.length).map { _ in Self.alphabet.randomElement(using: &generator)! }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// The path behind `/TOKEN`; nil when the path does not begin with this token.
    ///
    /// Takes the same time for every wrong token.
    func rest(of path: String) -> String? {
        let path = Array(path.utf8)
        let expected = Array(("/" + text).utf8)
        guard path.count >= expected.count else { return nil }
        var difference: UInt8 = 0
        for index in expected.indices { difference |= path[index] ^ expected[index] }
        let rest = path[expected.count...]
        guard difference == 0, rest.isEmpty || rest.first == UInt8(ascii: "/") else { return nil }
        return String(decoding: rest, as: UTF8.self)
    }
}

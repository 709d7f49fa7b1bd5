/// A topic, filter, client identifier or destination as a key: equal only if the bytes are.
///
/// `String` compares by canonical equivalence, which would take two topics for one that differ on the wire.
struct Name: Hashable, Sendable, CustomStringConvertible {
    let text: String

    init(_ text: String) {
        self.text = text
    }

    static func == (left: Name, right: Name) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    func hash(into hasher: inout Hasher) {
        // A string that is not native is copied, so that equal bytes hash alike however they are stored.
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    var description: String { text }
}

/// A name that is a key by its UTF-8 bytes: a topic, filter, destination or client identifier.
///
/// `String` compares by canonical equivalence, which takes two names for one that differ on the wire.
package struct ByteKey: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package static func == (one: ByteKey, other: ByteKey) -> Bool {
        one.text.hasSameBytes(as: other.text)
    }

    package func hash(into hasher: inout Hasher) {
        // A string that is not native is copied, so that equal bytes hash alike however they are stored.
        var text = text
        // Safe: the buffer is used inside the closure only.
        text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    package var description: String { text }
}

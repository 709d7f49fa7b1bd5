extension String {
    /// Lends the UTF-8 bytes of the string, without a copy if the string is a native one.
    @inlinable @inline(__always)
    package func withUTF8Span<Result>(_ body: (RawSpan) -> Result) -> Result {
        // Safe: the span does not outlive the call that lends the buffer.
        let result = unsafe utf8.withContiguousStorageIfAvailable { body(unsafe RawSpan(_unsafeElements: $0)) }
        if let result { return result }
        var native = self
        return native.withUTF8 { body(unsafe RawSpan(_unsafeElements: $0)) }
    }

    /// A string of bytes that were found to be well-formed UTF-8.
    ///
    /// - Parameter isASCII: whether they are known to be ASCII.
    @inlinable @inline(__always)
    package init(checked bytes: RawSpan, _ range: Range<Int>, isASCII: Bool = false) {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // Safe: every byte is a UInt8, and the caller has checked the bytes, so the library need not do so again.
            let text = unsafe UTF8Span(
                unchecked: bytes.extracting(range)._unsafeView(as: UInt8.self), isKnownASCII: isASCII)
            self = String(copying: text)
        } else {
            self.init(repairing: bytes, range)
        }
    }

    /// The same where the library cannot be told that there is nothing to repair.
    @usableFromInline
    init(repairing bytes: RawSpan, _ range: Range<Int>) {
        // Safe: the buffer is used inside the closure only.
        self = unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }

    /// Whether both strings have the same UTF-8 bytes. `==` compares by canonical equivalence, which takes two names
    /// for one that differ on the wire.
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        // Safe: the spans of the strings are used inside the closures only.
        let isSame = unsafe utf8.withContiguousStorageIfAvailable { bytes in
            unsafe other.utf8.withContiguousStorageIfAvailable { others in
                // Strings that are sent again and again mostly share their storage.
                unsafe bytes.baseAddress == others.baseAddress
                    || RawSpan(_unsafeElements: bytes).isEqual(at: 0, to: RawSpan(_unsafeElements: others))
            }
        }
        if let isSame, let isSame { return isSame }
        return utf8.elementsEqual(other.utf8)
    }

    /// Whether the string has the UTF-8 bytes of a literal.
    package func hasBytes(of text: StaticString) -> Bool {
        utf8.count == text.utf8CodeUnitCount && withUTF8Span { $0.holds(text, at: 0) }
    }

    /// At most so many Unicode scalars of the string, from its start. `prefix` counts characters, for which a small program
    /// needs Unicode's tables.
    package func firstScalars(_ count: Int) -> String { String(unicodeScalars.prefix(count)) }

    /// The string without spaces and tabs at both ends, which are compared as bytes.
    package func trimmingBlanks() -> String {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        guard let first = utf8.first, let last = utf8.last, isBlank(first) || isBlank(last) else { return self }
        var rest = utf8[...]
        while let byte = rest.first, isBlank(byte) { rest.removeFirst() }
        while let byte = rest.last, isBlank(byte) { rest.removeLast() }
        return String(Substring(rest))
    }
}

extension String? {
    /// Whether both are nil, or have the same UTF-8 bytes.
    package func hasSameBytes(as other: String?) -> Bool { map(ByteKey.init) == other.map(ByteKey.init) }
}

/// A name that is a key by its UTF-8 bytes: a topic, filter, destination, client identifier or path.
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

/// In the order of the bytes.
extension ByteKey: Comparable {
    package static func < (one: ByteKey, other: ByteKey) -> Bool {
        one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
    }
}

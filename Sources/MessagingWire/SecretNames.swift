/// The names of what may let others in: the one list for headers of STOMP and for user properties of MQTT, wherever what was
/// exchanged is shown, stored or dumped.
package enum SecretNames {
    /// Whether a name contains one of the list. `login` and `passcode` are the specification's of STOMP; the others are what
    /// brokers and proxies read.
    package static func isSecret(_ name: String) -> Bool {
        let bytes = ContiguousArray(name.utf8)
        // UInt8 has no padding, so all bytes are initialised.
        return isSecret(unsafe bytes.span.bytes, 0..<bytes.count)
    }

    /// The same for a name in bytes.
    package static func isSecret(_ bytes: RawSpan, _ name: Range<Int>) -> Bool {
        for start in name {
            func holds(_ secret: StaticString) -> Bool { isLowerCase(secret, of: bytes, start, to: name.upperBound) }
            let isSecret =
                switch bytes.byte(at: start) | 0x20 {
                case UInt8(ascii: "l"): holds("login")
                case UInt8(ascii: "p"): holds("passcode") || holds("password")
                case UInt8(ascii: "a"): holds("authorization") || holds("api-key") || holds("apikey")
                case UInt8(ascii: "t"): holds("token")
                case UInt8(ascii: "s"): holds("secret")
                case UInt8(ascii: "c"): holds("credential") || holds("cookie")
                default: false
                }
            if isSecret { return true }
        }
        return false
    }

    /// Whether the text in lower case is at `start`, whatever the case of the bytes.
    private static func isLowerCase(
        _ text: StaticString, of bytes: RawSpan, _ start: Int, to end: Int
    ) -> Bool {
        guard end - start >= text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { text in
            for index in 0..<text.count where unsafe bytes.byte(at: start + index) | 0x20 != text[index] {
                return false
            }
            return true
        }
    }
}

extension String {
    /// Gives the UTF-8 bytes of the string, without a copy if it is a native one.
    @inline(__always)
    func withUTF8Span<Result>(_ body: (RawSpan) -> Result) -> Result {
        // Safe: the span does not outlive the call that lends the buffer.
        let result = unsafe utf8.withContiguousStorageIfAvailable { body(unsafe RawSpan(_unsafeElements: $0)) }
        if let result { return result }
        var native = self
        return native.withUTF8 { body(unsafe RawSpan(_unsafeElements: $0)) }
    }

    /// A string of bytes that ``TextScan`` found well-formed; nothing is left to repair.
    ///
    /// - Parameter isASCII: whether they are known to be ASCII.
    @inline(__always)
    init(checked bytes: RawSpan, _ range: Range<Int>, isASCII: Bool = false) {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            // Safe: every byte is a UInt8, and the bytes were found to be what is said of them, so that the library
            // need not look again.
            let text = unsafe UTF8Span(
                unchecked: bytes.extracting(range)._unsafeView(as: UInt8.self), isKnownASCII: isASCII)
            self = String(copying: text)
        } else {
            self.init(repairing: bytes, range)
        }
    }

    /// The same where the library cannot be told that there is nothing to repair.
    private init(repairing bytes: RawSpan, _ range: Range<Int>) {
        // Safe: the buffer is read inside the call that lends it.
        self = unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension Array where Element == UInt8 {
    /// A copy of bytes that are there.
    init(copying bytes: RawSpan, _ range: Range<Int>) {
        // Safe: the buffer is read inside the call that lends it.
        self = unsafe bytes.extracting(range).withUnsafeBytes { unsafe Array($0) }
    }
}

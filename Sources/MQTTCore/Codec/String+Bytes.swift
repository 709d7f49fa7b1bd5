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
    init(checked bytes: RawSpan, _ range: Range<Int>) {
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

extension RawSpan {
    /// Whether the bytes in `start..<end` are well-formed UTF-8 (The Unicode Standard, table 3-7). A range that does not
    /// lie inside the span traps.
    @inlinable
    package func isUTF8(from start: Int, to end: Int) -> Bool {
        require(start, end)
        var validator = UTF8Validator()
        return validator.check(self, from: start, to: end) == nil && validator.isAtBoundary
    }

    /// The text in a range, or nil if it is not UTF-8.
    package func text(in range: Range<Int>) -> String? {
        let part = extracting(range)
        // Safe: the buffer is used inside the closure only.
        return unsafe part.withUnsafeBytes { unsafe String(validating: $0, as: UTF8.self) }
    }

    /// A copy of the bytes in a range.
    package func bytes(in range: Range<Int>) -> [UInt8] {
        let part = extracting(range)
        // Safe: the buffer is used inside the closure only.
        return unsafe part.withUnsafeBytes { unsafe [UInt8]($0) }
    }
}

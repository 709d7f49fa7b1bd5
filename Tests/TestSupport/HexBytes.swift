extension [UInt8] {
    /// Bytes written as pairs of hexadecimal digits, with any blanks between them.
    package init(hex: String) {
        let digits = hex.compactMap(\.hexDigitValue).map(UInt8.init)
        self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

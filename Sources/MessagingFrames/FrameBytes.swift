/// The bytes of a frame that a log keeps.
enum FrameBytes {
    /// The number of bytes that are kept of frames that are too large to be kept whole.
    static let cutLimit = 4096
    /// Replaces each byte of a secret, so that all other bytes keep their places.
    static let star = UInt8(ascii: "*")

    /// How many bytes are kept of a frame of that size.
    static func keptCount(of size: Int, limit: Int) -> Int {
        size <= limit ? size : min(size, cutLimit, limit)
    }
}

/// How frames are shown to people.
package enum FrameText {
    /// Bytes of a payload that a record keeps.
    package static let previewLimit = 256
    /// Shown in place of a secret.
    package static let mask = "***"

    /// The first bytes, as quoted text where they are text and otherwise in hexadecimal digits.
    package static func preview(_ bytes: [UInt8], of count: Int) -> String {
        let dots = bytes.count < count ? "…" : ""
        if let text = text(bytes), !text.unicodeScalars.contains(where: isControl) {
            return "\"\(text)\"\(dots)"
        }
        let shown = bytes.prefix(32)
        let digits = shown.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
        return digits + (shown.count < count ? "…" : "")
    }

    /// The text, even if the last character was cut in two.
    private static func text(_ bytes: [UInt8]) -> String? {
        for missing in 0..<4 where bytes.count >= missing {
            if let text = String(validating: bytes.dropLast(missing), as: UTF8.self) { return text }
            // Only a piece that was cut off may end in the middle of a character.
            if bytes.count < previewLimit { return nil }
        }
        return nil
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 && scalar != "\n" && scalar != "\t" || (0x7F...0x9F).contains(scalar.value)
    }
}

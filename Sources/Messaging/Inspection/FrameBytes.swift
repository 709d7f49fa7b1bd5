import Wire

/// The bytes of a frame that a log keeps.
package enum FrameBytes {
    /// Of frames that are too large to be kept.
    package static let cutLimit = 4096
    private static let star = UInt8(ascii: "*")

    /// How many bytes are kept of a frame of that size.
    package static func keptCount(of size: Int, limit: Int) -> Int {
        size <= limit ? size : min(size, cutLimit, limit)
    }

    /// The bytes of a part of what was exchanged.
    package static func copy(_ bytes: RawSpan, _ range: Range<Int>) -> [UInt8] {
        bytes.bytes(in: range)
    }

    /// The bytes that are kept of a frame.
    ///
    /// - Parameter mask: masks the secrets in a copy of the whole frame, because one may lie across the cut; nil if the
    ///   frame has no secrets.
    package static func copy(
        _ bytes: RawSpan, _ range: Range<Int>, limit: Int, masking mask: ((inout [UInt8]) -> Void)?
    ) -> [UInt8] {
        let kept = keptCount(of: range.count, limit: limit)
        guard let mask else { return copy(bytes, range.lowerBound..<(range.lowerBound + kept)) }
        var whole = copy(bytes, range)
        mask(&whole)
        return Array(whole.prefix(kept))
    }

    /// Puts a `*` in place of each byte of the range, so that everything else stays where it is.
    package static func mask(_ bytes: inout [UInt8], _ range: Range<Int>) {
        for index in range.clamped(to: bytes.indices) { bytes[index] = star }
    }

    /// Masks `secret` wherever it stands behind `prefix`.
    package static func mask(_ bytes: inout [UInt8], _ secret: [UInt8], behind prefix: [UInt8]) {
        let pattern = prefix + secret
        guard !secret.isEmpty, bytes.count >= pattern.count else { return }
        for start in 0...(bytes.count - pattern.count) where bytes[start] == pattern[0] {
            guard bytes[start..<(start + pattern.count)].elementsEqual(pattern) else { continue }
            mask(&bytes, (start + prefix.count)..<(start + pattern.count))
        }
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

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

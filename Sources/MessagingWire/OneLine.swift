/// Makes descriptions of one line: payloads and texts are shortened, line breaks escaped.
package enum OneLine {
    /// Text without line breaks and control characters, shortened.
    package static func text(_ text: String, limit: Int = 400) -> String {
        let scalars = text.unicodeScalars
        guard scalars.count > limit else { return escaped(text) }
        return escaped(String(scalars.prefix(limit))) + "…"
    }

    /// Text whose line breaks and control characters are escaped, at any length.
    package static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: breaks) else { return text }
        var line = ""
        for scalar in text.unicodeScalars {
            if breaks(scalar) { line += scalar.escaped(asASCII: true) } else { line.unicodeScalars.append(scalar) }
        }
        return line
    }

    /// Whether a terminal or a log may take it for a command or the end of a line.
    private static func breaks(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    /// A number of bytes: `1 byte`, `2 bytes`.
    package static func bytes(_ count: Int) -> String { count == 1 ? "1 byte" : "\(count) bytes" }

    /// A measured or random duration, with three digits, and with hundredths of a second at most from 10 seconds on.
    package static func duration(_ duration: Duration) -> String {
        let nanoseconds = duration.inNanoseconds
        var step: Int64 = 1
        while step < 10_000_000, (nanoseconds / step).magnitude >= 1000 { step *= 10 }
        let (sum, isTooLarge) = nanoseconds.addingReportingOverflow(nanoseconds < 0 ? -step / 2 : step / 2)
        return isTooLarge ? "\(duration)" : "\(Duration.nanoseconds(sum / step * step))"
    }

    /// The first bytes, as quoted text where they are text and otherwise in hexadecimal digits.
    package static func payload(_ bytes: ArraySlice<UInt8>) -> String {
        let shown = bytes.prefix(64)
        let isCut = shown.count < bytes.count
        // A character that is cut in two has at most three bytes here.
        let text = (0...(isCut ? 3 : 0)).lazy.compactMap { String(validating: shown.dropLast($0), as: UTF8.self) }.first
        let rest = isCut ? "… (\(bytes.count) bytes)" : ""
        if let text, !text.utf8.contains(0) { return "\"\(self.text(text))\"" + rest }
        let digits = bytes.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
        return digits + (bytes.count > 16 ? "… (\(bytes.count) bytes)" : "")
    }
}

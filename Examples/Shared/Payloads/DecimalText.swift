/// Numbers as text that no locale and no exponent can touch.
enum DecimalText {
    /// A finite number in the usual decimal notation; nil for anything else ("nan", "0x10", "1,5").
    static func parse(_ text: some StringProtocol) -> Double? {
        guard text.utf8.count <= 64, text.utf8.allSatisfy("0123456789+-.eE".utf8.contains) else { return nil }
        guard let value = Double(text), value.isFinite else { return nil }
        return value
    }

    /// Rounded to `places` digits after the point, without the sign of a zero.
    ///
    /// `value` is expected to be small (an angle); beyond ±10¹⁵ it is shown unrounded.
    static func fixed(_ value: Double, places: Int) -> String {
        var power = 1.0
        for _ in 0..<places { power *= 10 }
        let scaled = (value * power).rounded()
        guard abs(scaled) < 1e15 else { return "\(value)" }
        let digits = String(Int(abs(scaled)))
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
        let sign = scaled < 0 ? "-" : ""
        guard places > 0 else { return sign + padded }
        return sign + padded.dropLast(places) + "." + padded.suffix(places)
    }
}

extension Double {
    /// The shortest decimal notation that reads back as the same number, without an exponent: `0.00001`.
    ///
    /// Not for NaN and infinities.
    var plainDecimal: String {
        let text = self == 0 ? "0.0" : description
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "e")), let exponent = Int(text[mark...].dropFirst())
        else {
            return text
        }
        let isNegative = self < 0
        let mantissa = text[..<mark].drop { $0 == "-" }
        let parts = mantissa.split(separator: ".")
        let whole = String(parts[0])
        let fraction = parts.count > 1 && parts[1] != "0" ? String(parts[1]) : ""
        let digits = whole + fraction
        let point = whole.count + exponent
        let body: String =
            if point <= 0 {
                "0." + String(repeating: "0", count: -point) + digits
            } else if point >= digits.count {
                digits + String(repeating: "0", count: point - digits.count) + ".0"
            } else {
                String(digits.prefix(point)) + "." + String(digits.dropFirst(point))
            }
        return (isNegative ? "-" : "") + body
    }

    /// For messages: whole numbers without ".0".
    var plainText: String {
        let text = plainDecimal
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

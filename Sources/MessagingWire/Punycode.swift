/// The form in ASCII of host names with other letters (RFC 3492, RFC 5891).
package enum Punycode {
    #if hasFeature(Embedded)
        /// Without Unicode's tables there is no advice.
        package static func advice(on name: String) -> String { "" }
    #else
        /// The `xn--` form of a name, or nil if it is in ASCII already. For advice: letters are made lower case, and nothing else is
        /// checked.
        package static func asciiForm(of name: String) -> String? {
            guard !name.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
            let labels = name.lowercased().split(separator: ".", omittingEmptySubsequences: false)
            return labels.map { label in
                label.utf8.allSatisfy { $0 < 0x80 }
                    ? String(label) : "xn--" + encoded(label.unicodeScalars.map { $0.value })
            }.joined(separator: ".")
        }

        /// A sentence with that form; empty for a name in ASCII.
        package static func advice(on name: String) -> String {
            asciiForm(of: name).map { " In ASCII its name is '\($0)'." } ?? ""
        }
    #endif

    private static func encoded(_ scalars: [UInt32]) -> String {
        var output = scalars.filter { $0 < 0x80 }
        let basicCount = UInt32(output.count)
        if basicCount > 0 { output.append(0x2D) }
        var (next, delta, bias, handled) = (UInt32(0x80), UInt32(0), UInt32(72), basicCount)
        while handled < scalars.count {
            guard let least = scalars.lazy.filter({ $0 >= next }).min() else { break }
            // A label of a name has few characters, so that nothing overflows; one that has many is not encoded right.
            delta &+= (least - next) &* (handled + 1)
            next = least
            for scalar in scalars {
                if scalar < next { delta &+= 1 }
                guard scalar == next else { continue }
                output += digits(of: delta, bias)
                bias = adapted(delta, handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta &+= 1
            next += 1
        }
        return String(decoding: output.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    /// A number in the variable-length digits of base 36.
    private static func digits(of number: UInt32, _ bias: UInt32) -> [UInt32] {
        var (rest, position, digits) = (number, UInt32(36), [UInt32]())
        while true {
            let threshold: UInt32 = position <= bias ? 1 : position >= bias + 26 ? 26 : position - bias
            guard rest >= threshold else { break }
            digits.append(digit(threshold + (rest - threshold) % (36 - threshold)))
            rest = (rest - threshold) / (36 - threshold)
            position += 36
        }
        digits.append(digit(rest))
        return digits
    }

    private static func digit(_ value: UInt32) -> UInt32 { value < 26 ? 0x61 + value : 0x30 + value - 26 }

    private static func adapted(_ delta: UInt32, _ count: UInt32, isFirst: Bool) -> UInt32 {
        var delta = isFirst ? delta / 700 : delta / 2
        delta += delta / count
        var offset: UInt32 = 0
        while delta > 455 {
            delta /= 35
            offset += 36
        }
        return offset + 36 * delta / (delta + 38)
    }
}

/// The colours that an alert can name.
package struct Colour: Sendable, Equatable {
    package let red: UInt8
    package let green: UInt8
    package let blue: UInt8

    private init(_ rgb: UInt32) {
        red = UInt8(rgb >> 16 & 0xFF)
        green = UInt8(rgb >> 8 & 0xFF)
        blue = UInt8(rgb & 0xFF)
    }

    /// The colour of that name, in any case and with blanks around it; red for an unknown name.
    package init(named name: String) {
        let key = String(name.lowercased().split(whereSeparator: \.isWhitespace).joined())
        self = Self.named[key] ?? Colour(0xFF0000)
    }

    var hexadecimal: String {
        let digits = String(UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue), radix: 16)
        return "#" + String(repeating: "0", count: 6 - digits.count) + digits
    }

    /// Text in black or white, whichever is easier to read on this colour.
    var isLight: Bool {
        Int(red) * 299 + Int(green) * 587 + Int(blue) * 114 > 140_000
    }

    /// The basic colours of CSS and those that UIKit has names for, with the values of CSS where both know one.
    private static let named: [String: Colour] = [
        "black": 0x000000, "darkgray": 0xA9A9A9, "darkgrey": 0xA9A9A9, "gray": 0x808080, "grey": 0x808080,
        "lightgray": 0xD3D3D3, "lightgrey": 0xD3D3D3, "silver": 0xC0C0C0, "white": 0xFFFFFF, "red": 0xFF0000,
        "maroon": 0x800000, "crimson": 0xDC143C, "pink": 0xFFC0CB, "orange": 0xFFA500, "gold": 0xFFD700,
        "yellow": 0xFFFF00, "olive": 0x808000, "brown": 0xA52A2A, "lime": 0x00FF00, "green": 0x008000,
        "teal": 0x008080, "mint": 0x98FF98, "cyan": 0x00FFFF, "aqua": 0x00FFFF, "turquoise": 0x40E0D0,
        "blue": 0x0000FF, "navy": 0x000080, "indigo": 0x4B0082, "magenta": 0xFF00FF, "fuchsia": 0xFF00FF,
        "purple": 0x800080, "violet": 0xEE82EE,
    ].mapValues { Colour($0) }
}

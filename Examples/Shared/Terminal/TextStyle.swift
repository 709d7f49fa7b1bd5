/// How a text looks on a terminal that has colours.
package enum TextStyle: String, Sendable {
    case plain = ""
    case strong = "1"
    case faint = "2"
    case good = "32"
    case bad = "31"
    case caution = "33"
    case accent = "36"

    func applied(to text: String, _ hasColours: Bool) -> String {
        guard self != .plain, hasColours, !text.isEmpty else { return text }
        return "\u{1B}[\(rawValue)m\(text)\u{1B}[0m"
    }
}

/// A text in one style.
package struct StyledText: Sendable, Equatable {
    var text: String
    var style: TextStyle

    package init(_ text: String, _ style: TextStyle = .plain) {
        self.text = text
        self.style = style
    }
}

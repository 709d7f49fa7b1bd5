/// Shows frames for `--frames`: `>>>` sent, `<<<` received, one line each.
package struct FramePrinter: Sendable {
    package enum Direction: String, Sendable {
        case sent = ">>>"
        case received = "<<<"
    }

    private let console: Console
    private let prefix: String

    /// - Parameter prefix: Told before each line, for fleets.
    package init(console: Console, prefix: String = "") {
        self.console = console
        self.prefix = prefix
    }

    /// - Parameters:
    ///   - name: Of the frame or packet: `SEND`, `PUBLISH`.
    ///   - fields: Headers or properties in order; the values of secrets are masked here.
    ///   - bodySize: In bytes; nil when such a frame has no body.
    package func show(
        _ direction: Direction, _ name: String, fields: [(name: String, value: String)], bodySize: Int? = nil
    ) {
        console.line(prefix + Self.line(direction, name, fields: fields, bodySize: bodySize))
    }

    /// For a summary that somebody else made, and masked.
    package func show(_ direction: Direction, summary: String) {
        console.line("\(prefix)\(direction.rawValue) \(Self.shortened(summary))")
    }

    static func line(
        _ direction: Direction, _ name: String, fields: [(name: String, value: String)], bodySize: Int?
    ) -> String {
        var line = "\(direction.rawValue) \(name)"
        for field in fields {
            let value = isSecret(field.name) ? "***" : shortened(field.value)
            line += " \(field.name):\(value)"
        }
        if let bodySize { line += " (\(bodySize) bytes)" }
        return line
    }

    private static func isSecret(_ name: String) -> Bool {
        let words = ["passcode", "password", "authorization", "cookie", "token", "secret"]
        let name = name.lowercased()
        return words.contains { name.contains($0) }
    }

    private static func shortened(_ text: String) -> String {
        text.utf8.count <= 512 ? text : String(decoding: text.utf8.prefix(509), as: UTF8.self) + "..."
    }
}

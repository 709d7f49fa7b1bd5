package import Messaging

/// Shows frames for `--frames`: `>>>` sent, `<<<` received, one line each.
package struct FramePrinter: Sendable {
    private let console: Console
    private let prefix: String

    /// - Parameter prefix: Told before each line, for fleets.
    package init(console: Console, prefix: String = "") {
        self.console = console
        self.prefix = prefix
    }

    /// - Parameter frame: In words, with secrets masked.
    package func show(_ direction: FrameDirection, _ frame: String) {
        console.line(prefix + Self.line(direction, frame), .faint)
    }

    static func line(_ direction: FrameDirection, _ frame: String) -> String {
        let limit = 1024
        let shown = frame.utf8.count <= limit ? frame : String(decoding: frame.utf8.prefix(limit), as: UTF8.self) + "…"
        return (direction == .sent ? ">>> " : "<<< ") + shown
    }
}

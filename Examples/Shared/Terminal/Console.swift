import MessagingShell
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The only place that writes to the screen: lines, the status lines below them, and the colour of an alert.
///
/// A line is written in one piece and at once, also into a pipe. On a terminal the status lines are taken away before a
/// line and drawn again after it.
package final class Console: Sendable {
    fileprivate struct State {
        /// The status lines, from top to bottom.
        var bar: [String] = []
        /// The same without styles, which would end the colour of an alert.
        var plainBar: [String] = []
        var alert: Colour?
        var alertNumber = 0
        var problem: CInt?
        var isClosed = false
    }

    package let isTerminal: Bool
    private let output: CInt
    private let errors: CInt
    private let hasColours: Bool
    private let setsBackground: Bool
    // Held while writing, so that two lines do not mix.
    private let state = Mutex(State())
    private let onProblem: Callback

    private struct Callback: Sendable {
        let call: @Sendable (CInt) -> Void
    }

    /// - Parameter onProblem: Called once with the error number when standard output cannot be written (EPIPE when the
    ///   reader of a pipe went away). Nothing is written from then on.
    package init(
        output: CInt = STDOUT_FILENO, errors: CInt = STDERR_FILENO, environment: [String: String],
        onProblem: @escaping @Sendable (CInt) -> Void
    ) {
        self.output = output
        self.errors = errors
        self.onProblem = Callback(call: onProblem)
        isTerminal = Descriptor.isTerminal(output, environment: environment)
        // https://no-color.org
        hasColours = isTerminal && (environment["NO_COLOR"] ?? "").isEmpty
        // The console of Linux would show the sequence as text.
        setsBackground = hasColours && environment["TERM"] != "linux"
    }

    /// Columns and rows for the status lines.
    package var size: (columns: Int, rows: Int) { Descriptor.size(output) ?? (80, 24) }

    /// One line on standard output. Control characters in it are made visible. Where a terminal has no room for all of
    /// it, the text continues on the next line with a whole word.
    package func line(_ text: String, _ style: TextStyle = .plain) {
        let text = style.applied(to: wrapped(text), hasColours)
        emit { state in state.eraser + text + "\n" + state.drawnBar }
    }

    /// A list on standard output, of which no item is divided between lines.
    package func list(_ title: String, _ items: [String]) {
        text(wrapped([title] + items.dropLast().map { $0 + "," } + items.suffix(1)))
    }

    private func wrapped(_ text: String) -> String {
        let text = text.printable
        // Blanks in a row are for columns.
        guard isTerminal, text.count > size.columns, !text.contains("  ") else { return text }
        return wrapped(text.split(separator: " ", omittingEmptySubsequences: false).map(String.init))
    }

    /// The pieces on as many lines as they need. Without a terminal that is one.
    private func wrapped(_ pieces: [String]) -> String {
        let limit = isTerminal ? size.columns : Int.max
        var lines = [pieces.first ?? ""]
        for piece in pieces.dropFirst() {
            let line = lines.removeLast()
            lines += line.count + 1 + piece.count < limit ? ["\(line) \(piece)"] : [line, "  " + piece]
        }
        return lines.joined(separator: "\n")
    }

    /// Several lines of our own, as they are.
    package func text(_ text: String) {
        emit { state in state.eraser + text + "\n" + state.drawnBar }
    }

    /// One line on standard error.
    package func problem(_ text: String) {
        let text = wrapped(text)
        emit { $0.eraser }
        state.withLock { _ in
            // Nothing is left to report when standard error fails as well.
            let isColoured = hasColours && isatty(errors) == 1
            _ = Descriptor.write(TextStyle.bad.applied(to: text, isColoured) + "\n", to: errors)
        }
        emit { $0.drawnBar }
    }

    /// Draws the status lines below the others, on a terminal; none takes them away. The texts of a line are not
    /// separated, and what does not fit on a line is cut off.
    func bar(_ lines: [[StyledText]]) {
        guard isTerminal else { return }
        let bar = lines.map { $0.map { $0.style.applied(to: $0.text, hasColours) }.joined() }
        emit { state in
            guard !state.isClosed, bar != state.bar else { return "" }
            // Lines are written over, so that nothing flickers, unless there were more of them.
            let start = state.bar.count > 1 && state.bar.count <= bar.count ? state.start : state.eraser
            state.bar = bar
            state.plainBar = lines.map { $0.map(\.text).joined() }
            return start + state.drawnBar
        }
    }

    /// Shows `alert: NAME` after the prefix; on a terminal the background takes the colour for two seconds.
    package func alert(_ name: String, prefix: String = "") {
        let colour = Colour(named: name)
        let number = emit { state in
            let eraser = state.eraser
            var text = "\(prefix.printable)alert: \(name.printable)"
            if isTerminal {
                state.alert = hasColours ? colour : nil
                state.alertNumber += 1
                if hasColours { text = colour.painted(text) }
                if setsBackground { text = "\u{1B}]11;\(colour.hexadecimal)\u{1B}\\" + text }
            }
            return eraser + text + "\n" + state.drawnBar
        }
        guard isTerminal else { return }
        Task {
            try await Task.sleep(for: .seconds(2))
            endAlert(number)
        }
    }

    /// Takes the status lines away and gives the terminal its colours back. Later ones are ignored.
    package func close() {
        emit(closing)
    }

    /// Does the same where that is possible at once: a reader that has stopped reading, or a terminal after Ctrl-S, must
    /// not hold up a program that is to exit.
    package func closeWithoutWaiting() {
        _ = state.withLockIfAvailable { state in
            let text = closing(&state)
            guard !text.isEmpty, state.problem == nil, Descriptor.isWritable(output) else { return }
            state.problem = Descriptor.write(text, to: output)
        }
    }

    private func closing(_ state: inout State) -> String {
        state.isClosed = true
        let text = state.eraser + (state.alert != nil && setsBackground ? Self.resetBackground : "")
        state.alert = nil
        state.bar = []
        return text
    }

    private static let resetBackground = "\u{1B}]111\u{1B}\\"

    /// Only the newest alert ends: an older one must not cut it short.
    private func endAlert(_ number: Int) {
        emit { state in
            guard state.alertNumber == number, state.alert != nil else { return "" }
            state.alert = nil
            return (setsBackground ? Self.resetBackground : "") + state.eraser + state.drawnBar
        }
    }

    @discardableResult
    private func emit(_ make: (inout State) -> String) -> Int {
        let (problem, number) = state.withLock { state -> (CInt?, Int) in
            let text = make(&state)
            guard !text.isEmpty, state.problem == nil else { return (nil, state.alertNumber) }
            state.problem = Descriptor.write(text, to: output)
            return (state.problem, state.alertNumber)
        }
        if let problem { onProblem.call(problem) }
        return number
    }
}

extension Console.State {
    /// Up to the beginning of the first status line.
    fileprivate var start: String { bar.count > 1 ? "\r\u{1B}[\(bar.count - 1)A" : "\r" }

    /// The same, and everything from there away.
    fileprivate var eraser: String {
        switch bar.count {
        case 0: ""
        case 1: start + "\u{1B}[K"
        default: start + "\u{1B}[J"
        }
    }

    fileprivate var drawnBar: String {
        let lines = alert.map { alert in plainBar.map(alert.painted) } ?? bar
        guard lines.count > 1 else { return lines.first ?? "" }
        // A line that is longer than the terminal is wide must not become two, or the eraser would miss one.
        return "\u{1B}[?7l" + lines.joined(separator: "\u{1B}[K\n") + "\u{1B}[K\u{1B}[?7h"
    }
}

extension Colour {
    /// The text on this colour, up to the right edge of the terminal.
    fileprivate func painted(_ text: String) -> String {
        "\u{1B}[48;2;\(red);\(green);\(blue);\(isLight ? 30 : 97)m\(text)\u{1B}[K\u{1B}[0m"
    }
}

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

extension Console {
    /// Shows a frame for `--frames`: `>>>` sent, `<<<` received, one line each.
    ///
    /// - Parameters:
    ///   - frame: In words, with secrets masked.
    ///   - prefix: Printed before each line, for fleets.
    func frame(_ direction: FrameDirection, _ frame: String, prefix: String) {
        line(prefix + Self.frameLine(direction, frame), .faint)
    }

    static func frameLine(_ direction: FrameDirection, _ frame: String) -> String {
        let limit = 1024
        let shown = frame.utf8.count <= limit ? frame : String(decoding: frame.utf8.prefix(limit), as: UTF8.self) + "…"
        return (direction == .sent ? ">>> " : "<<< ") + shown
    }
}

import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The only place that writes to the screen: lines, the status line below them, and the colour of an alert.
///
/// A line is written in one piece and at once, also into a pipe. On a terminal the status line is taken away before a
/// line and drawn again after it.
package final class Console: Sendable {
    fileprivate struct State {
        var bar = ""
        /// The same without styles, which would end the colour of an alert.
        var plainBar = ""
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
    // Held while writing: two lines must not mix, and nobody waits for it who has something better to do.
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

    /// Columns for the status line.
    package var width: Int { Descriptor.width(output) ?? 80 }

    /// One line on standard output. Control characters in it are made visible.
    package func line(_ text: String, _ style: TextStyle = .plain) {
        let text = style.applied(to: text.printable, hasColours)
        emit { state in state.eraser + text + "\n" + state.drawnBar }
    }

    /// Several lines of our own, as they are.
    package func text(_ text: String) {
        emit { state in state.eraser + text + "\n" + state.drawnBar }
    }

    /// One line on standard error.
    package func problem(_ text: String) {
        emit { $0.eraser }
        state.withLock { _ in
            // Nothing is left to report when standard error fails as well.
            let isColoured = hasColours && isatty(errors) == 1
            _ = Descriptor.write(TextStyle.bad.applied(to: text.printable, isColoured) + "\n", to: errors)
        }
        emit { $0.drawnBar }
    }

    /// Draws the status line below the others, on a terminal; an empty text takes it away.
    package func bar(_ text: String) {
        bar([StyledText(text)])
    }

    /// Draws the status line of several texts, which are not separated.
    func bar(_ texts: [StyledText]) {
        guard isTerminal else { return }
        let text = texts.map { $0.style.applied(to: $0.text, hasColours) }.joined()
        emit { state in
            guard !state.isClosed, text != state.bar else { return "" }
            let eraser = state.eraser
            state.bar = text
            state.plainBar = texts.map(\.text).joined()
            return eraser + state.drawnBar
        }
    }

    /// Shows `alert: NAME`; on a terminal the background takes the colour for two seconds.
    package func alert(_ name: String) {
        let colour = Colour(named: name)
        let number = emit { state in
            let eraser = state.eraser
            var text = "alert: \(name.printable)"
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

    /// Takes the bar away and gives the terminal its colours back. Later bars are ignored.
    package func close() {
        emit { state in
            state.isClosed = true
            let text = state.eraser + (state.alert != nil && setsBackground ? Self.resetBackground : "")
            state.alert = nil
            state.bar = ""
            return text
        }
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
    fileprivate var eraser: String { bar.isEmpty ? "" : "\r\u{1B}[K" }
    fileprivate var drawnBar: String {
        guard !bar.isEmpty else { return "" }
        return alert?.painted(plainBar) ?? bar
    }
}

extension Colour {
    /// The text on this colour, up to the right edge of the terminal.
    fileprivate func painted(_ text: String) -> String {
        "\u{1B}[48;2;\(red);\(green);\(blue);\(isLight ? 30 : 97)m\(text)\u{1B}[K\u{1B}[0m"
    }
}

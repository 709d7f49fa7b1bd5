import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Lets single keys through without Enter and without showing them, and puts the terminal back as it was.
package enum TerminalMode {
    private static let original = Mutex<termios?>(nil)

    /// True when standard input is a terminal that now gives single keys.
    ///
    /// Does nothing in the background, where touching the terminal would stop the program.
    static func enter() -> Bool {
        guard isatty(STDIN_FILENO) == 1, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return false }
        return original.withLock { original in
            var mode = termios()
            if let original {
                mode = original
            } else {
                guard unsafe tcgetattr(STDIN_FILENO, &mode) == 0 else { return false }
                original = mode
                atexit { TerminalMode.restore() }
            }
            // Ctrl-C stays a signal: ISIG is left alone.
            mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
            return unsafe tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0
        }
    }

    /// After a stop with Ctrl-Z and `fg`: the shell has put its own mode in place.
    static func enterAgain() {
        if original.withLock({ $0 != nil }) { _ = enter() }
    }

    /// Harmless when nothing was changed, and when called twice.
    package static func restore() {
        original.withLock { original in
            guard var mode = original else { return }
            unsafe tcsetattr(STDIN_FILENO, TCSANOW, &mode)
            original = nil
        }
    }
}

import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Ctrl-C, SIGTERM and a closed terminal stop the program properly; a second one ends it at once.
///
/// A thread waits for the signals, so that what they do runs as ordinary code and not in a signal handler.
package enum Signals {
    /// Call this first of all: threads inherit which signals are blocked, and one that does not would be killed.
    package static func prepare() {
        // Writes to a closed pipe are told by EPIPE. Reading in the background is told by EIO instead of a stop.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGTTIN, SIG_IGN)
        signal(SIGTTOU, SIG_IGN)
        var set = watched()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// - Parameters:
    ///   - first: Called on the watching thread at the first signal.
    ///   - last: Called before the program exits at the second one.
    package static func watch(
        first: @escaping @Sendable (CInt) -> Void, last: @escaping @Sendable () -> Void
    ) {
        let thread = Thread {
            var set = watched()
            var hasStopped = false
            while true {
                var number: CInt = 0
                guard sigwait(&set, &number) == 0 else { continue }
                if number == SIGCONT {
                    TerminalMode.enterAgain()
                } else if hasStopped {
                    last()
                    TerminalMode.restore()
                    // The status that a shell gives to a program that died of the signal.
                    _exit(128 + number)
                } else {
                    hasStopped = true
                    first(number)
                }
            }
        }
        thread.name = "signals"
        thread.start()
    }

    private static func watched() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP, SIGCONT] {
            sigaddset(&set, number)
        }
        return set
    }
}

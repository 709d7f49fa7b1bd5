import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Ctrl-C, SIGTERM and a closed terminal stop the program properly; a second one ends it at once.
///
/// Dispatch collects the signals, so that what they do runs as ordinary code and not in a signal handler. Waiting for
/// them on a thread of our own would not do: an asynchronous main leaves its thread to Dispatch, which lets every
/// signal through there.
package enum Signals {
    // Only kept alive here, by the one call of `watch`.
    nonisolated(unsafe) private static var sources: [any DispatchSourceSignal] = []
    private static let hasStopped = Atomic(false)

    /// Call this first of all.
    package static func prepare() {
        // A write to a closed pipe fails with EPIPE, and a read in the background with EIO; neither stops the program.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGTTIN, SIG_IGN)
        signal(SIGTTOU, SIG_IGN)
    }

    /// - Parameters:
    ///   - first: Called on a thread of its own at the first signal.
    ///   - last: Called before the program exits at the second one. Must not wait for anything.
    package static func watch(
        first: @escaping @Sendable (CInt) -> Void, last: @escaping @Sendable () -> Void
    ) {
        let queue = DispatchQueue(label: "signals")
        watch(SIGCONT, on: queue) { TerminalMode.enterAgain() }
        for number in [SIGINT, SIGTERM, SIGHUP] where number != SIGHUP || !isIgnored(number) {
            watch(number, on: queue) {
                guard hasStopped.exchange(true, ordering: .relaxed) else { return first(number) }
                last()
                TerminalMode.restore()
                // The status that a shell gives to a program that died of the signal.
                _exit(128 + number)
            }
        }
    }

    private static func watch(_ number: CInt, on queue: DispatchQueue, _ action: @escaping @Sendable () -> Void) {
        let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
        source.setEventHandler(handler: action)
        // Dispatch sees the signal only when this has happened on a thread of its own; until then it would kill us.
        let isInstalled = DispatchSemaphore(value: 0)
        source.setRegistrationHandler { isInstalled.signal() }
        source.activate()
        isInstalled.wait()
        #if canImport(Darwin)
            // Kept from killing us; Dispatch on Darwin sees it nevertheless. Before it does, a signal would be lost.
            signal(number, SIG_IGN)
        #endif
        unsafe sources.append(source)
    }

    /// Whether our parent wants the signal to be without effect, as `nohup` does.
    private static func isIgnored(_ number: CInt) -> Bool {
        let previous = signal(number, SIG_IGN)
        signal(number, previous)
        return unsafe unsafeBitCast(previous, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

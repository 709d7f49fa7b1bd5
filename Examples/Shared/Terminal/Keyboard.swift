import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the keyboard can do to a device.
package enum Key: Sendable, Equatable {
    case shake
    case accept
    case reject

    init?(_ byte: UInt8) {
        switch byte {
        case 0x0A, 0x0D: self = .shake
        case UInt8(ascii: "a"), UInt8(ascii: "A"): self = .accept
        case UInt8(ascii: "r"), UInt8(ascii: "R"): self = .reject
        default: return nil
        }
    }

    /// The keys of what one read brought. Piped lines such as `a` and Enter are one key, so the line end after a key
    /// does not count as a shake there.
    static func keys(in bytes: [UInt8], isTerminal: Bool, previous: inout UInt8?) -> [Key] {
        var keys: [Key] = []
        for byte in bytes {
            let endsKeyLine = !isTerminal && byte == 0x0A && previous.flatMap(Key.init).map { $0 != .shake } == true
            let followsReturn = byte == 0x0A && previous == 0x0D
            if !endsKeyLine, !followsReturn, let key = Key(byte) { keys.append(key) }
            previous = byte
        }
        return keys
    }
}

/// Reads keys on a thread of its own. The end of standard input ends the keys and nothing else.
package final class KeyReader: Sendable {
    package let keys: AsyncStream<Key>
    private let continuation: AsyncStream<Key>.Continuation

    package init() {
        // A key that is held down must not queue up; what is lost are shakes of a second ago.
        (keys, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(64))
    }

    /// Reads standard input until it ends.
    package func start() {
        start(InputFile(standardInput: ()), isTerminal: TerminalMode.enter())
    }

    func start(_ file: InputFile, isTerminal: Bool) {
        let continuation = continuation
        let thread = Thread {
            var previous: UInt8?
            var buffer: [UInt8] = []
            // A read error (the terminal belongs to another program) is as good as the end.
            while (try? file.read(into: &buffer)) == true {
                for key in Key.keys(in: buffer, isTerminal: isTerminal, previous: &previous) {
                    continuation.yield(key)
                }
                buffer.removeAll(keepingCapacity: true)
            }
            continuation.finish()
        }
        thread.name = "keys"
        thread.start()
    }
}

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

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// System calls on the three standard descriptors.
enum Descriptor {
    /// Writes everything; returns the error number of the first failure.
    static func write(_ text: String, to descriptor: CInt) -> CInt? {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let base = rest.baseAddress, unsafe !rest.isEmpty {
                #if canImport(Darwin)
                    let count = unsafe Darwin.write(descriptor, base, rest.count)
                #elseif canImport(Musl)
                    let count = unsafe Musl.write(descriptor, base, rest.count)
                #else
                    let count = unsafe Glibc.write(descriptor, base, rest.count)
                #endif
                if count >= 0 {
                    unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    unsafe poll(&wait, 1, -1)
                } else if errno != EINTR {
                    return errno
                }
            }
            return nil
        }
    }

    /// Whether a few bytes can be written without waiting for the reader.
    static func isWritable(_ descriptor: CInt) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLOUT) != 0
    }

    /// A terminal that understands escape sequences.
    static func isTerminal(_ descriptor: CInt, environment: [String: String]) -> Bool {
        let term = environment["TERM"] ?? ""
        return isatty(descriptor) == 1 && !term.isEmpty && term != "dumb"
    }

    /// Size of the terminal, asked anew each time because windows change; nil when it does not say.
    static func size(_ descriptor: CInt) -> (columns: Int, rows: Int)? {
        var size = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return nil
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Opens /dev/null where a standard descriptor is closed: otherwise the first socket would get its number, and
    /// lines meant for the screen would go to the broker.
    static func openMissing() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is this one, since those below are open by now.
            _ = unsafe open("/dev/null", O_RDWR)
        }
    }
}

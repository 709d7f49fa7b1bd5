#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A file open for reading, or standard input.
final class InputFile: Sendable {
    private let descriptor: CInt
    private let name: String
    private let closesItself: Bool

    /// - Throws: `.noInput` with the path and the system's reason.
    init(path: String) throws(DeviceFailure) {
        name = path.printable
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw DeviceFailure(.noInput, "cannot read \(name): \(systemMessage(errno))")
        }
        closesItself = true
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            close(descriptor)
            throw DeviceFailure(.noInput, "cannot read \(name): it is a directory")
        }
    }

    init(standardInput: Void) {
        descriptor = STDIN_FILENO
        name = "standard input"
        closesItself = false
    }

    deinit {
        if closesItself { close(descriptor) }
    }

    /// Appends what one read brings; false at the end.
    func read(into buffer: inout [UInt8]) throws(DeviceFailure) -> Bool {
        let size = 65_536
        let start = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: size))
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                #if canImport(Darwin)
                    unsafe Darwin.read(descriptor, bytes.baseAddress! + start, size)
                #elseif canImport(Musl)
                    unsafe Musl.read(descriptor, bytes.baseAddress! + start, size)
                #else
                    unsafe Glibc.read(descriptor, bytes.baseAddress! + start, size)
                #endif
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                // Standard input may share a non-blocking description with another program.
                var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                unsafe poll(&wait, 1, -1)
                continue
            }
            let problem = errno
            buffer.removeLast(size - max(0, count))
            guard count >= 0 else {
                throw DeviceFailure(.noInput, "cannot read \(name): \(systemMessage(problem))")
            }
            return count > 0
        }
    }
}

/// What the system says about an error number.
func systemMessage(_ number: CInt) -> String {
    unsafe String(cString: strerror(number))
}

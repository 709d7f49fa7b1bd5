import Foundation
import Synchronization

/// A child process in a process group of its own, with its output captured.
///
/// It is killed with its last reference, when the test process exits, and (on Linux) when the test process is killed.
/// Threads of its own read its output and wait for its end; no call blocks the caller's thread.
public final class ChildProcess: Sendable {
    public enum Stream: Sendable {
        case output
        case errors
    }

    /// One line of output and its number, to go on searching after it.
    public struct Line: Sendable {
        public let number: Int
        public let text: String
    }

    /// What the child's threads need; they keep it alive, and not the `ChildProcess`.
    private final class Shared: Sendable {
        let output: OutputBuffer
        let errors: OutputBuffer
        let status = Mutex<ExitStatus?>(nil)
        /// The descriptor of the child's input, nil once closed.
        let input: Mutex<Int32?>

        init(limit: Int, input: Int32?) {
            output = OutputBuffer(limit: limit)
            errors = OutputBuffer(limit: limit)
            self.input = Mutex(input)
        }
    }

    public let processID: Int32
    private let name: String
    private let shared: Shared

    private init(_ command: Command, _ processID: Int32, _ descriptors: ChildDescriptors) {
        self.processID = processID
        name = command.executable.split(separator: "/").last.map(String.init) ?? command.executable
        // A terminal is one descriptor for both directions; writing needs its own, to be closed on its own.
        let isTerminal = descriptors.input == descriptors.output
        let input = isTerminal ? fcntl(descriptors.output, F_DUPFD_CLOEXEC, 3) : descriptors.input
        if let input { _ = fcntl(input, F_SETFL, fcntl(input, F_GETFL) | (isTerminal ? 0 : O_NONBLOCK)) }
        let shared = Shared(limit: command.outputLimit, input: input)
        self.shared = shared
        Thread.detachNewThread {
            let status = LiveProcesses.reap(processID)
            shared.status.withLock { $0 = status }
        }
        Thread.detachNewThread { Self.drain(descriptors.output, into: shared.output) }
        if let errors = descriptors.errors {
            Thread.detachNewThread { Self.drain(errors, into: shared.errors) }
        } else {
            shared.errors.end()
        }
    }

    deinit {
        LiveProcesses.signal(processID, SIGKILL, wholeGroup: true)
        closeInput()
    }

    /// Starts a program.
    public static func start(_ command: Command) async throws -> ChildProcess {
        let (id, descriptors) = try await Spawner.shared.run { try command.spawn() }
        return ChildProcess(command, id, descriptors)
    }

    private static func drain(_ descriptor: Int32, into buffer: OutputBuffer) {
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count > 0 {
                buffer.append(chunk[..<count])
            } else if count == 0 || errno != EINTR {
                // A terminal whose last user is gone says EIO, not end of file.
                break
            }
        }
        close(descriptor)
        buffer.end()
    }

    // MARK: Output

    private func buffer(_ stream: Stream) -> OutputBuffer { stream == .output ? shared.output : shared.errors }

    /// The bytes of a stream so far (the last `outputLimit` of them).
    public func bytes(_ stream: Stream = .output) -> [UInt8] { buffer(stream).bytes }

    /// How many bytes the child has written to both streams since its start.
    var bytesWritten: Int { shared.output.total + shared.errors.total }

    /// The same as text, with damaged UTF-8 repaired.
    public func text(_ stream: Stream = .output) -> String { String(decoding: bytes(stream), as: UTF8.self) }

    /// The finished lines so far, without line ends.
    public func lines(_ stream: Stream = .output) -> [String] { buffer(stream).lines }

    /// Waits for a line that contains `text`.
    ///
    /// - Parameter previous: only lines after this one count; nil searches everything since the start.
    /// - Throws: `TimeoutError` with the end of both streams, also when the stream has ended without such a line.
    @discardableResult
    public func waitForLine(
        containing text: String, on stream: Stream = .output, after previous: Line? = nil,
        timeout: Duration = .patience
    ) async throws -> Line {
        var next = previous.map { $0.number + 1 } ?? 0
        var found: Line?
        var ended = false
        _ = try await eventually(timeout: timeout) {
            try Task.checkCancellation()
            let news = buffer(stream).lines(from: next)
            if let index = news.lines.firstIndex(where: { text.isEmpty || $0.contains(text) }) {
                found = Line(number: news.first + index, text: news.lines[index])
            }
            next = news.first + news.lines.count
            ended = news.ended
            return found != nil || ended
        }
        if let found { return found }
        throw TimeoutError(
            "\(name) \(ended ? "ended" : "went on for \(timeout)") without a line containing \"\(text)\"; \(report)")
    }

    /// Waits for the line after `previous`, or the first.
    public func nextLine(
        on stream: Stream = .output, after previous: Line? = nil, timeout: Duration = .patience
    ) async throws -> Line {
        try await waitForLine(containing: "", on: stream, after: previous, timeout: timeout)
    }

    /// The end of both streams, for failure messages.
    public var report: String {
        func tail(_ stream: Stream) -> String {
            lines(stream).suffix(20).joined(separator: "\n") + "\n"
        }
        return "\(name) (\(exitStatus.map { "\($0)" } ?? "running")) output:\n\(tail(.output))errors:\n\(tail(.errors))"
    }

    // MARK: Input

    /// Writes all bytes to the child's input, which needs `input: .pipe` or a terminal.
    public func write(_ bytes: some Collection<UInt8> & Sendable) async throws {
        var rest = Array(bytes)
        while !rest.isEmpty {
            let (count, code) = shared.input.withLock { descriptor -> (Int, Int32) in
                guard let descriptor else { return (-1, EPIPE) }
                return writeWithoutSignal(descriptor, rest)
            }
            if count > 0 {
                rest.removeFirst(count)
            } else if code == EAGAIN {
                try await Task.sleep(for: .milliseconds(1))
            } else if code != EINTR {
                throw SystemCallError("writing to \(name)", code)
            }
        }
    }

    /// Writes text to the child's input.
    public func write(_ text: String) async throws { try await write(Array(text.utf8)) }

    /// Closes the child's input, so that it reads the end of file.
    public func closeInput() {
        shared.input.withLock { descriptor in
            if let open = descriptor { close(open) }
            descriptor = nil
        }
    }

    // MARK: Signals and the end

    /// Sends a signal to the child; KILL, STOP and CONT go to its whole process group.
    ///
    /// - Returns: whether it still ran.
    @discardableResult
    public func signal(_ signal: Int32) -> Bool {
        LiveProcesses.signal(processID, signal, wholeGroup: [SIGKILL, SIGSTOP, SIGCONT].contains(signal))
    }

    /// How the child ended; nil while it runs.
    public var exitStatus: ExitStatus? { shared.status.withLock { $0 } }

    /// Waits until the child has ended.
    public func waitForExit(timeout: Duration = .patience) async throws -> ExitStatus {
        _ = await eventually(timeout: timeout, every: .milliseconds(2)) { exitStatus != nil || Task.isCancelled }
        if let exitStatus { return exitStatus }
        try Task.checkCancellation()
        throw TimeoutError("\(name) did not exit within \(timeout); \(report)")
    }

    /// Waits until the child has ended and everything that it wrote has been read.
    public func waitForEnd(timeout: Duration = .patience) async throws -> ExitStatus {
        let status = try await waitForExit(timeout: timeout)
        _ = await eventually(every: .milliseconds(2)) {
            shared.output.lines(from: .max).ended && shared.errors.lines(from: .max).ended
        }
        return status
    }

    /// Asks the child to end with SIGTERM, and kills it when it has not within `grace`.
    @discardableResult
    public func stop(grace: Duration = .patience) async -> ExitStatus? {
        signal(SIGTERM)
        signal(SIGCONT)
        if let status = try? await waitForExit(timeout: grace) { return status }
        return await kill()
    }

    /// Kills the child's process group and waits until it is gone.
    @discardableResult
    public func kill() async -> ExitStatus? {
        signal(SIGKILL)
        // Waited for even in a cancelled task: the next user of its ports must find them free.
        return await Task.detached { [self] in try? await waitForExit() }.value
    }
}

/// Writes without the SIGPIPE that a reader who is gone causes, and without ignoring that signal for the whole process:
/// the libraries under test have to avoid it themselves.
private func writeWithoutSignal(_ descriptor: Int32, _ bytes: [UInt8]) -> (count: Int, code: Int32) {
    var pipeSignal = sigset_t()
    var previous = sigset_t()
    sigemptyset(&pipeSignal)
    sigaddset(&pipeSignal, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &pipeSignal, &previous)
    let count = write(descriptor, bytes, bytes.count)
    let code = count < 0 ? errno : 0
    var waiting = sigset_t()
    sigpending(&waiting)
    if code == EPIPE, sigismember(&waiting, SIGPIPE) == 1 {
        var number: Int32 = 0
        sigwait(&pipeSignal, &number)
    }
    pthread_sigmask(SIG_SETMASK, &previous, nil)
    return (count, code)
}

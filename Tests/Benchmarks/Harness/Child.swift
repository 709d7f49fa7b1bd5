import Foundation
import Synchronization

/// A program that this one started: the leader of a process group, of which nothing outlives its end.
///
/// A thread of its own starts it and waits for it: the brokers in C ask the system to kill them when the thread that
/// started them ends, and a thread of the pool may end at any time. Foundation's `Process` takes a program for running as
/// long as anything that it started does.
final class Child: Sendable {
    private enum State {
        case starting
        case running(pid_t)
        case ended(Int32)
        case failed(Int32)
    }

    private let state = Mutex(State.starting)
    private let started = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let output: FileHandle

    init(_ program: String, _ arguments: [String]) throws {
        let pipe = Pipe()
        output = pipe.fileHandleForReading
        let writing = pipe.fileHandleForWriting
        for end in [output, writing] { _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC) }
        Thread.detachNewThread { self.live(program, arguments, writing) }
        started.wait()
        if case .failed(let code) = state.withLock({ $0 }) {
            throw Shell.Failure(description: String(cString: strerror(code)))
        }
    }

    private func live(_ program: String, _ arguments: [String], _ writing: FileHandle) {
        var id: pid_t = 0
        let code = Self.spawn(program, arguments, output: writing.fileDescriptor, &id)
        try? writing.close()
        state.withLock { $0 = code == 0 ? .running(id) : .failed(code) }
        started.signal()
        guard code == 0 else { return }
        var information = siginfo_t()
        // Still there afterwards, so that its number is nobody else's.
        while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        kill(-id, SIGKILL)
        var status: Int32 = 0
        state.withLock { state in
            while waitpid(id, &status, 0) < 0, errno == EINTR {}
            // The status that it left with, or 128 and the signal's number, as shells say it.
            state = .ended(status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + status & 0x7f)
        }
        ended.signal()
    }

    private static func spawn(_ program: String, _ arguments: [String], output: Int32, _ id: inout pid_t) -> Int32 {
        #if os(tvOS) || os(watchOS)
            // These systems start no other programs.
            return ENOTSUP
        #else
            #if canImport(Darwin)
                var actions: posix_spawn_file_actions_t?
                var attributes: posix_spawnattr_t?
            #else
                var actions = posix_spawn_file_actions_t()
                var attributes = posix_spawnattr_t()
            #endif
            posix_spawn_file_actions_init(&actions)
            posix_spawn_file_actions_adddup2(&actions, output, 1)
            posix_spawnattr_init(&attributes)
            var signals = sigset_t()
            sigemptyset(&signals)
            posix_spawnattr_setsigmask(&attributes, &signals)
            posix_spawnattr_setpgroup(&attributes, 0)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
            var environment = ProcessInfo.processInfo.environment
            environment["LD_PRELOAD"] = nil
            let words = ([program] + arguments).map { strdup($0) } + [nil]
            let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
            defer {
                for word in words + variables { free(word) }
                posix_spawn_file_actions_destroy(&actions)
                posix_spawnattr_destroy(&attributes)
            }
            return posix_spawn(&id, program, &actions, &attributes, words, variables)
        #endif
    }

    /// Kills the whole group.
    func end() {
        state.withLock { state in
            if case .running(let id) = state { kill(-id, SIGKILL) }
        }
    }

    /// The first line that it prints, without the end of the line.
    func firstLine(timeLimit: Duration) throws -> String? {
        var line: [UInt8] = []
        let deadline = ContinuousClock.now + timeLimit
        while let byte = try read(1, until: deadline).first {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }

    /// All that it prints until its end, and its status; what takes longer than `timeLimit` is killed.
    func waitForEnd(timeLimit: Duration) throws -> (output: String, status: Int32) {
        let deadline = ContinuousClock.now + timeLimit
        defer { end() }
        var bytes: [UInt8] = []
        while true {
            let chunk = try read(1 << 16, until: deadline)
            if chunk.isEmpty { break }
            bytes += chunk
        }
        guard ended.wait(timeout: .now() + 10) == .success, case .ended(let status) = state.withLock({ $0 }) else {
            throw Shell.Failure(description: "it closed its output and did not end")
        }
        return (String(decoding: bytes, as: UTF8.self), status)
    }

    /// What has come, at most `count` bytes; empty at the end of the output.
    private func read(_ count: Int, until deadline: ContinuousClock.Instant) throws -> [UInt8] {
        var entry = pollfd(fd: output.fileDescriptor, events: Int16(POLLIN), revents: 0)
        let left = max(.zero, deadline - ContinuousClock.now) / .milliseconds(1)
        guard poll(&entry, 1, Int32(min(left, 1e9))) != 0 else {
            throw Shell.Failure(description: "nothing came from it within the time that it has, and it was killed")
        }
        var buffer = [UInt8](repeating: 0, count: count)
        let got = Foundation.read(output.fileDescriptor, &buffer, count)
        return Array(buffer.prefix(max(0, got)))
    }
}

import Foundation
import Synchronization

/// The children that have not been reaped. A signal is sent only under this lock, so it never meets a process id that
/// the system has given to somebody else.
enum LiveProcesses {
    private static let live = Mutex<Set<pid_t>>([])

    static func insert(_ id: pid_t) {
        live.withLock { _ = $0.insert(id) }
    }

    /// - Returns: whether the child was there to be signalled.
    @discardableResult
    static func signal(_ id: pid_t, _ signal: Int32, wholeGroup: Bool) -> Bool {
        live.withLock { live in
            guard live.contains(id) else { return false }
            return kill(wholeGroup ? -id : id, signal) == 0
        }
    }

    /// Waits on the calling thread until the child has exited, ends what it left behind in its process group, and
    /// reaps it.
    static func reap(_ id: pid_t) -> ExitStatus {
        var information = siginfo_t()
        // WNOWAIT: it stays a zombie, so its id and its group's stay ours until the lock is held.
        while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        return live.withLock { live in
            kill(-id, SIGKILL)
            var status: Int32 = 0
            while waitpid(id, &status, 0) < 0, errno == EINTR {}
            live.remove(id)
            let terminationSignal = status & 0x7F
            return terminationSignal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(terminationSignal)
        }
    }

    /// Whether every thread of a process group is stopped; true where the system does not report it.
    static func isStopped(group: pid_t) -> Bool {
        let files = FileManager.default
        for process in (try? files.contentsOfDirectory(atPath: "/proc")) ?? [] where pid_t(process) != nil {
            guard let (_, owner) = state("/proc/\(process)/stat"), owner == group else { continue }
            for thread in (try? files.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? [] {
                guard let (state, _) = state("/proc/\(process)/task/\(thread)/stat") else { continue }
                // Stopped, or ended.
                if !["T", "t", "Z", "X"].contains(state) { return false }
            }
        }
        return true
    }

    /// The state and the process group of a process or thread; nil when it is gone.
    private static func state(_ path: String) -> (String, pid_t)? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        // The second field, the program's name in parentheses, may contain anything; the third follows it.
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        guard fields.count > 3, let group = pid_t(fields[3]) else { return nil }
        return (String(fields[1]), group)
    }

    static func killAll() {
        live.withLock { live in
            for id in live { kill(-id, SIGKILL) }
        }
    }
}

/// How a child ended.
public enum ExitStatus: Sendable, Hashable {
    case exited(Int32)
    case signalled(Int32)
}

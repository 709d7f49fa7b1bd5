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

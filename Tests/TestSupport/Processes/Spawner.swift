import Foundation
import Synchronization

/// The one thread that all children are started from.
///
/// The kernel sends a parent-death signal when the *thread* that forked ends, so that thread has to live as long as we.
final class Spawner: Sendable {
    static let shared = Spawner()

    private typealias Job = @Sendable () -> Void
    private struct Queue {
        var jobs: [Job] = []
    }

    private let queue = Mutex(Queue())
    private let pending = DispatchSemaphore(value: 0)

    private init() {
        ExitHandler.install()
        Thread.detachNewThread { [self] in
            while true {
                pending.wait()
                let job = queue.withLock { $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }
                job?()
            }
        }
    }

    func run<Success: Sendable>(_ work: @escaping @Sendable () throws -> Success) async throws -> Success {
        try await withCheckedThrowingContinuation { continuation in
            queue.withLock { $0.jobs.append { continuation.resume(with: Result { try work() }) } }
            pending.signal()
        }
    }
}

/// A failed system call of the test support, with its name.
public struct SystemCallError: Error, CustomStringConvertible, Sendable {
    public let description: String

    init(_ call: String, _ code: Int32 = errno) {
        description = "\(call) failed: \(String(cString: strerror(code))) (\(code))"
    }
}

/// The descriptors that the parent keeps of a child's input and output.
struct ChildDescriptors: Sendable {
    var input: Int32?
    var output: Int32
    var errors: Int32?
}

#if os(tvOS) || os(watchOS)
    extension Command {
        /// These systems start no other programs.
        func spawn() throws -> (id: pid_t, descriptors: ChildDescriptors) {
            throw SystemCallError("posix_spawn", ENOTSUP)
        }
    }
#else
    extension Command {
        /// Starts the program; runs on the spawner's thread.
        func spawn() throws -> (id: pid_t, descriptors: ChildDescriptors) {
            let vector = try launchVector()
            #if canImport(Darwin)
                var actions: posix_spawn_file_actions_t?
                var attributes: posix_spawnattr_t?
            #else
                var actions = posix_spawn_file_actions_t()
                var attributes = posix_spawnattr_t()
            #endif
            posix_spawn_file_actions_init(&actions)
            posix_spawnattr_init(&attributes)
            defer {
                posix_spawn_file_actions_destroy(&actions)
                posix_spawnattr_destroy(&attributes)
            }
            if let directory, addChangeOfDirectory(&actions, directory) != 0 {
                throw SystemCallError("posix_spawn_file_actions_addchdir_np")
            }

            var theirs: [Int32] = []
            defer { for descriptor in theirs { close(descriptor) } }
            let ours: ChildDescriptors
            if let terminal {
                let (master, name) = try openTerminal(terminal)
                ours = ChildDescriptors(input: master, output: master, errors: nil)
                // The leader of a new session makes the first terminal that it opens its controlling terminal.
                posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
                posix_spawn_file_actions_adddup2(&actions, 0, 1)
                posix_spawn_file_actions_adddup2(&actions, 0, 2)
            } else {
                var input: Int32?
                switch self.input {
                case .null:
                    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
                case .pipe:
                    let (read, write) = try makePipe()
                    theirs.append(read)
                    input = write
                    posix_spawn_file_actions_adddup2(&actions, read, 0)
                }
                let (output, outputWrite) = try makePipe()
                theirs.append(outputWrite)
                let (errors, errorsWrite) = try makePipe()
                theirs.append(errorsWrite)
                posix_spawn_file_actions_adddup2(&actions, outputWrite, 1)
                posix_spawn_file_actions_adddup2(&actions, errorsWrite, 2)
                ours = ChildDescriptors(input: input, output: output, errors: errors)
            }
            var flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
            #if canImport(Darwin)
                flags |= Int32(POSIX_SPAWN_CLOEXEC_DEFAULT)
                let newSession = Int32(POSIX_SPAWN_SETSID)
            #else
                // Sockets of other tests must not live on in a broker, close-on-exec or not.
                addCloseFrom(&actions, 3)
                let newSession: Int32 = 0x80  // POSIX_SPAWN_SETSID, which the Glibc module leaves out
            #endif
            flags |= terminal == nil ? Int32(POSIX_SPAWN_SETPGROUP) : newSession
            var none = sigset_t()
            sigemptyset(&none)
            posix_spawnattr_setsigmask(&attributes, &none)
            var all = sigset_t()
            sigfillset(&all)
            posix_spawnattr_setsigdefault(&attributes, &all)
            posix_spawnattr_setpgroup(&attributes, 0)
            posix_spawnattr_setflags(&attributes, Int16(flags))

            let arguments = vector.map { strdup($0) } + [nil]
            let environment = launchEnvironment().map { strdup($0) } + [nil]
            defer { for pointer in arguments + environment { free(pointer) } }
            var id: pid_t = 0
            let result = posix_spawn(&id, vector[0], &actions, &attributes, arguments, environment)
            guard result == 0 else {
                for descriptor in Set([ours.input, ours.output, ours.errors].compactMap(\.self)) { close(descriptor) }
                throw SystemCallError("posix_spawn of \(vector[0])", result)
            }
            LiveProcesses.insert(id)
            return (id, ours)
        }

        private func makePipe() throws -> (read: Int32, write: Int32) {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw SystemCallError("pipe") }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            return (ends[0], ends[1])
        }

        private func openTerminal(_ size: TerminalSize) throws -> (master: Int32, name: String) {
            #if canImport(Darwin)
                let master = posix_openpt(O_RDWR | O_NOCTTY)
                guard master >= 0, grantpt(master) == 0, unlockpt(master) == 0, let path = ptsname(master) else {
                    throw SystemCallError("posix_openpt")
                }
                let name = String(cString: path)
            #else
                // What posix_openpt, unlockpt and ptsname do; the Glibc module leaves them out.
                let master = open("/dev/ptmx", O_RDWR | O_NOCTTY)
                var unlocked: Int32 = 0
                var number: UInt32 = 0
                guard master >= 0, ioctl(master, 0x4004_5431, &unlocked) == 0, ioctl(master, 0x8004_5430, &number) == 0
                else {
                    throw SystemCallError("opening a terminal")
                }
                let name = "/dev/pts/\(number)"
            #endif
            _ = fcntl(master, F_SETFD, FD_CLOEXEC)
            var window = winsize(ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0)
            _ = ioctl(master, UInt(TIOCSWINSZ), &window)
            return (master, name)
        }
    }

    #if canImport(Darwin)
        private func addChangeOfDirectory(_ actions: inout posix_spawn_file_actions_t?, _ path: String) -> Int32 {
            #if os(macOS)
                if #available(macOS 26, *) {
                    return posix_spawn_file_actions_addchdir(&actions, path)
                }
                return posix_spawn_file_actions_addchdir_np(&actions, path)
            #else
                // The other systems start a program in the folder of this one.
                return ENOTSUP
            #endif
        }
    #else
        /// The Glibc module leaves out both calls, though the library has them since 2.29 and 2.34.
        private func addChangeOfDirectory(_ actions: inout posix_spawn_file_actions_t, _ path: String) -> Int32 {
            typealias Function =
                @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, UnsafePointer<CChar>) -> Int32
            guard let symbol = dlsym(nil, "posix_spawn_file_actions_addchdir_np") else { return -1 }
            return unsafeBitCast(symbol, to: Function.self)(&actions, path)
        }

        private func addCloseFrom(_ actions: inout posix_spawn_file_actions_t, _ lowest: Int32) {
            typealias Function = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
            guard let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else { return }
            _ = unsafeBitCast(symbol, to: Function.self)(&actions, lowest)
        }
    #endif
#endif

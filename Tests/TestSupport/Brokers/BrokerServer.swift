import Foundation
import Synchronization

/// A broker that runs as a child process and can be ended, paused and started again on the same ports and data.
public protocol RunningBroker: AnyObject, Sendable {
    var server: BrokerServer { get }
}

extension RunningBroker {
    /// Ends it in the ordinary way (SIGTERM), so that it saves what it saves.
    public func stop() async { await server.stop() }

    /// Kills it (SIGKILL): no farewell to clients, nothing saved.
    public func kill() async { await server.kill() }

    /// Starts it again on the same ports and data, after ending it with SIGTERM if it still runs.
    public func restart() async throws { try await server.restart() }

    /// Starts it again on the same ports and data, without waiting until it serves clients: the second of a pair does not
    /// while the first has their lock.
    public func launch() async throws { _ = try await server.launch() }

    /// Suspends all its processes, and returns when they stand still: connections stay open and nothing answers.
    public func freeze() async { await server.freeze() }

    /// Resumes it after `freeze()`.
    public func thaw() { server.thaw() }

    public var isRunning: Bool { server.isRunning }

    /// The end of what it logged, for failure messages.
    public var log: String { server.log }
}

/// The process behind a broker, and how to tell that it is ready.
public final class BrokerServer: Sendable {
    private let command: Command
    private let scratch: ScratchDirectory
    private let logFiles: [String]
    private let isHeavy: Bool
    private let lastWork: String?
    private let ports: [Int]
    private let isReady: @Sendable () async throws -> Bool
    private let process = Mutex<ChildProcess?>(nil)

    /// - Parameters:
    ///   - isHeavy: whether its start occupies all cores, so that only few of its kind may start at a time.
    ///   - lastWork: what it writes when it has occupied the cores and only waits before it is ready, so that another may
    ///     start.
    ///   - ports: each must accept connections before the broker is ready: a broker opens one after the other.
    ///   - isReady: tries the broker once; an error counts as "not yet".
    init(
        _ command: Command, in scratch: ScratchDirectory, logFiles: [String] = [], isHeavy: Bool = true,
        lastWork: String? = nil, ports: [Int?], isReady: @escaping @Sendable () async throws -> Bool
    ) {
        self.command = command
        self.scratch = scratch
        self.logFiles = logFiles
        self.isHeavy = isHeavy
        self.lastWork = lastWork
        self.ports = ports.compactMap(\.self)
        self.isReady = isReady
    }

    func start() async throws {
        guard isHeavy else { return try await startNow() }
        try await Turn.lend {
            let child = try await Permits.starts.hold {
                let child = try await begin()
                try await wait(for: child) {
                    if let lastWork, hasSaid(lastWork) { true } else { await serves() }
                }
                return child
            }
            try await finish(child)
        }
    }

    /// Starts it without asking whether others are starting, and waits until it is ready.
    func startNow() async throws { try await finish(begin()) }

    private func begin() async throws -> ChildProcess {
        let child = try await launch()
        AtWork.note("starts", command.executable)
        return child
    }

    private func finish(_ child: ChildProcess) async throws {
        try await wait(for: child, until: serves)
        AtWork.note("ready", command.executable)
    }

    private func serves() async -> Bool {
        guard (try? await isReady()) == true else { return false }
        return await listensEverywhere()
    }

    /// How long that takes depends on the machine, so the wait ends when the broker has exited or makes no progress.
    private func wait(for child: ChildProcess, until condition: () async -> Bool) async throws {
        var progress = StartProgress()
        var failure: String?
        while failure == nil {
            if child.exitStatus != nil { failure = "has exited instead of becoming ready" }
            try Task.checkCancellation()
            if await condition() { return }
            failure = failure ?? progress.failure(output: child.bytesWritten, processID: child.processID)
            try await Task.sleep(for: .milliseconds(10))
        }
        throw TimeoutError("the broker \(failure ?? ""); \(child.report)log:\n\(log)")
    }

    func launch() async throws -> ChildProcess {
        let child = try await ChildProcess.start(command)
        process.withLock { $0 = child }
        return child
    }

    private func listensEverywhere() async -> Bool {
        for port in ports where (try? await RawConnection.open(port: port)) == nil { return false }
        return true
    }

    var isRunning: Bool { process.withLock { $0 }.map { $0.exitStatus == nil } ?? false }

    /// A broker that is killed before it has saved its sessions comes back without them, so it may take its time.
    func stop() async { await process.withLock { $0 }?.stop() }

    func kill() async { await process.withLock { $0 }?.kill() }

    func restart() async throws {
        if isRunning { await stop() }
        try await start()
    }

    func freeze() async {
        guard let child = process.withLock({ $0 }) else { return }
        child.signal(SIGSTOP)
        // On a busy machine a thread may still run for a moment.
        _ = await eventually { LiveProcesses.isStopped(group: child.processID) }
    }

    func thaw() { process.withLock { $0 }?.signal(SIGCONT) }

    /// Whether it has written that to its output.
    func hasSaid(_ words: String) -> Bool {
        process.withLock { $0 }?.text().contains(words) ?? false
    }

    var log: String {
        let files = logFiles.compactMap { FileManager.default.contents(atPath: $0) }
            .map { String(decoding: $0.suffix(8192), as: UTF8.self) }
        return ([process.withLock { $0 }?.report].compactMap(\.self) + files).joined(separator: "\n")
    }
}

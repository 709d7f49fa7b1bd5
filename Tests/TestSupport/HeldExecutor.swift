import Dispatch
import Synchronization

/// Holds the jobs of its tasks until ``run()``, so that a test decides what has happened when a waiting task continues.
public final class HeldExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    public init() {}

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs the jobs that are held, and those that they add.
    public func run() async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                while let job = self.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                    job.runSynchronously(on: self.asUnownedTaskExecutor())
                }
                continuation.resume()
            }
        }
    }

    /// Runs all jobs until `task` has ended.
    public func run<Success>(until task: Task<Success, Never>) async -> Success {
        let hasEnded = Atomic(false)
        let waiting = Task {
            defer { hasEnded.store(true, ordering: .releasing) }
            return await task.value
        }
        while !hasEnded.load(ordering: .acquiring) {
            await run()
            await Task.yield()
        }
        return await waiting.value
    }
}

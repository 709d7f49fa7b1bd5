import Dispatch
import Synchronization

/// Runs and counts what its tasks do on no actor: a call of a caller on an actor that leaves it costs a job here.
public final class CountingExecutor: TaskExecutor {
    private let count = Atomic(0)

    public init() {}

    /// The jobs so far.
    public var jobs: Int { count.load(ordering: .relaxed) }

    public func enqueue(_ job: consuming ExecutorJob) {
        count.add(1, ordering: .relaxed)
        let job = UnownedJob(job)
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

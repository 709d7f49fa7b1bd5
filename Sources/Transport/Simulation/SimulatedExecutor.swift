import Synchronization

/// Runs the tasks of a simulation's body on its loop. Not the loop itself, which cannot afford to ask who hands work in.
package final class SimulatedExecutor: TaskExecutor {
    private let loop = Lock<EventLoop?>(nil)

    /// Sets the loop; called before the first task.
    package func run(on loop: EventLoop) { self.loop.withLock { $0 = loop } }

    package func enqueue(_ job: consuming ExecutorJob) {
        guard let loop = loop.withLock({ $0 }) else { return }
        if !loop.isCurrent { loop.world?.foreignWorkArrived() }
        loop.run(UnownedJob(job))
    }
}

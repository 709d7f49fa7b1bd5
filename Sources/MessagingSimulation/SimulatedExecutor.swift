import Synchronization
package import Transport

/// Runs the tasks of a simulation's body on its loop, or in builds with `-D SIMULATION` on threads beside it.
package final class SimulatedExecutor: TaskExecutor {
    private struct Target: Sendable {
        /// Weak, because the loop holds on to its world, and the world to its executor.
        weak var loop: EventLoop?
    }

    private let target = Lock(Target())

    /// Sets the loop; called before the first task.
    package func run(on loop: EventLoop) { target.withLock { $0.loop = loop } }

    package func enqueue(_ job: consuming ExecutorJob) {
        // Nothing runs on a loop that has ended.
        guard let loop = target.withLock({ $0.loop }), let world = loop.world else { return }
        world.run(UnownedJob(job), on: loop)
    }
}

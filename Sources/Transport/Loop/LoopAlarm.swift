/// One deadline of somebody who is not a connection: calls a closure on the loop's thread.
package final class LoopAlarm: LoopHandler, @unchecked Sendable {
    // Sendable because the closure is, and never changes.
    private let fire: @Sendable (Int64) -> Void

    package init(loop: EventLoop, fire: @escaping @Sendable (Int64) -> Void) {
        self.fire = fire
        super.init(loop: loop)
    }

    /// Sets, moves or (with `.max`) cancels the alarm; on the loop's thread.
    package func set(_ deadline: Int64) {
        loop.setDeadline(self, to: deadline)
    }

    override package func deadlineReached(at now: Int64) {
        fire(now)
    }
}

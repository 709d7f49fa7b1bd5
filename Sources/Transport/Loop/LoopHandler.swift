/// Something that lives on an event loop: it is notified when its descriptor is ready, when its deadline has come, and
/// of the codes that are posted to it.
///
/// A base class rather than a protocol so that the loop's bookkeeping lies inside the one object that each
/// connection needs anyway.
@usableFromInline
package class LoopHandler: @unchecked Sendable {
    // Sendable because the bookkeeping below is touched on the loop's thread only;
    // subclasses state how their own fields are kept.
    package let loop: EventLoop
    // Safe without checks for overlapping accesses: only the loop's bookkeeping reads and writes them, one at a time.
    @safe @exclusivity(unchecked) final var timerIndex = -1
    @safe @exclusivity(unchecked) final var deadline = Int64.max
    @safe @exclusivity(unchecked) final var token: Int64 = -1

    init(loop: EventLoop) {
        self.loop = loop
    }

    /// The descriptor that was registered is ready. On the loop's thread.
    package func ready(_ readiness: Readiness, at now: Int64) {}

    /// The deadline that was set has come. On the loop's thread.
    package func deadlineReached(at now: Int64) {}

    /// `loop.post(_:_:)` was called with `code`. On the loop's thread.
    package func posted(_ code: Int, at now: Int64) {}
}

/// One deadline that does not belong to a connection: calls a closure on the loop's thread.
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

import MessagingWire
import Transport

/// A thread for the files of a simulation: its jobs run on the loop, one after the other, each after the time that the disk
/// needs.
final class SimulatedThread: @unchecked Sendable {
    // Sendable because everything is touched on the loop's thread only.
    private let loop: EventLoop
    private let world: SimulatedWorld
    /// Each keeps this object until its job has run.
    private var alarms = Ring<LoopAlarm>()
    private var last: Int64 = 0

    init(_ loop: EventLoop, _ world: SimulatedWorld) {
        self.loop = loop
        self.world = world
    }

    func run(_ job: @escaping @Sendable () -> Void) {
        loop.execute { [self] in
            let due = loop.now.advanced(byNanoseconds: world.diskDelay())
            guard due > loop.now || !alarms.isEmpty else { return job() }
            last = max(due, last + 1)
            let alarm = LoopAlarm(loop: loop) { [self] _ in
                let own = alarms.popFirst()
                withExtendedLifetime(own) { job() }
            }
            alarms.append(alarm)
            alarm.set(last)
        }
    }
}

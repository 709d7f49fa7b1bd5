import Synchronization

/// What decides, in place of the system, what happens on the loop of a ``ManualClock``: in which order work runs, when time
/// passes, what the network and the disk do, and every random number. A simulation is the only one; without it a loop asks
/// nobody.
package protocol LoopWorld: AnyObject, Sendable {
    // MARK: Order and time

    /// Whether the world has begun, and has not ended.
    var isActive: Bool { get }
    /// Whether the caller is on a thread of the world.
    func isOnThread(of loop: EventLoop) -> Bool
    /// Runs the next piece of a task that has no executor.
    func run(_ task: UnownedJob, on loop: EventLoop)
    /// Work from another thread has arrived.
    func foreignWorkArrived(isTask: Bool, on loop: EventLoop)
    /// The order in which tasks and other work run, and the tasks that wait for a later round.
    ///
    /// - Returns: numbers: those of tasks from 0 on, and those of other work, which keeps its order, behind them.
    func arrange(_ taskCount: Int, among otherCount: Int) -> (now: [Int], later: [Int])
    /// A round of the loop is over.
    func finishRound()
    /// Lets the other threads of the world run, if there are any and one of them has something to do.
    func letOthersRun() -> Bool
    /// Whether time may pass to the next deadline.
    func mayPassTime(to next: Int64) -> Bool
    /// Milliseconds since 1970.
    func timeOfDay(at now: Int64) -> Int64
    func nextRandom() -> UInt64

    // MARK: Clients

    /// Describes a client in the report of a failure; nil when it is gone or has nothing to tell.
    func describe(_ client: @escaping @Sendable () -> String?)

    func taskBegan()
    func taskEnded()

    // MARK: Network and disk

    /// The network of the device that the clients are on.
    var monitor: NetworkMonitor { get }
    /// A port that no other service of this world has.
    func makePort() -> Int
    /// Connects to a service of this world.
    func connect(
        to endpoint: Endpoint, timeout: Int64, on loop: EventLoop
    ) async throws(TransportError) -> any ByteStream
    /// The disk that files of the world are on.
    var files: any Disk { get }
    /// What runs jobs in place of a thread, one after the other.
    func makeThread(on loop: EventLoop) -> @Sendable (_ job: @escaping @Sendable () -> Void) -> Void

    #if SIMULATION
        // MARK: Locks

        /// The calling thread is about to take a lock, or has given one back: another thread of the world may run.
        func lockWillBeTaken()
        func lockWasGivenBack()
        /// From now on, or until now, the calling thread does not let others run.
        func threadIsHeld(_ isHeld: Bool)
    #endif
}

/// The threads on which worlds run now.
package enum WorldThreads {
    private static let active = Atomic(0)
    /// By the numbers of their threads. Not a `Lock`, which asks for the world of its thread in builds with `-D SIMULATION`.
    private static let loops = Mutex<[UInt: EventLoop]>([:])

    /// The calling thread runs the world of `loop` from now on.
    package static func begin(on loop: EventLoop) {
        loops.withLock { $0[currentThreadNumber] = loop }
        active.add(1, ordering: .acquiringAndReleasing)
    }

    package static func end() {
        active.subtract(1, ordering: .acquiringAndReleasing)
        loops.withLock { $0[currentThreadNumber] = nil }
    }

    /// The loop whose world runs on this thread, if there is one.
    package static var currentLoop: EventLoop? {
        guard active.load(ordering: .acquiring) > 0 else { return nil }
        return loops.withLock { $0[currentThreadNumber] }
    }

    /// The world that runs on this thread, if there is one.
    package static var current: (any LoopWorld)? { currentLoop?.world }
}

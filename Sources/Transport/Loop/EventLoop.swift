package import MessagingWire
import Synchronization

/// One thread that waits for descriptors, deadlines and posted work, and serves every connection that lives on it.
///
/// All connections share `EventLoop.shared` unless their client asks for another thread, or for one of several. Handlers
/// run on the loop's thread, one at a time, and must never block it.
package final class EventLoop: @unchecked Sendable {
    // Sendable because `inside` is touched on the loop's thread only, and everything else is constant, atomic or
    // locked.

    /// The loop that connections use by default; it starts with its first use and lives as long as the process.
    package static let shared = EventLoop(makeSelector: SelectorKind.automatic.make)
    private static let others = Lock<[ServiceClass: SharedLoops]>([:])

    /// The loops of one quality; they live as long as the process.
    private struct SharedLoops {
        var loops: [EventLoop] = []
        /// How often one of so many was asked for: clients that share a number are spread, whatever others ask for.
        var turns: [Int: Int] = [:]
    }

    /// One of the first `count` loops whose threads have this quality, the next with each call; at least one.
    package static func shared(for quality: ServiceClass, among count: Int = 1) -> EventLoop {
        if quality == .standard, count <= 1 { return shared }
        return others.withLock { others in
            var known = others[quality] ?? SharedLoops(loops: quality == .standard ? [shared] : [])
            defer { others[quality] = known }
            var place = 0
            if count > 1 {
                place = known.turns[count, default: 0] % count
                known.turns[count] = place + 1
            }
            while known.loops.count <= place {
                known.loops.append(EventLoop(makeSelector: SelectorKind.automatic.make, quality: quality))
            }
            return known.loops[place]
        }
    }

    /// Starts a loop of its own, with its own thread.
    ///
    /// - Throws: as ``start()``.
    package static func start(selector kind: SelectorKind = .automatic) throws(TransportError) -> EventLoop {
        try start(selector: kind, time: nil)
    }

    /// - Parameter time: the time of a ``ManualClock``; nil for the system's.
    static func start(
        selector kind: SelectorKind = .automatic, time: ManualTime?
    ) throws(TransportError) -> EventLoop {
        let loop = EventLoop(makeSelector: kind.make, time: time)
        try loop.start()
        return loop
    }

    /// Posts and jobs share one queue: they run in the order in which they came.
    private enum Work {
        case post(LoopHandler, Int)
        case job(@Sendable () -> Void)
        case task(UnownedJob)
    }

    private struct Inbox {
        var work: [Work] = []
        /// The loop found nothing to do and waits, or is about to; or its thread has not started yet.
        var isAsleep = true
        var stopping = false

        /// Returns whether the loop may sleep: only the first to add work to a sleeping loop pays for waking it.
        mutating func add(_ item: Work) -> Bool {
            work.append(item)
            defer { isAsleep = false }
            return isAsleep
        }
    }

    /// What only the loop's thread touches.
    // Safe to hold: the loop frees the read buffer when it ends.
    @safe
    private struct Inside {
        var timers = TimerHeap()
        var handlers: [LoopHandler?] = []
        var generations: [Int] = []
        var freeSlots: [Int] = []
        /// What a simulation lets wait for a later round.
        var deferred: [Work] = []
        var sharedObjects: [AnyObject] = []
        /// For how long the system had slept when that was last noticed, and that sleep.
        var timeAsleep: Int64 = 0
        var lastSleep = Int64.min..<Int64.min
        /// When the round began, and whether a task ran in it.
        var roundStart: Int64 = 0
        var ranTask = false
        let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readBufferSize, alignment: 16)
    }

    /// The size of the one buffer that all connections of a loop read into. Beside its bytes a read costs some 20 µs
    /// (waking the sender and the receiver), which counts in smaller reads; the bytes of larger reads leave the
    /// processor's cache before they are parsed. Messages of 0 to 4 KiB arrive 1.5 times as fast as with 512 KiB, and
    /// 1.3 times as fast as with 64 KiB.
    package static let readBufferSize = 128 * 1024

    /// The time in nanoseconds that tasks may use the loop without a pause before that is reported.
    private static let longestHold: Int64 = 100_000_000

    /// The shortest sleep of the system that is noticed, in nanoseconds.
    private static let shortestSleep: Int64 = 1_000_000_000

    /// Pieces of work that run, if each hands in the next, before the selector is asked again. Connecting takes fewer.
    private static let longestRun = 16

    private let makeSelector: @Sendable () throws(TransportError) -> any Selector
    private let quality: ServiceClass
    /// Held by the caller that starts the thread.
    private let starting = Lock(())
    private let isStarted = Atomic(false)
    /// Set before `isStarted`, and constant from then on.
    @safe @exclusivity(unchecked) private var selector: (any Selector)!
    private let inbox = Lock(Inbox())
    /// Safe without checks: only the loop's thread touches it, and no access lasts while a handler is called. A check
    /// for overlapping accesses costs a hundred instructions, and a round trip made thirty of them: a quarter of its
    /// time.
    @safe @exclusivity(unchecked) private var inside = Inside()
    private let thread = Atomic<UInt>(0)
    private let holdReports = Lock<[HoldReport]>([])
    /// Nil where the system's clock is read.
    let manualTime: ManualTime?

    /// Makes a loop that starts with its first use.
    package convenience init(makeSelector: @escaping @Sendable () throws(TransportError) -> any Selector) {
        self.init(makeSelector: makeSelector, time: nil)
    }

    private init(
        makeSelector: @escaping @Sendable () throws(TransportError) -> any Selector, time: ManualTime? = nil,
        quality: ServiceClass = .standard
    ) {
        self.makeSelector = makeSelector
        self.quality = quality
        manualTime = time
    }

    deinit {
        unsafe inside.readBuffer.deallocate()
    }

    // MARK: From any thread

    /// The present time of all that lives on this loop: nanoseconds since some moment in the past; never goes back.
    package var now: Int64 {
        if let manualTime { return manualTime.now }
        return MonotonicClock.now
    }

    /// The present time without the sleep of the system, as far as that was noticed: for what a sleep must not use up. On the
    /// loop's thread.
    package var timeAwake: Int64 { now - inside.timeAsleep }

    /// The last sleep of the system that was noticed. On the loop's thread.
    package var lastSleep: Range<Int64> { inside.lastSleep }

    /// For how many nanoseconds the system has slept until now.
    private var timeAsleep: Int64 { manualTime?.timeAsleep ?? MonotonicClock.timeAsleep }

    /// Whether time passes only when a ``ManualClock`` is advanced.
    package var isManual: Bool { manualTime != nil }

    /// Calls `handler.posted(code)` soon. Posts and jobs run in the order in which they were handed in.
    package func post(_ handler: LoopHandler, _ code: Int) { add(.post(handler, code)) }

    /// Runs `job` soon on the loop's thread. Allocates, which `post` does not: for what is seldom done.
    package func execute(_ job: @escaping @Sendable () -> Void) { add(.job(job)) }

    /// Runs `job` at once if the caller is on the loop's thread, else soon. For a caller that holds no lock and does not
    /// need work that was handed in before to be done first.
    package func executeNow(_ job: @escaping @Sendable () -> Void) {
        if isCurrent { job() } else { execute(job) }
    }

    /// Runs the next piece of a task soon on the loop's thread.
    package func run(_ task: UnownedJob) { add(.task(task)) }

    private func add(_ item: Work) {
        if let manualTime { reportForeign(item, manualTime) }
        let maySleep = inbox.withLock { $0.add(item) }
        // What the loop's own handlers hand in, it finds before it sleeps.
        if maySleep, !isCurrent { wake() }
    }

    /// In a simulation everything is handed in by its own threads.
    private func reportForeign(_ item: Work, _ manualTime: ManualTime) {
        guard let world = manualTime.world, !world.isOnThread(of: self) else { return }
        var isTask = false
        if case .task = item { isTask = true }
        world.foreignWorkArrived(isTask: isTask, on: self)
    }

    /// Ends the thread of a loop that was started for a test or a benchmark, once all posted work is done. Work that is
    /// handed in later never runs; descriptors that are still watched are released, not closed.
    package func stop() {
        inbox.withLock { $0.stopping = true }
        wake()
    }

    /// Starts the loop's thread unless it runs.
    ///
    /// - Throws: `systemLimit` when no descriptor or thread is left for it.
    package func start() throws(TransportError) {
        try starting.withLock { (_) throws(TransportError) in
            if isStarted.load(ordering: .relaxed) { return }
            selector = try makeSelector()
            try startThread(named: "messaging-loop") {
                System.setThreadQuality(self.quality)
                self.run()
            }
            isStarted.store(true, ordering: .releasing)
        }
    }

    /// The first work of a loop that waits, or has not started. A loop that another thread is starting may have gone to
    /// sleep before this work came, so it is woken as well.
    private func wake() {
        if isStarted.load(ordering: .acquiring) || (try? start()) != nil { return selector.wake() }
        // Tasks that wait for the loop must not wait for ever; `connect()` has reported why it cannot start.
        Task {
            while (try? start()) == nil { try? await Task.sleep(for: .milliseconds(100)) }
            selector.wake()
        }
    }

    /// Whether the caller is on the loop's thread.
    package var isCurrent: Bool { currentThreadNumber == thread.load(ordering: .relaxed) }

    // MARK: On the loop's thread

    /// The buffer that handlers read into; its content is theirs until they return.
    package var readBuffer: UnsafeMutableRawBufferPointer { unsafe inside.readBuffer }

    /// Watches `descriptor` for `handler` until `unregister`.
    package func register(_ handler: LoopHandler, descriptor: Int32, interest: Readiness) {
        let slot = inside.freeSlots.popLast() ?? inside.handlers.count
        if slot == inside.handlers.count {
            inside.handlers.append(nil)
            inside.generations.append(0)
        }
        inside.handlers[slot] = handler
        handler.token = Int64(slot) | Int64(inside.generations[slot]) << 32
        selector.add(descriptor, token: handler.token, interest: interest)
    }

    package func change(_ handler: LoopHandler, descriptor: Int32, interest: Readiness) {
        guard handler.token >= 0 else { return }
        selector.change(descriptor, token: handler.token, interest: interest)
    }

    /// Watches for `handler` what was watched for another one.
    package func replace(_ known: LoopHandler, by handler: LoopHandler) {
        guard known.token >= 0 else { return }
        handler.token = known.token
        known.token = -1
        inside.handlers[Int(truncatingIfNeeded: handler.token & 0xFFFF_FFFF)] = handler
    }

    package func unregister(_ handler: LoopHandler, descriptor: Int32) {
        guard handler.token >= 0 else { return }
        selector.remove(descriptor, token: handler.token)
        forget(handler)
    }

    /// The same for a descriptor that is about to be closed.
    package func unregister(_ handler: LoopHandler, closing descriptor: Int32) {
        guard handler.token >= 0 else { return }
        selector.forget(descriptor, token: handler.token)
        forget(handler)
    }

    private func forget(_ handler: LoopHandler) {
        let slot = Int(truncatingIfNeeded: handler.token & 0xFFFF_FFFF)
        inside.handlers[slot] = nil
        // Events already fetched for the old owner carry the old generation and are dropped.
        inside.generations[slot] = (inside.generations[slot] + 1) & 0x3FFF_FFFF
        inside.freeSlots.append(slot)
        handler.token = -1
    }

    /// Sets, moves or (with `.max`) cancels the one deadline of `handler`.
    package func setDeadline(_ handler: LoopHandler, to deadline: Int64) {
        inside.timers.set(handler, to: deadline)
    }

    /// The handlers that have a deadline.
    package var alarms: [LoopHandler] { inside.timers.entries }

    /// The one object of its type that all handlers of this loop share.
    package func sharedObject<Object: AnyObject>(_ type: Object.Type, make: () -> Object) -> Object {
        // There are as many as protocols in use: two at most outside tests.
        for existing in inside.sharedObjects { if let known = existing as? Object { return known } }
        let made = make()
        inside.sharedObjects.append(made)
        return made
    }

    private func run() {
        thread.store(currentThreadNumber, ordering: .relaxed)
        sleepPrecisely()
        inside.timeAsleep = timeAsleep
        var events: [ReadyEvent] = []
        var work: [Work] = []
        /// Pieces of work since the selector was asked.
        var unpolled = Self.longestRun
        while let timeout = timeToWait() {
            events.removeAll(keepingCapacity: true)
            // Work often hands in more work, and descriptors can wait for a little of it.
            let polls = timeout > 0 || unpolled >= Self.longestRun
            if polls {
                selector.wait(timeout: timeout, events: &events)
                unpolled = 0
            }

            let now = self.now
            if timeout == 0 { _ = noticeHold(until: now) }
            let mayHaveSlept = now &- inside.roundStart >= Self.shortestSleep
            // What has arrived is read before anything is late.
            if mayHaveSlept, !polls { selector.wait(timeout: 0, events: &events) }
            let slept = mayHaveSlept ? noticeSleep(at: now) : 0
            inside.roundStart = now
            inside.ranTask = false
            for event in events {
                let slot = Int(truncatingIfNeeded: event.token & 0xFFFF_FFFF)
                guard Int64(inside.generations[slot]) == event.token >> 32 else { continue }
                inside.handlers[slot]?.ready(event.readiness, at: now)
            }
            if slept > 0 { reportSleep(of: slept, at: now) }
            inbox.withLock { inbox in
                swap(&inbox.work, &work)
                inbox.isAsleep = false
            }
            for item in work {
                switch item {
                case .post(let handler, let code): handler.posted(code, at: now)
                case .job(let job): job()
                case .task(let task):
                    inside.ranTask = true
                    unsafe task.runSynchronously(on: asUnownedTaskExecutor())
                }
            }
            // Only the selector knows whether there is something to read.
            let isQuiet = polls && events.isEmpty && work.isEmpty
            unpolled += work.isEmpty ? Self.longestRun : work.count
            work.removeAll(keepingCapacity: work.capacity <= 4096)
            // Each timer gets one turn per round: one that is always due again must not starve the descriptors.
            let count = inside.timers.count
            var turns = count
            while turns > 0, let handler = inside.timers.popExpired(at: now) {
                handler.deadlineReached(at: now)
                turns -= 1
            }
            manualTime?.finishRound(isQuiet: isQuiet && turns == count, of: self)
        }
        releaseHandlers()
    }

    /// How long the selector may wait, in nanoseconds; nil when the loop has been stopped and its work is done.
    private func timeToWait() -> Int64? {
        enum Inboxed { case work, nothing, stopped }
        let inboxed = inbox.withLock { inbox -> Inboxed in
            guard inbox.work.isEmpty else { return .work }
            if inbox.stopping { return .stopped }
            inbox.isAsleep = true
            return .nothing
        }
        switch inboxed {
        case .work: return 0
        case .stopped: return nil
        case .nothing:
            let next = inside.timers.nextDeadline
            if let manualTime {
                let timeout = manualTime.timeToWait(nextDeadline: next)
                // The clock may have ended or reported something, which may have handed in work.
                return inbox.withLock { $0.work.isEmpty } ? timeout : 0
            }
            // Most loops have a deadline, so that the time is read anyway.
            guard next != .max || inside.ranTask else { return .max }
            let present = MonotonicClock.now
            // The reader of the report may have handed in work.
            if noticeHold(until: present) { return 0 }
            return next == .max ? .max : max(0, next &- present)
        }
    }

    /// For how long the system has slept since the last round, whatever has ended the wait; 0 if that is not noticed.
    private func noticeSleep(at now: Int64) -> Int64 {
        let timeAsleep = self.timeAsleep
        let slept = timeAsleep - inside.timeAsleep
        guard slept >= Self.shortestSleep else { return 0 }
        (inside.timeAsleep, inside.lastSleep) = (timeAsleep, (now - slept)..<now)
        return slept
    }

    /// Notifies all that has a deadline.
    private func reportSleep(of slept: Int64, at now: Int64) {
        // Each of them may cancel the deadlines of others.
        for handler in inside.timers.entries where handler.deadline != .max {
            handler.systemSlept(since: now - slept, at: now)
        }
    }

    /// Reports tasks that held the thread for long, by times that the loop reads for something else; false if none did.
    private func noticeHold(until end: Int64) -> Bool {
        let time = end &- inside.roundStart
        guard inside.ranTask, time > Self.longestHold, manualTime == nil else { return false }
        inside.ranTask = false
        for report in holdReports.withLock({ $0 }) { report.value(time) }
        return true
    }

    /// Lets a simulation choose in which order the tasks that are ready run, among themselves and against the rest, which
    /// keeps its order; on the loop's thread.
    func arrange(in world: any LoopWorld) {
        inbox.withLock { inbox in
            var tasks = inside.deferred
            var others: [Work] = []
            for item in inbox.work {
                if case .task = item { tasks.append(item) } else { others.append(item) }
            }
            guard !tasks.isEmpty else { return }
            let (now, later) = world.arrange(tasks.count, among: others.count)
            let all = tasks + others
            (inbox.work, inside.deferred) = (now.map { all[$0] }, later.map { all[$0] })
            inbox.isAsleep = false
        }
    }

    /// Breaks the cycles between the loop and its handlers.
    private func releaseHandlers() {
        for slot in inside.handlers.indices {
            inside.handlers[slot]?.token = -1
            inside.handlers[slot] = nil
        }
        inside.timers.removeAll()
        inside.sharedObjects = []
    }
}

/// Tasks that prefer the loop's thread: an answer that the loop reads resumes them without another thread.
extension EventLoop: TaskExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        run(UnownedJob(job))
    }
}

extension EventLoop {
    /// Runs `job` soon on the loop's thread and returns its result.
    package nonisolated(nonsending) func result<Result: Sendable>(of job: @escaping @Sendable () -> Result) async
        -> Result
    {
        let call = PendingCall<Result>()
        execute { call.end(job()) }
        return await call.answer()
    }
}

extension EventLoop {
    package typealias HoldReport = Shared<@Sendable (_ nanoseconds: Int64) -> Void>

    /// Calls `report` on the loop's thread whenever the tasks of one round took more than 100 ms, until it is ended.
    package func reportHolds(_ report: HoldReport) { holdReports.withLock { $0.append(report) } }

    /// The tasks that run now are the last that are reported.
    package func endReport(_ report: HoldReport) {
        execute { self.holdReports.withLock { $0.removeAll { $0 === report } } }
    }
}

// MARK: - With a manual clock

extension EventLoop {
    /// Serves connections to `endpoint` that are opened on this loop without the network; nil ends that. Has an effect only
    /// with a ``ManualClock``.
    package func setService(at endpoint: Endpoint, _ accepted: (@Sendable (any ByteStream) -> Void)?) {
        manualTime?.services.withLock { $0[endpoint] = accepted }
    }

    /// A connection in memory to a service of this loop, if there is one at the endpoint.
    func connectInMemory(to endpoint: Endpoint) -> MemoryStream? { manualTime?.connect(to: endpoint) }

    /// What accepts connections to a service of this loop.
    package func service(at endpoint: Endpoint) -> (@Sendable (any ByteStream) -> Void)? {
        manualTime?.services.withLock { $0[endpoint] }
    }

    /// Cancels what sleeps on the manual clock of this loop, whose time has ended; on the loop's thread.
    package func cancelSleeps() { manualTime?.cancelSleeps() }

    /// The simulation that everything on this loop is a part of; nil outside of one.
    package var world: (any LoopWorld)? { manualTime?.world }

    /// The monitor of the network that clients of this loop are on; nil where the system has none.
    package var networkMonitor: NetworkMonitor? { world?.monitor ?? .system }

    /// Work begins outside the loop that an advance of its ``ManualClock`` waits for; from any thread.
    package func beginWork() { _ = manualTime?.workCount.add(1, ordering: .acquiringAndReleasing) }

    /// That work has ended; on the loop's thread.
    package func endWork() { _ = manualTime?.workCount.subtract(1, ordering: .acquiringAndReleasing) }

    /// Starts a task of a client; simulations count those that have not ended. From any thread.
    ///
    /// - Parameter executor: what the task prefers; nil for the pool of the concurrency runtime.
    @discardableResult
    package func startTask(
        preferring executor: EventLoop? = nil, _ body: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        world?.taskBegan()
        return Task(executorPreference: executor) {
            await body()
            self.world?.taskEnded()
        }
    }

    /// Runs a part of that work, in its task.
    package nonisolated(nonsending) func asWork(_ body: nonisolated(nonsending) () async -> Void) async {
        guard manualTime != nil else { return await body() }
        await ManualTime.$isWork.withValue(true) { await body() }
    }
}

// MARK: - What lives on a loop

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
    @safe @exclusivity(unchecked) package internal(set) final var deadline = Int64.max
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

    /// The system slept from `start` until now, and this handler has a deadline, which may have passed meanwhile. What has
    /// arrived was read before. On the loop's thread.
    package func systemSlept(since start: Int64, at now: Int64) {}
}

/// One deadline that does not belong to a connection: calls a closure on the loop's thread.
package final class LoopAlarm: LoopHandler, @unchecked Sendable {
    // Sendable because the closures are, and never change.
    private let fire: @Sendable (Int64) -> Void
    private let slept: (@Sendable (_ start: Int64, _ now: Int64) -> Void)?

    /// - Parameter slept: called when the system has slept while the alarm was set.
    package init(
        loop: EventLoop, slept: (@Sendable (_ start: Int64, _ now: Int64) -> Void)? = nil,
        fire: @escaping @Sendable (Int64) -> Void
    ) {
        self.fire = fire
        self.slept = slept
        super.init(loop: loop)
    }

    /// Sets, moves or (with `.max`) cancels the alarm; on the loop's thread.
    package func set(_ deadline: Int64) {
        loop.setDeadline(self, to: deadline)
    }

    override package func deadlineReached(at now: Int64) {
        fire(now)
    }

    override package func systemSlept(since start: Int64, at now: Int64) { slept?(start, now) }
}

/// What a descriptor is watched for, and what it was found ready for.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let read = Readiness(rawValue: 1)
    package static let write = Readiness(rawValue: 2)
    /// An error or a hang-up; reported whether asked for or not.
    package static let hangUp = Readiness(rawValue: 4)
}

/// One descriptor that is ready.
package struct ReadyEvent: Sendable {
    package let token: Int64
    package let readiness: Readiness
}

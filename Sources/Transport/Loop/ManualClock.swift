import MessagingWire
import Synchronization

/// A clock for tests: its time passes only when a test advances it. Clients and brokers that are made with it run on an
/// event loop of their own, so that keep alive, delays before an attempt, timeouts and expiry are tested in no time.
///
///     let clock = try ManualClock()
///     let broker = try await LoopbackBroker.start(clock: clock)
///     let client = try MQTTClient(broker.mqttURL, clock: clock)
///     try await client.connect()
///     await clock.advance(by: .seconds(60))
///
/// Clients and brokers with the same clock are connected in memory. Without this clock nothing changes: clients read the
/// system's clock.
public final class ManualClock: Clock {
    /// A moment on the clock.
    public struct Instant: InstantProtocol {
        let nanoseconds: Int64

        public func advanced(by duration: Duration) -> Instant {
            Instant(nanoseconds: nanoseconds.advanced(byNanoseconds: duration.inNanoseconds))
        }

        public func duration(to other: Instant) -> Duration {
            .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
        }

        public static func < (one: Instant, other: Instant) -> Bool { one.nanoseconds < other.nanoseconds }
    }

    package let loop: EventLoop

    /// Starts the event loop of the clock.
    ///
    /// - Throws: `TransportError` with the code `systemLimit` when no descriptor or thread is left for it.
    public init() throws(TransportError) {
        loop = try EventLoop.start(time: ManualTime())
    }

    /// Starts an event loop for sockets on which no time passes.
    package init(selector: SelectorKind) throws(TransportError) {
        loop = try EventLoop.start(selector: selector, time: ManualTime())
    }

    /// Starts the event loop of a simulation, where time passes by itself.
    package init(simulating world: any LoopWorld) throws(TransportError) {
        loop = try EventLoop.start(time: ManualTime(world))
    }

    deinit { loop.stop() }

    /// The present moment.
    public var now: Instant { Instant(nanoseconds: loop.now) }
    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Lets time pass, from one deadline to the next, and returns when what became due has happened in the clients and
    /// brokers that run on the clock: packets have been exchanged, attempts to connect have succeeded or failed, and their
    /// states and events have been reported.
    ///
    /// Time passes only while clients and brokers have nothing left to do at the present moment: bytes between them, an
    /// attempt to connect, a session store that is writing, a `credentialsProvider` and an authentication that responds are
    /// waited for, however long they take. A `credentialsProvider` that is to be slow sleeps on this clock.
    ///
    /// Two things are not waited for: your own tasks, so await what they do; and bytes on the network, which connects a
    /// client with a server or a proxy that does not run on the clock, and on Apple's systems also every client that uses
    /// TLS. Work that a task of yours has not begun yet therefore starts after the advance, and its time does not pass: a
    /// clock on which nothing has happened for five seconds of real time prints once, to the standard error, what it waits
    /// for.
    public func advance(by duration: Duration) async {
        let call = PendingCall<Void>()
        loop.execute { [loop] in loop.manualTime?.advance(byNanoseconds: max(0, duration.inNanoseconds), call) }
        await call.answer()
    }

    /// Returns when everything that is under way in clients and brokers at the present time has happened. Attempts to
    /// connect, session stores and credentials are not waited for.
    package func waitUntilQuiet() async {
        let call = PendingCall<Void>()
        loop.execute { [loop] in loop.manualTime?.waitUntilQuiet(call) }
        await call.answer()
    }

    /// Lets the system sleep for so long: time passes, and what is due meanwhile happens when it wakes. Returns when that has
    /// happened.
    ///
    /// - Parameter others: what happens elsewhere meanwhile; on the loop's thread.
    package func letSystemSleep(for duration: Duration, while others: @escaping @Sendable () -> Void = {}) async {
        loop.execute { [loop] in
            others()
            loop.manualTime?.sleep(forNanoseconds: max(0, duration.inNanoseconds))
        }
        await waitUntilQuiet()
    }

    /// Waits until the clock has been advanced to a moment.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let call = PendingCall<Bool>()
        // While the caller sleeps, an advance need not wait for it.
        let isWork = ManualTime.isWork
        let alarm = LoopAlarm(loop: loop) { [loop] _ in
            loop.manualTime?.sleeps[ObjectIdentifier(call)] = nil
            if call.end(true), isWork { loop.beginWork() }
        }
        let cancel: @Sendable () -> Void = { [loop] in
            loop.manualTime?.sleeps[ObjectIdentifier(call)] = nil
            alarm.set(.max)
            if call.end(false), isWork { loop.beginWork() }
        }
        loop.execute { [loop] in
            if isWork { loop.endWork() }
            alarm.set(deadline.nanoseconds)
            loop.manualTime?.begin(ObjectIdentifier(call), cancel)
        }
        let isDue = await call.answer {
        } onCancel: { [loop] in
            loop.execute(cancel)
        }
        if !isDue { throw CancellationError() }
    }
}

/// The time of an event loop with a ``ManualClock``, and what an advance waits for.
final class ManualTime: @unchecked Sendable {
    // Sendable because `nanoseconds` and `workCount` are atomic, `services` is locked, and the rest is touched on the
    // loop's thread only.

    /// Whether the task belongs to the work that an advance waits for.
    @TaskLocal static var isWork = false

    /// An hour, so that times before the start are not negative.
    private static let start: Int64 = 3_600_000_000_000
    private let nanoseconds = Atomic<Int64>(start)
    /// For how many nanoseconds the system has slept.
    private(set) var timeAsleep: Int64 = 0
    /// The time of day when the clock was made, by the system's clock.
    private let startOfDay = WallClock.milliseconds
    let services = Lock<[Endpoint: @Sendable (any ByteStream) -> Void]>([:])
    /// Work outside the loop whose end is posted to it, after its results.
    let workCount = Atomic(0)
    private var advances: [(target: Int64, call: PendingCall<Void>)] = []
    private var quietCalls: [PendingCall<Void>] = []
    /// What cancels each sleep on the clock.
    var sleeps: [ObjectIdentifier: @Sendable () -> Void] = [:]
    /// How many sleeps are cancelled as soon as they begin.
    private var cancelledSleeps = 0
    /// Nothing has happened since the selector was last asked.
    private var isQuiet = false
    /// How long nothing may happen, in nanoseconds of real time, before the clock prints what it waits for.
    var patience: Int64 = 5_000_000_000
    /// Prints a line; tests replace it.
    var warn: (String) -> Void = { ManualTime.printToStandardError($0) }
    /// When the clock began to wait, in real time; nil unless it waits for the test and has not said so.
    private var waitsSince: Int64?
    private var hasWarned = false
    /// Nil outside of a simulation.
    let world: (any LoopWorld)?

    init(_ world: (any LoopWorld)? = nil) { self.world = world }

    var now: Int64 { nanoseconds.load(ordering: .acquiring) }

    /// Milliseconds since 1970 began in UTC.
    var timeOfDay: Int64 { world?.timeOfDay(at: now) ?? startOfDay + (now - Self.start) / 1_000_000 }

    /// A connection to a service of this loop, if there is one at the endpoint.
    func connect(to endpoint: Endpoint) -> MemoryStream? {
        guard let accept = services.withLock({ $0[endpoint] }) else { return nil }
        let (client, server) = MemoryPair.make()
        accept(server)
        return client
    }

    func advance(byNanoseconds duration: Int64, _ call: PendingCall<Void>) {
        // The last moment of all means never.
        advances.append((min(now.advanced(byNanoseconds: duration), .max - 1), call))
    }

    /// Time passes while the system sleeps. The loop notices that in its next round.
    func sleep(forNanoseconds duration: Int64) {
        timeAsleep = timeAsleep.advanced(byNanoseconds: duration)
        nanoseconds.store(min(now.advanced(byNanoseconds: duration), .max - 1), ordering: .releasing)
    }

    func waitUntilQuiet(_ call: PendingCall<Void>) { quietCalls.append(call) }

    /// A sleep begins, which `cancel` ends.
    func begin(_ sleep: ObjectIdentifier, _ cancel: @escaping @Sendable () -> Void) {
        sleeps[sleep] = cancel
        guard cancelledSleeps > 0 else { return }
        cancelledSleeps -= 1
        cancel()
    }

    /// Cancels the current sleeps, whose time will not come, and the next 1,000. Not all later sleeps end at once: a
    /// task that ignores cancellation would then loop without a pause.
    func cancelSleeps() {
        cancelledSleeps = 1_000
        for cancel in sleeps.values { cancel() }
    }

    /// A round of the loop is over.
    func finishRound(isQuiet: Bool, of loop: EventLoop) {
        self.isQuiet = isQuiet
        guard let world else { return }
        loop.arrange(in: world)
        world.finishRound()
    }

    /// How long the selector may wait, in nanoseconds, when no work is posted: moves on to the next deadline once nothing
    /// is left to happen at the present time.
    func timeToWait(nextDeadline: Int64) -> Int64 {
        guard nextDeadline > now else { return 0 }
        if !quietCalls.isEmpty {
            guard isQuiet else { return 0 }
            for call in quietCalls { call.end(()) }
            quietCalls = []
            // Their callers may have work for the present time.
            return 0
        }
        if let world { return passTime(of: world, nextDeadline: nextDeadline) }
        guard !advances.isEmpty else {
            guard nextDeadline != .max else { return .max }
            let ahead = OneLine.duration(.nanoseconds(nextDeadline - now))
            return untilWarning(
                "The next thing on it is due in \(ahead). If the test hangs, advance the clock by that much after the work has begun."
            )
        }
        // The end of that work wakes the loop.
        guard workCount.load(ordering: .acquiring) == 0 else {
            return untilWarning(
                "advance(by:) waits for an attempt to connect, a session store, a credentialsProvider or an authentication that has not ended. If one of them sleeps, let it sleep on this clock."
            )
        }
        guard isQuiet else { return 0 }
        let target = advances.map(\.target).max() ?? now
        guard now < target else {
            let ended = advances
            advances = []
            for advance in ended { advance.call.end(()) }
            // Another round decides how long to wait for the test.
            return 0
        }
        nanoseconds.store(min(target, nextDeadline), ordering: .releasing)
        isQuiet = false
        return 0
    }

    /// Moves on to the next deadline of a simulation. An advance is a sleep like others there.
    private func passTime(of world: any LoopWorld, nextDeadline: Int64) -> Int64 {
        guard world.isActive else { return .max }
        if world.letOthersRun() { return 0 }
        guard isQuiet else { return 0 }
        let next = min(nextDeadline, advances.map(\.target).min() ?? .max)
        guard world.mayPassTime(to: next) else { return .max }
        nanoseconds.store(max(now, next), ordering: .releasing)
        isQuiet = false
        let ended = advances.filter { $0.target <= now }
        advances.removeAll { $0.target <= now }
        for advance in ended { advance.call.end(()) }
        return 0
    }

    /// As much of it as fits without waiting.
    private static func printToStandardError(_ text: String) {
        var text = text
        // The bytes are there for the time of the call.
        text.withUTF8 { bytes in _ = unsafe write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
    }

    /// How long the selector may wait until the clock prints what it waits for, which it does once.
    private func untilWarning(_ reason: @autoclosure () -> String) -> Int64 {
        guard !hasWarned else { return .max }
        let present = MonotonicClock.now
        guard isQuiet, let since = waitsSince else {
            waitsSince = present
            return patience
        }
        let left = since + patience - present
        if left > 0 { return left }
        hasWarned = true
        warn("ManualClock: nothing has happened on this clock for some seconds of real time. \(reason())\n")
        return .max
    }
}

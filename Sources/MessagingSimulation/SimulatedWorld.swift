import MessagingWire
import Synchronization
package import Transport

/// What decides, in a simulation, in which order what is ready runs, when time passes, what becomes of bytes on their way,
/// and every random number. All of it follows from one seed, and all of it is recorded.
package final class SimulatedWorld: LoopWorld {
    /// What the network does to bytes and connections at the moment.
    package struct Network: Sendable {
        /// Whether reads and writes take a part of the bytes only.
        package var splits = true
        /// Nanoseconds that bytes are on their way: a value from this range for each write, without overtaking.
        package var latency: ClosedRange<Int64> = 0...0
        /// Bytes that each direction of a connection carries in a second; 0 for any number.
        package var rate = 0
        /// Nanoseconds that an attempt to connect takes besides: a value from this range.
        package var connectDelay: ClosedRange<Int64> = 0...0
        /// Nanoseconds that the look-up of a name takes: a value from this range.
        package var nameDelay: ClosedRange<Int64> = 0...0
        /// Nanoseconds that a job of the disk takes: a value from this range.
        package var diskDelay: ClosedRange<Int64> = 0...0
        /// Whether names are not found.
        package var hidesNames = false
        /// Bytes of each direction of a connection that have been written and not read: what systems hold of them.
        package var capacity = 1 << 16
        /// Whether attempts to connect are refused.
        package var refuses = false
        /// Whether the device of the clients has no network.
        package var isOffline = false

        package init() {}
    }

    private struct State {
        var order: SplitMix
        var bytes: SplitMix
        var numbers: SplitMix
        var trace = SimulatedTrace()
        var network = Network()
        var links: [Int: SimulatedLink] = [:]
        var linkCount = 0
        var portCount = 0
        /// Nanoseconds.
        var longestDeath: Int64 = 0
        var longestOverdue: Int64 = 0
        /// Clients' ends of connections that are open, and the most that there were.
        var openCount = 0
        var mostOpen = 0
        /// Alarms of bytes that are on their way.
        var deliveryCount = 0
        /// Tasks of clients that have not ended, the most that there were, and the most while time passed.
        var taskCount = 0
        var mostTasks = 0
        var mostLastingTasks = 0
        var interfaceCount = 0
        /// The kinds of packets that were written, and what waits for the next one of a kind.
        var kinds: Set<PacketKind> = []
        var waiting: [(kind: PacketKind, body: @Sendable () -> Void)] = []
        /// Of the clients of this world, and what they said when it failed.
        var descriptions: [@Sendable () -> String?] = []
        var clients: [String]?
        /// The last sleep of the system, and for how long it has slept in all.
        var sleep: Range<Int64> = 0..<0
        var timeAsleep: Int64 = 0
        /// By how many milliseconds the time of day was set forward.
        var clockChange: Int64 = 0
        var isActive = false
        /// Rounds since the world began.
        var roundCount = 0
        /// Whether work from another thread has been reported.
        var isForeign = false
        /// Whether a failure has been reported.
        var hasFailed = false
        /// Rounds since time has last passed, and since then or since anything was written.
        var rounds = 0
        var idleRounds = 0
        var end: Int64
        var stalled: @Sendable (_ reason: String, _ isForeign: Bool) -> Void = { _, _ in }
        var now: Int64 = 0
    }

    private let state: Lock<State>
    /// The network of the device that the clients are on.
    package let monitor = NetworkMonitor()
    package let disk: SimulatedDisk
    package let executor: SimulatedExecutor
    #if SIMULATION
        private let baton: Baton
    #endif

    /// Rounds of the loop after which a moment counts as endless: some hundred thousand messages, or nothing written.
    private static let maximumRounds = 1_000_000
    private static let maximumIdleRounds = 50_000

    /// - Parameters:
    ///   - maximumTime: nanoseconds after which the body has to be over.
    ///   - keepsAll: whether a report of all steps will be asked for.
    package init(seed: UInt64, maximumTime: Int64, keepsAll: Bool = false) {
        executor = SimulatedExecutor()
        disk = SimulatedDisk(random: SplitMix(seed: seed, part: 6))
        #if SIMULATION
            baton = Baton(seed: seed, executor: executor)
        #endif
        state = Lock(
            State(
                order: SplitMix(seed: seed, part: 1), bytes: SplitMix(seed: seed, part: 2),
                numbers: SplitMix(seed: seed, part: 3), trace: SimulatedTrace(keepsAll: keepsAll), end: maximumTime))
    }

    // MARK: Life

    /// - Throws: `unsupported` where tasks without an executor cannot be kept on the loop.
    package static func checkSupport() throws(TransportError) {
        if TaskHooks.isInstalled { return }
        throw TransportError(
            .unsupported,
            "The Swift runtime of this program has no hook for its tasks, or is linked statically. Link it dynamically to "
                + "run a simulation.")
    }

    /// From now on the seed decides; on the loop's thread.
    ///
    /// - Parameter stalled: called when nothing can happen any more, with the reason, and whether something from outside
    ///   has taken part.
    package func begin(on loop: EventLoop, stalled: @escaping @Sendable (_ reason: String, _ isForeign: Bool) -> Void) {
        WorldThreads.begin(on: loop)
        let now = loop.now
        state.withLock { state in
            state.isActive = true
            state.stalled = stalled
            state.end = now.advanced(byNanoseconds: state.end)
            state.now = now
        }
        #if SIMULATION
            baton.begin(on: loop)
        #endif
    }

    /// The body is over, and nothing more is recorded; on the loop's thread.
    package func end(on loop: EventLoop) {
        state.withLock { state in
            state.isActive = false
            state.links = [:]
            state.descriptions = []
            state.waiting = []
        }
        #if SIMULATION
            baton.end()
        #endif
        WorldThreads.end()
    }

    /// The body holds a thread of the world: nothing more is recorded, and no time passes. From any thread.
    package func abandon() { state.withLock { $0.isActive = false } }

    /// Rounds of the loop since the world began; from any thread.
    package var roundCount: Int { state.withLock { $0.roundCount } }

    /// Runs the next piece of a task of the body, or of one without an executor.
    package func run(_ task: UnownedJob, on loop: EventLoop) {
        #if SIMULATION
            // What the loop would do, if it got the task.
            if !isOnThread(of: loop) { foreignWorkArrived(isTask: true, on: loop) }
            if baton.enqueue(task) { return }
        #endif
        loop.run(task)
    }

    /// Whether the caller is on a thread of the world.
    package func isOnThread(of loop: EventLoop) -> Bool {
        #if SIMULATION
            loop.isCurrent || baton.isCurrent
        #else
            loop.isCurrent
        #endif
    }

    /// Lets the other threads of the world run, if there are any and one of them has something to do.
    package func letOthersRun() -> Bool {
        #if SIMULATION
            baton.letOthersRun()
        #else
            false
        #endif
    }

    package var isActive: Bool { state.withLock { $0.isActive } }

    /// Whether time may pass to the next deadline; if not, the reason has been reported.
    package func mayPassTime(to next: Int64) -> Bool {
        let (stalled, end) = state.withLock { state -> ((@Sendable (String, Bool) -> Void)?, Int64) in
            guard next > state.end else {
                state.now = next
                state.mostLastingTasks = max(state.mostLastingTasks, state.taskCount)
                (state.rounds, state.idleRounds) = (0, 0)
                return (nil, 0)
            }
            return (state.stalled, state.end)
        }
        guard let stalled else { return true }
        if next == .max {
            stalled(
                "Nothing is left to happen, but the body waits: for an answer that never comes, or for something outside of "
                    + "the simulation, such as the system's clock (Task.sleep), the main actor, a socket or a thread. Make "
                    + "clients with the clock of the simulation, sleep on it, and serve what the body waits for in the "
                    + "simulation.", false)
        } else {
            stalled(
                "The body has not ended by the latest moment, \(OneLine.duration(.nanoseconds(end - Self.start))) after the "
                    + "start. Raise maximumTime, or find what it waits for.", false)
        }
        return false
    }

    private static let start: Int64 = 3_600_000_000_000

    /// A round of the loop is over.
    package func finishRound() {
        let stalled = state.withLock { state -> (@Sendable (String, Bool) -> Void)? in
            guard state.isActive else { return nil }
            state.roundCount += 1
            state.rounds += 1
            state.idleRounds += 1
            let isEndless =
                state.rounds % Self.maximumRounds == 0 || state.idleRounds % Self.maximumIdleRounds == 0
            return isEndless ? state.stalled : nil
        }
        stalled?(
            "Many rounds have passed without any time: a task runs again and again without waiting for anything, or exchanges "
                + "messages without end. Let it await what it looks for, or sleep on the clock of the simulation.",
            false)
    }

    /// Work from another thread has arrived, so that this run cannot be repeated: reports the first one, on the loop's
    /// thread.
    package func foreignWorkArrived(isTask: Bool, on loop: EventLoop) {
        let stalled = state.withLock { state -> (@Sendable (String, Bool) -> Void)? in
            guard state.isActive, !state.isForeign else { return nil }
            state.isForeign = true
            return state.stalled
        }
        guard let stalled else { return }
        let reason =
            isTask
            ? "A task of the simulation was resumed by another thread: it waited for something outside, such as the system's "
                + "clock (Task.sleep), the main actor, a socket or a thread. Make clients with the clock of the simulation, sleep "
                + "on it, and serve what the task waits for in the simulation."
            : "Another thread called a client, a broker or the clock of the simulation, which a seed cannot repeat: a Dispatch "
                + "queue, a Thread, the main actor, or a client with another clock. Make the call in a task of the body."
        loop.execute { stalled(reason, true) }
    }

    /// The world has failed, whatever its body returns; the first reason counts.
    func fail(_ reason: String, on loop: EventLoop) {
        let stalled = state.withLock { state -> (@Sendable (String, Bool) -> Void)? in
            guard state.isActive, !state.hasFailed else { return nil }
            state.hasFailed = true
            return state.stalled
        }
        if let stalled { loop.execute { stalled(reason, false) } }
    }

    #if SIMULATION
        package func lockWillBeTaken() { baton.changeLocks(before: 0, after: 1) }
        package func lockWasGivenBack() { baton.changeLocks(before: -1, after: 0) }
        package func threadIsHeld(_ isHeld: Bool) { baton.keep(isHeld ? 1 : -1) }
    #endif

    // MARK: Choices

    package func nextRandom() -> UInt64 { state.withLock { $0.numbers.next() } }

    package func arrange(_ taskCount: Int, among otherCount: Int) -> (now: [Int], later: [Int]) {
        state.withLock { state in
            let others = Array(taskCount..<taskCount + otherCount)
            var tasks = Array(0..<taskCount)
            guard state.isActive else { return (others + tasks, []) }
            tasks.shuffle(using: &state.order)
            var later: [Int] = []
            if state.order.below(4) == 0 {
                let count = state.order.below(tasks.count + (others.isEmpty ? 0 : 1))
                later = Array(tasks.suffix(count))
                tasks.removeLast(count)
            }
            var now: [Int] = []
            now.reserveCapacity(tasks.count + others.count)
            var (task, other) = (0, 0)
            while task < tasks.count || other < others.count {
                if state.order.below(tasks.count - task + others.count - other) < tasks.count - task {
                    now.append(tasks[task])
                    task += 1
                } else {
                    now.append(others[other])
                    other += 1
                }
            }
            state.trace.mix(UInt64(now.count) << 32 | UInt64(later.count))
            return (now, later)
        }
    }

    // MARK: Disk

    package var files: any Disk { disk }

    package func makeThread(on loop: EventLoop) -> @Sendable (_ job: @escaping @Sendable () -> Void) -> Void {
        let thread = SimulatedThread(loop, self)
        return { thread.run($0) }
    }

    // MARK: Bytes on their way

    /// How many of so many bytes one call takes.
    func piece(of count: Int) -> Int {
        state.withLock { state in
            guard count > 1, state.network.splits, state.bytes.below(3) == 0 else { return count }
            return 1 + state.bytes.below(count)
        }
    }

    /// Nanoseconds that the disk takes for a request made now.
    func diskDelay() -> Int64 { time(\.diskDelay) }

    /// Nanoseconds that bytes which are written now are on their way.
    func latency() -> Int64 { time(\.latency) }

    private func time(_ range: KeyPath<Network, ClosedRange<Int64>>) -> Int64 {
        state.withLock { state in
            let range = state.network[keyPath: range]
            return range.upperBound == 0 ? 0 : Int64.random(in: range, using: &state.bytes)
        }
    }

    /// Nanoseconds that so many bytes need to be sent, at the rate of the network.
    func timeToSend(_ count: Int) -> Int64 {
        let rate = state.withLock { $0.network.rate }
        return rate == 0 ? 0 : Int64(count) * 1_000_000_000 / Int64(rate)
    }

    /// A number from 0 up to, but not including, `bound`, about bytes on their way.
    func below(_ bound: Int) -> Int { state.withLock { $0.bytes.below(bound) } }

    // MARK: Moments

    /// Calls `body` when the next packet is written of a kind that this world has seen, before anything else happens that
    /// its writer or its reader does; `choose` gets the number of kinds.
    func atNextPacket(choosing choose: (Int) -> Int, _ body: @escaping @Sendable () -> Void) {
        let kind = state.withLock { state -> PacketKind? in
            guard !state.kinds.isEmpty else { return nil }
            let kind = state.kinds.sorted()[choose(state.kinds.count)]
            state.waiting.append((kind, body))
            return kind
        }
        record(.note(kind.map { "waits for \($0)" } ?? "no packet was written that could come again"))
    }

    /// A packet begins to be written.
    func packetBegins(_ kind: PacketKind, on loop: EventLoop) {
        let bodies = state.withLock { state -> [@Sendable () -> Void] in
            state.kinds.insert(kind)
            guard !state.waiting.isEmpty else { return [] }
            defer { state.waiting.removeAll { $0.kind == kind } }
            return state.waiting.filter { $0.kind == kind }.map(\.body)
        }
        for body in bodies { loop.execute(body) }
    }

    // MARK: The time of day

    /// Milliseconds since 1970: the world begins with 2026, and time may jump.
    package func timeOfDay(at now: Int64) -> Int64 {
        1_767_225_600_000 + (now - Self.start) / 1_000_000 + state.withLock { $0.clockChange }
    }

    /// The clock of the device is set.
    package func setClock(forwardBy milliseconds: Int64) { state.withLock { $0.clockChange += milliseconds } }

    // MARK: Network

    /// A port that no other service of this world has.
    package func makePort() -> Int {
        state.withLock { state in
            state.portCount += 1
            return 49_151 + state.portCount
        }
    }

    package func changeNetwork(_ change: (inout Network) -> Void) { state.withLock { change(&$0.network) } }

    /// The connections that are open, oldest first.
    package var links: [SimulatedLink] {
        state.withLock { state in state.links.sorted { $0.key < $1.key }.map(\.value) }
    }

    var now: Int64 { state.withLock { $0.now } }

    /// The system of the clients and brokers falls asleep, and wakes at this time.
    package func sleeps(until time: Int64) {
        state.withLock {
            $0.sleep = $0.now..<time
            $0.now = time
            $0.timeAsleep += Int64($0.sleep.count)
        }
    }

    package var timeAsleep: Duration { .nanoseconds(state.withLock { $0.timeAsleep }) }

    var wokeAt: Int64 { state.withLock { $0.sleep.upperBound } }
    /// Whether the last sleep was so long that connections are checked after it.
    var sleptLong: Bool { state.withLock { Int64($0.sleep.count) >= .longSleep } }

    /// Bytes that each direction of a connection holds.
    var capacity: Int { state.withLock { $0.network.capacity } }

    func clientLeft(after time: Int64, overdue: Int64) {
        state.withLock { state in
            state.longestDeath = max(state.longestDeath, time)
            state.longestOverdue = max(state.longestOverdue, overdue)
        }
    }

    func clientClosed() { state.withLock { $0.openCount -= 1 } }

    /// The descriptors that clients have open, and the most that they had open at any time.
    package var openConnections: (now: Int, most: Int) { state.withLock { ($0.openCount, $0.mostOpen) } }

    func deliveryWillBeDue() { state.withLock { $0.deliveryCount += 1 } }
    func deliveryIsDue() { state.withLock { $0.deliveryCount -= 1 } }

    /// How many alarms on the loop are those of bytes that are on their way.
    package var deliveryAlarms: Int { state.withLock { $0.deliveryCount } }

    package func describe(_ client: @escaping @Sendable () -> String?) {
        state.withLock { $0.descriptions.append(client) }
    }

    /// The body fails, or can end no more: notes what the clients wait for, once. On the loop's thread.
    func noteClients() {
        let (descriptions, isFirst) = state.withLock { state in (state.descriptions, state.clients == nil) }
        guard isFirst else { return }
        let lines = descriptions.compactMap { $0() }
        state.withLock { $0.clients = lines }
    }

    /// One line for each client that existed when the world failed.
    var clientLines: [String] { state.withLock { $0.clients ?? [] } }

    package func taskBegan() {
        state.withLock { state in
            state.taskCount += 1
            state.mostTasks = max(state.mostTasks, state.taskCount)
        }
    }

    package func taskEnded() { state.withLock { $0.taskCount -= 1 } }

    /// The tasks that clients have started and that have not ended: attempts to connect, requests, and what waits for closures
    /// of the app. Tasks of the app are its own. And the most that there were at any time, and while time passed: those that
    /// are cancelled end at the same moment.
    package var openTasks: (now: Int, most: Int, mostLasting: Int) {
        state.withLock { ($0.taskCount, $0.mostTasks, $0.mostLastingTasks) }
    }

    /// The longest time for which a client has kept a connection on which nothing could arrive.
    package var longestDeath: Duration {
        let open = links.map(\.deathTime).max() ?? 0
        return .nanoseconds(max(open, state.withLock { $0.longestDeath }))
    }

    /// The longest time for which a client has kept such a connection beyond what MQTT's default keep alive documents.
    package var longestOverdue: Duration {
        let open = links.map(\.overdueTime).max() ?? 0
        return .nanoseconds(max(open, state.withLock { $0.longestOverdue }))
    }

    func forget(_ link: SimulatedLink) { state.withLock { $0.links[link.number] = nil } }

    /// The device of the clients loses its network, or has another one: open connections stop transferring data,
    /// without notice to either end.
    package func setOffline(_ isOffline: Bool) {
        let (links, interface) = state.withLock { state in
            state.network.isOffline = isOffline
            if !isOffline { state.interfaceCount += 1 }
            return (state.links.sorted { $0.key < $1.key }.map(\.value), state.interfaceCount)
        }
        if isOffline { for link in links { link.die(isUp: nil) } }
        monitor.update(NetworkMonitor.Path(isAvailable: !isOffline, interfaces: ["net\(interface)"]))
    }

    /// Waits for at most the time that is left for an attempt to connect.
    private func pass(
        _ time: Int64, until deadline: Int64, of loop: EventLoop, late: @autoclosure () -> TransportError
    ) async throws(TransportError) {
        guard time > 0 else { return }
        let end = min(loop.now.advanced(byNanoseconds: time), deadline)
        let call = PendingCall<Void>()
        let alarm = LoopAlarm(loop: loop) { _ in call.end(()) }
        await call.answer {
            loop.execute { if !call.isOver { alarm.set(end) } }
        } onCancel: {
            call.end(())
            loop.execute { alarm.set(.max) }
        }
        if Task.isCancelled { throw TransportError(.cancelled, "Connecting was cancelled.") }
        if end == deadline { throw late() }
    }

    private func find(_ endpoint: Endpoint, until deadline: Int64, on loop: EventLoop) async throws(TransportError) {
        guard case .host(let name, _) = endpoint, IPLiteral(name) == nil else { return }
        try await pass(time(\.nameDelay), until: deadline, of: loop, late: NameQuery.late(of: name))
        guard state.withLock({ $0.network.hidesNames || $0.network.isOffline }) else { return }
        record(.note("\(name) is not found"))
        throw TransportError(
            .unknownHost, "Cannot find the host '\(name)': the simulation hides it, or has no network.")
    }

    /// Connects to a service of this world; there is no other network.
    package func connect(
        to endpoint: Endpoint, timeout: Int64, on loop: EventLoop
    ) async throws(TransportError) -> any ByteStream {
        let deadline = loop.now.advanced(byNanoseconds: timeout)
        try await find(endpoint, until: deadline, on: loop)
        try await pass(
            latency() + time(\.connectDelay), until: deadline, of: loop,
            late: TransportError(
                .timedOut, "\(endpoint) did not answer in time. Check the address, or allow more time to connect."))
        let (refuses, isOffline) = state.withLock { ($0.network.refuses, $0.network.isOffline) }
        if isOffline {
            throw TransportError(
                .unreachable, "\(endpoint) cannot be reached: the device has no network.", errno: ENETUNREACH)
        }
        guard !refuses, let accept = loop.service(at: endpoint) else {
            record(.note("\(endpoint) refuses a connection"))
            throw TransportError(
                .connectionRefused,
                "\(endpoint) refused the connection. In a simulation clients reach brokers of the same simulation only.",
                errno: ECONNREFUSED)
        }
        return open(to: endpoint, accept, on: loop)
    }

    private func open(
        to endpoint: Endpoint, _ accept: @Sendable (any ByteStream) -> Void, on loop: EventLoop
    ) -> SimulatedStream {
        let link = state.withLock { state -> SimulatedLink in
            state.linkCount += 1
            let link = SimulatedLink(number: state.linkCount, world: self, loop: loop)
            state.links[link.number] = link
            state.openCount += 1
            state.mostOpen = max(state.mostOpen, state.openCount)
            return link
        }
        record(.note("#\(link.number) opened to \(endpoint)"))
        accept(link.server)
        return link.client
    }

    /// Connects to a service at once, writes some bytes, and returns the connection, whose answers nobody reads; nil
    /// without the service. On the loop's thread.
    package func open(to endpoint: Endpoint, writing bytes: [UInt8], on loop: EventLoop) -> (any ByteStream)? {
        guard let accept = loop.service(at: endpoint) else { return nil }
        let stream = open(to: endpoint, accept, on: loop)
        var rest = bytes[...]
        while !rest.isEmpty {
            // Safe: the stream reads the buffer during the call only.
            guard case .bytes(let count) = unsafe rest.withUnsafeBytes({ unsafe stream.write(from: $0) }) else { break }
            rest = rest.dropFirst(count)
        }
        return stream
    }

    // MARK: Trace

    package func record(_ step: @autoclosure () -> SimulatedStep) {
        let step = step()
        state.withLock { state in
            guard state.isActive else { return }
            if case .wrote = step { state.idleRounds = 0 }
            state.trace.add(step, at: state.now - Self.start)
        }
    }

    /// A number that differs when anything happened differently.
    package var traceHash: UInt64 { state.withLock { $0.trace.hash } }
    /// The latest steps, one line each.
    package var latestSteps: [String] { state.withLock { $0.trace.report } }
}

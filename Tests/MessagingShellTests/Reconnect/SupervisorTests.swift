import MessagingShell
import MessagingWire
import Synchronization
import TestSupport
import Testing
import Transport

/// A supervisor whose client follows a script of verdicts.
@Suite(.turns) struct SupervisorTests {
    enum Failure: Error, Equatable {
        case failed(Int)
        case stopped, cancelled, notStarted
    }

    private final class Client: SupervisedClient {
        static let stopped = Failure.stopped
        static func notStarted(_ error: TransportError) -> Failure { .notStarted }
        private let script: [ReconnectVerdict]
        private let state = Mutex<(asked: Int, attempts: [String], waits: Int)>((0, [], 0))
        private let reported = Mutex<[String]>([])

        init(_ script: [ReconnectVerdict]) { self.script = script }

        /// Lets the supervisor keep this client connected.
        func begin(with supervisor: Supervisor<Client>) {
            own.withLock { $0 = supervisor }
            supervisor.supervise(self)
        }

        /// For each attempt its number, its server, and `!` if the last credentials were refused.
        var attempts: [String] { state.withLock { $0.attempts } }
        var waits: Int { state.withLock { $0.waits } }

        func prepare(_ attempt: ConnectionAttempt) {
            let mark = attempt.credentialsWereRefused ? "!" : ""
            state.withLock { $0.attempts.append("\(attempt.number)@\(attempt.server)\(mark)") }
        }
        /// If set, each attempt succeeds at once, and this supervisor is told; otherwise each attempt fails.
        let told = Mutex<Supervisor<Client>?>(nil)
        private let own = Mutex<Supervisor<Client>?>(nil)
        var supervisor: Supervisor<Client> { own.withLock { $0! } }
        private let ending = Mutex((isEnding: false, asked: 0))
        var isEnding: Bool {
            get {
                ending.withLock {
                    $0.asked += 1
                    return $0.isEnding
                }
            }
            set { ending.withLock { $0.isEnding = newValue } }
        }
        var endingAsked: Int { ending.withLock { $0.asked } }

        /// If set, an attempt lasts until it is cancelled, or for an hour of this clock.
        let slowness = Mutex<ManualClock?>(nil)
        /// How long the next attempts last that succeed on this clock.
        let durations = Mutex<[Duration]>([])
        private let opening = Atomic(0)
        /// How many streams are being opened.
        var openings: Int { opening.load(ordering: .relaxed) }

        func openStream(_ attempt: ConnectionAttempt) async throws(Failure) -> OpenedStream {
            if let clock = slowness.withLock({ $0 }) {
                opening.add(1, ordering: .relaxed)
                defer { opening.subtract(1, ordering: .relaxed) }
                let duration = durations.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                try? await clock.sleep(for: duration ?? .seconds(3600))
                guard duration != nil, !Task.isCancelled else { throw .failed(0) }
                return OpenedStream(stream: MemoryPair.make().client)
            }
            guard told.withLock({ $0 }) != nil else { throw .failed(attempts.count) }
            return OpenedStream(stream: MemoryPair.make().client)
        }
        func attach(_ opened: OpenedStream) { told.withLock { $0 }?.established(at: 0) }
        func dropConnection() {}
        func sayGoodbye() {}
        private let checks = Atomic(0)
        /// How often the supervisor had the connection checked.
        var checkCount: Int { checks.load(ordering: .relaxed) }
        func checkConnection() { checks.add(1, ordering: .relaxed) }
        /// The names of the states that were reported.
        var states: [String] { reported.withLock { $0 } }
        func stateChanged(to state: ConnectionState<Failure>) {
            let name = String("\(state)".prefix { $0.isLetter })
            reported.withLock { $0.append(state == .waitingForNetwork ? "waitingForNetwork" : name) }
            if case .waiting = state { self.state.withLock { $0.waits += 1 } }
        }
        func failure(ofAll failures: [(server: Int, failure: Failure)]) -> Failure {
            failures[failures.count - 1].failure
        }
        static func firstFailure(_ failure: Failure) -> Failure { failure }
        /// Repeats the last verdict of the script.
        func verdict(on failure: Failure) -> ReconnectVerdict {
            state.withLock { state in
                state.asked += 1
                return script[min(state.asked, script.count) - 1]
            }
        }
    }

    /// An opener of servers whose names are never resolved.
    private static func opener(_ count: Int, _ loop: EventLoop) -> StreamOpener {
        var options = StreamOptions()
        options.schemes = [.mqtt]
        return StreamOpener(
            urls: (0..<count).map { "mqtt://server\($0)" }, options: Shared(options), loop: loop, override: nil)
    }

    struct Row: Sendable {
        let script: [ReconnectVerdict]
        var servers = 1
        var maximumAttempts: Int? = 1
        let attempts: [String]
        var waits = 0
    }

    static let rows = [
        Row(script: [.giveUp], attempts: ["1@0"]),
        Row(script: [.giveUp], servers: 3, attempts: ["1@0"]),
        Row(script: [.wait], attempts: ["1@0"]),
        Row(script: [.wait], maximumAttempts: 3, attempts: ["1@0", "2@0", "3@0"], waits: 2),
        Row(script: [.wait], servers: 2, maximumAttempts: 2, attempts: ["1@0", "1@1", "2@0", "2@1"], waits: 1),
        Row(script: [.retryNow, .retryNow, .giveUp], attempts: ["1@0", "1@0", "1@0"]),
        Row(script: [.retryNow, .wait], servers: 2, attempts: ["1@0", "1@0", "1@1"]),
        Row(script: [.askForCredentials, .giveUp], attempts: ["1@0", "1@0!"]),
        Row(script: [.askForCredentials], maximumAttempts: nil, attempts: ["1@0", "1@0!"]),
        Row(
            script: [.askForCredentials, .wait, .askForCredentials], servers: 2, maximumAttempts: nil,
            attempts: ["1@0", "1@0!", "1@1", "1@1!"]),
        // A gateway may refuse for another reason: the client continues, and reports the refusal each time.
        Row(
            script: [.askForCredentialsOrWait], maximumAttempts: 2, attempts: ["1@0", "1@0!", "2@0!"], waits: 1),
        Row(
            script: [.askForCredentialsOrWait], servers: 2, maximumAttempts: 1,
            attempts: ["1@0", "1@0!", "1@1", "1@1!"]),
        // The attempt with other credentials did not reach the server: it has still refused the last ones.
        Row(
            script: [.askForCredentials, .wait, .giveUp], maximumAttempts: nil, attempts: ["1@0", "1@0!", "2@0!"],
            waits: 1),
    ]

    @Test(arguments: rows) func `a verdict decides what is tried next`(row: Row) async throws {
        let client = Client(row.script)
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let policy = ReconnectPolicy(
            initialDelay: .zero, maximumDelay: .zero, firstConnectAttempts: row.maximumAttempts)
        let supervisor = Supervisor<Client>(
            policy: Shared(policy), opener: Self.opener(row.servers, loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, loop: loop)
        client.begin(with: supervisor)
        await #expect(throws: Failure.failed(row.attempts.count)) {
            try await supervisor.connect(cancelled: .cancelled)
        }
        #expect(client.attempts == row.attempts)
        #expect(client.waits == row.waits)
    }

    @Test func `firstConnectAttempts does not limit a client that was started`() async throws {
        let client = Client([.wait])
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let policy = ReconnectPolicy(
            initialDelay: .zero, maximumDelay: .zero, maximumAttempts: 4, firstConnectAttempts: 1)
        let supervisor = Supervisor<Client>(
            policy: Shared(policy), opener: Self.opener(1, loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, loop: loop)
        client.begin(with: supervisor)
        await #expect(throws: Failure.failed(4)) { try await supervisor.run() }
        #expect(client.waits == 3)
    }

    @Test func `a caller waits for the next connection while the present one is ending`() async throws {
        let client = Client([.retryNow])
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let supervisor = Supervisor<Client>(
            policy: Shared(ReconnectPolicy()), opener: Self.opener(1, loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, loop: loop)
        client.begin(with: supervisor)
        client.told.withLock { $0 = supervisor }
        try await supervisor.connect(cancelled: .cancelled)
        try await supervisor.connect(cancelled: .cancelled)
        #expect(client.attempts.count == 1)

        client.isEnding = true
        let asked = client.endingAsked
        async let again: Void = supervisor.connect(cancelled: .cancelled)
        #expect(await eventually { client.endingAsked > asked })
        await loop.result {
            client.isEnding = false
            supervisor.ended(.failed(1), at: 0)
        }
        try await again
        #expect(client.attempts.count == 2)
        client.told.withLock { $0 = nil }
    }

    // MARK: Suspending

    /// A connected supervisor; a test ends its connections with `ended`.
    private func connected() async throws -> (Client, Supervisor<Client>, EventLoop) {
        let client = Client([.wait])
        let loop = try EventLoop.start()
        let supervisor = Supervisor<Client>(
            policy: Shared(ReconnectPolicy()), opener: Self.opener(1, loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, loop: loop)
        client.begin(with: supervisor)
        client.told.withLock { $0 = supervisor }
        try await supervisor.connect(cancelled: .cancelled)
        return (client, supervisor, loop)
    }

    private static let suspending = ["connecting", "connected", "disconnecting"]

    /// Returns when the tasks that were just started on the loop are waiting.
    private func settle(_ loop: EventLoop) async {
        for _ in 0..<4 { await loop.result {} }
    }

    /// Begins to suspend. The task ends when the client is suspended.
    private func suspending(_ client: Client, _ supervisor: Supervisor<Client>) async -> Task<Void, Never> {
        let task = Task { await supervisor.suspend() }
        #expect(await eventually { client.states == Self.suspending })
        return task
    }

    @Test func `resuming while the client is being suspended connects it again`() async throws {
        let (client, supervisor, loop) = try await connected()
        defer { loop.stop() }
        let task = await suspending(client, supervisor)
        supervisor.resume()
        #expect(await loop.result { supervisor.isActive })
        await loop.result { supervisor.ended(.stopped, at: 0) }
        await task.value
        #expect(await eventually { client.states == Self.suspending + ["suspended", "connecting", "connected"] })
        client.told.withLock { $0 = nil }
    }

    @Test func `connect() while the client is being suspended waits and connects it again`() async throws {
        let (client, supervisor, loop) = try await connected()
        defer { loop.stop() }
        let task = await suspending(client, supervisor)
        let connecting = Task(executorPreference: loop) { try await supervisor.connect(cancelled: .cancelled) }
        await settle(loop)
        await loop.result { supervisor.ended(.stopped, at: 0) }
        await task.value
        try await connecting.value
        #expect(client.states == Self.suspending + ["suspended", "connecting", "connected"])
        client.told.withLock { $0 = nil }
    }

    @Test func `the last of suspend, resume and disconnect counts while a connection closes`() async throws {
        let (client, supervisor, loop) = try await connected()
        defer { loop.stop() }
        let first = await suspending(client, supervisor)
        supervisor.resume()
        let second = Task(executorPreference: loop) { await supervisor.suspend() }
        await settle(loop)
        await loop.result { supervisor.ended(.stopped, at: 0) }
        await first.value
        await second.value
        #expect(client.states == Self.suspending + ["suspended"])

        supervisor.resume()
        #expect(await eventually { client.states.last == "connected" })
        let count = client.states.count
        let third = Task(executorPreference: loop) { await supervisor.suspend() }
        #expect(await eventually { client.states.last == "disconnecting" })
        supervisor.resume()
        let stopping = Task(executorPreference: loop) { await supervisor.stop {} }
        await settle(loop)
        await loop.result { supervisor.ended(.stopped, at: 0) }
        await third.value
        await stopping.value
        #expect(Array(client.states[count...]) == ["disconnecting", "disconnected"])
        client.told.withLock { $0 = nil }
    }

    @Test func `suspending while the client is being disconnected does not undo that`() async throws {
        let (client, supervisor, loop) = try await connected()
        defer { loop.stop() }
        let stopping = Task(executorPreference: loop) { await supervisor.stop {} }
        #expect(await eventually { client.states == Self.suspending })
        let suspending = Task(executorPreference: loop) { await supervisor.suspend() }
        await settle(loop)
        await loop.result { supervisor.ended(.stopped, at: 0) }
        await stopping.value
        await suspending.value
        #expect(client.states == Self.suspending + ["disconnected"])
        client.told.withLock { $0 = nil }
    }

    // MARK: Moving

    @Test func `a move connects again at once, and the last of disconnect, suspend and connect counts`() async throws {
        let (client, supervisor, loop) = try await connected()
        defer { loop.stop() }
        func move() -> Task<Void, any Error> {
            Task(executorPreference: loop) { try await supervisor.connect(cancelled: .cancelled, moves: true) }
        }
        let moved = Self.suspending + ["connecting", "connected"]
        var moving = move()
        #expect(await eventually { client.states == Self.suspending })
        #expect(await loop.result { supervisor.isActive })
        // Does not undo the move.
        supervisor.resume()
        let connecting = Task(executorPreference: loop) { try await supervisor.connect(cancelled: .cancelled) }
        await settle(loop)
        await loop.result { supervisor.ended(.stopped, at: 0) }
        try await moving.value
        try await connecting.value
        #expect(client.states == moved)

        moving = move()
        #expect(await eventually { client.states.last == "disconnecting" })
        let suspending = Task(executorPreference: loop) { await supervisor.suspend() }
        await settle(loop)
        await loop.result { supervisor.ended(.stopped, at: 0) }
        await suspending.value
        #expect(client.states == moved + ["disconnecting", "suspended"])
        let stopping = Task(executorPreference: loop) { await supervisor.stop {} }
        await stopping.value
        await #expect(throws: Failure.stopped) { try await moving.value }
        #expect(client.states.last == "disconnected")
        // Without a connection a move is a `connect`.
        try await move().value
        #expect(client.states.last == "connected")
        client.told.withLock { $0 = nil }
    }

    @Test func `a move ends a wait`() async throws {
        let following = try Following()
        following.start()
        #expect(await eventually { following.client.states.last == "waiting" })
        let count = following.client.states.count
        let moving = Task { [supervisor = following.supervisor] in
            try await supervisor.connect(cancelled: .cancelled, moves: true)
        }
        #expect(await eventually { following.client.states.count >= count + 2 })
        #expect(Array(following.client.states[count...].prefix(2)) == ["connecting", "waiting"])
        await following.stop()
        _ = await moving.result
    }

    // MARK: The network

    /// A supervisor that never stops, waits for an hour between attempts, and follows `network`.
    private final class Following {
        let client = Client([.wait])
        let network = NetworkMonitor()
        let loop: EventLoop
        let supervisor: Supervisor<Client>
        private var starting: Task<Void, any Error>?

        init() throws {
            loop = try EventLoop.start()
            let hour = Duration.seconds(3600)
            let policy = ReconnectPolicy(initialDelay: hour, maximumDelay: hour, firstConnectAttempts: nil)
            supervisor = Supervisor<Client>(
                policy: Shared(policy), opener: opener(1, loop), serverOrder: .listed,
                connectTimeout: 60_000_000_000, network: network, loop: loop)
            client.begin(with: supervisor)
        }

        deinit { loop.stop() }

        func start() {
            starting = Task { [supervisor] in try await supervisor.connect(cancelled: .cancelled) }
        }

        func stop() async {
            await supervisor.stop {}
            _ = await starting?.result
        }

        func reached(_ states: [String]) async -> Bool { await eventually { self.client.states == states } }
    }

    @Test func `without a network attempts pause, and one follows as soon as it is back`() async throws {
        let following = try Following()
        following.network.update(.init(isAvailable: false))
        following.start()
        let paused = ["connecting", "waiting", "waitingForNetwork"]
        #expect(await following.reached(paused))
        following.network.update(.init(isAvailable: true, interfaces: ["en0"]))
        #expect(await following.reached(paused + ["connecting", "waiting"]))
        #expect(following.client.attempts == ["1@0", "2@0"])
        await following.stop()
    }

    @Test func `without a network an attempt follows after the longest delay, and its failure does not count`()
        async throws
    {
        // The monitor knows only the default path: a server may be reachable over a Wi-Fi without a router.
        let clock = try ManualClock()
        let client = Client([.wait])
        let network = NetworkMonitor()
        var policy = ReconnectPolicy(
            initialDelay: .seconds(1), maximumDelay: .seconds(60), multiplier: 60, jitter: 0, firstConnectAttempts: 4)
        policy.failoverDelay = .zero
        let supervisor = Supervisor<Client>(
            policy: Shared(policy), opener: Self.opener(2, clock.loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, network: network, loop: clock.loop)
        client.begin(with: supervisor)
        let connecting = Task { try await supervisor.connect(cancelled: .cancelled) }
        #expect(await eventually { client.attempts.count == 2 })
        network.update(.init(isAvailable: false))
        #expect(await eventually { client.states.last == "waitingForNetwork" })
        await clock.advance(by: .seconds(59))
        #expect(client.attempts == ["1@0", "1@1"])
        await clock.advance(by: .seconds(1))
        #expect(client.attempts == ["1@0", "1@1", "2@0", "2@1"])
        #expect(
            Array(client.states.suffix(4)) == ["waitingForNetwork", "connecting", "connecting", "waitingForNetwork"])
        await clock.advance(by: .seconds(3600))
        #expect(client.attempts.count == 124)
        #expect(client.attempts.last == "2@1")
        // An attempt succeeds although the monitor reports no network.
        client.told.withLock { $0 = supervisor }
        await clock.advance(by: .seconds(60))
        #expect(client.states.last == "connected")
        client.told.withLock { $0 = nil }
        try await connecting.value
        await supervisor.stop { supervisor.ended(.failed(0), at: 0) }
    }

    @Test func `a wait for a time becomes a wait for the network when that disappears`() async throws {
        let following = try Following()
        following.start()
        #expect(await following.reached(["connecting", "waiting"]))
        following.network.update(.init(isAvailable: false))
        #expect(await following.reached(["connecting", "waiting", "waitingForNetwork"]))
        // The user may know better.
        following.supervisor.networkChanged()
        #expect(
            await following.reached(
                ["connecting", "waiting", "waitingForNetwork", "connecting", "waiting", "waitingForNetwork"]))
        await following.stop()
        #expect(following.client.states.last == "disconnected")
    }

    @Test func `another interface ends a wait, the same one does not`() async throws {
        let following = try Following()
        following.network.update(.init(isAvailable: true, interfaces: ["en0"]))
        following.start()
        #expect(await following.reached(["connecting", "waiting"]))
        following.network.update(.init(isAvailable: true, interfaces: ["en0"]))
        following.network.update(.init(isAvailable: true, interfaces: ["pdp_ip0"]))
        #expect(await following.reached(["connecting", "waiting", "connecting", "waiting"]))
        await following.stop()
    }

    /// A client whose attempts last for these times, a minute at most.
    private static func slow(
        _ durations: [Duration]
    ) async throws -> (clock: ManualClock, client: Client, supervisor: Supervisor<Client>) {
        let clock = try ManualClock()
        let client = Client([.wait])
        client.slowness.withLock { $0 = clock }
        client.durations.withLock { $0 = durations }
        let supervisor = Supervisor<Client>(
            policy: Shared(ReconnectPolicy()), opener: Self.opener(1, clock.loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, loop: clock.loop)
        client.begin(with: supervisor)
        client.told.withLock { $0 = supervisor }
        await supervisor.start()
        await clock.advance(by: .zero)
        return (clock, client, supervisor)
    }

    /// Gives hints, each after this time.
    private static func hint(
        _ count: Int, every interval: Duration, _ clock: ManualClock, _ supervisor: Supervisor<Client>
    ) async {
        for _ in 0..<count {
            await clock.advance(by: interval)
            supervisor.networkChanged()
            await clock.loop.result(of: {})
        }
    }

    private static func end(_ client: Client, _ supervisor: Supervisor<Client>) async {
        client.told.withLock { $0 = nil }
        let isConnected = client.states.last == "connected"
        await supervisor.stop { if isConnected { supervisor.ended(.failed(0), at: 0) } }
    }

    @Test func `hints that come more often than an attempt takes do not end the attempt`() async throws {
        let (clock, client, supervisor) = try await Self.slow(Array(repeating: .seconds(4), count: 9))
        await Self.hint(2, every: .milliseconds(1500), clock, supervisor)
        // The younger ones have replaced each other.
        #expect(await eventually { client.openings == 2 })
        #expect(client.states == ["connecting"] && client.attempts.count == 3)
        await clock.advance(by: .seconds(1))
        // The older one has won; the younger ones are over.
        #expect(client.states == ["connecting", "connected"])
        #expect(await eventually { client.openings == 0 })
        await Self.end(client, supervisor)
    }

    @Test func `of two attempts the younger wins if it is the first to succeed`() async throws {
        // The former network answers nothing.
        let (clock, client, supervisor) = try await Self.slow([.seconds(50), .seconds(50), .seconds(2)])
        await Self.hint(2, every: .milliseconds(1500), clock, supervisor)
        #expect(await eventually { client.openings == 2 })
        await clock.advance(by: .seconds(2))
        #expect(client.states == ["connecting", "connected"])
        #expect(await eventually { client.openings == 0 })
        await Self.end(client, supervisor)
    }

    @Test func `an attempt that another network has overtaken gets another beside it, a fresh one does not`()
        async throws
    {
        let clock = try ManualClock()
        let client = Client([.wait])
        client.slowness.withLock { $0 = clock }
        let supervisor = Supervisor<Client>(
            policy: Shared(ReconnectPolicy()), opener: Self.opener(1, clock.loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, loop: clock.loop)
        client.begin(with: supervisor)
        let connecting = Task { try await supervisor.connect(cancelled: .cancelled) }
        #expect(await eventually { client.attempts.count == 1 })
        await clock.advance(by: .milliseconds(900))
        supervisor.networkChanged()
        await clock.loop.result(of: {})
        #expect(client.attempts == ["1@0"])
        await clock.advance(by: .milliseconds(100))
        supervisor.networkChanged()
        supervisor.networkChanged()
        await clock.loop.result(of: {})
        #expect(client.attempts == ["1@0", "1@0"])
        #expect(client.waits == 0)
        await supervisor.stop {}
        _ = await connecting.result
    }

    @Test func `an attempt that the system has slept through is made again at once, and does not count`() async throws {
        let (clock, client, supervisor) = try await Self.slow([])
        // An attempt takes an hour, and fails then.
        await clock.advance(by: .seconds(1_800))
        #expect(client.attempts == ["1@0"])
        await clock.letSystemSleep(for: .seconds(1_800))
        #expect(await eventually { client.attempts == ["1@0", "1@0"] })
        await clock.letSystemSleep(for: .seconds(29))
        await clock.advance(by: .seconds(3_571))
        #expect(await eventually { client.waits == 1 })
        #expect(client.attempts == ["1@0", "1@0"])
        client.durations.withLock { $0 = [.seconds(2)] }
        await clock.advance(by: .seconds(3))
        #expect(await eventually { client.states.last == "connected" })
        #expect(client.attempts == ["1@0", "1@0", "2@0"])
        await clock.letSystemSleep(for: .seconds(40))
        #expect(client.checkCount == 0, "the link checks a connection")
        await Self.end(client, supervisor)
    }

    @Test func `a wait ends when the system has slept for long, if it is not for the network`() async throws {
        let clock = try ManualClock()
        let client = Client([.wait])
        let network = NetworkMonitor()
        let policy = ReconnectPolicy(
            initialDelay: .seconds(600), maximumDelay: .seconds(600), jitter: 0, firstConnectAttempts: 4)
        let supervisor = Supervisor<Client>(
            policy: Shared(policy), opener: Self.opener(1, clock.loop), serverOrder: .listed,
            connectTimeout: 60_000_000_000, network: network, loop: clock.loop)
        client.begin(with: supervisor)
        let connecting = Task { try await supervisor.connect(cancelled: .cancelled) }
        #expect(await eventually { client.waits == 1 })
        await clock.advance(by: .seconds(60))
        await clock.letSystemSleep(for: .seconds(29))
        #expect(client.attempts.count == 1)
        await clock.letSystemSleep(for: .seconds(40))
        #expect(await eventually { client.waits == 2 })
        network.update(.init(isAvailable: false))
        #expect(await eventually { client.states.last == "waitingForNetwork" })
        await clock.letSystemSleep(for: .seconds(40))
        #expect(client.attempts.count == 2)
        await supervisor.stop {}
        _ = await connecting.result
    }

    @Test func `a connection is checked when the network has changed, and not when it has gone`() async throws {
        let following = try Following()
        following.client.told.withLock { $0 = following.supervisor }
        following.network.update(.init(isAvailable: true, interfaces: ["en0"]))
        following.start()
        #expect(await following.reached(["connecting", "connected"]))
        following.network.update(.init(isAvailable: true, interfaces: ["pdp_ip0"]))
        await following.loop.result(of: {})
        #expect(following.client.checkCount == 1)
        following.network.update(.init(isAvailable: false))
        await following.loop.result(of: {})
        #expect(following.client.checkCount == 1)
        following.network.update(.init(isAvailable: true, interfaces: ["en0"]))
        following.supervisor.networkChanged()
        await following.loop.result(of: {})
        #expect(following.client.checkCount == 3)
        // It stays where it is.
        #expect(following.client.states == ["connecting", "connected"])
        following.client.told.withLock { $0 = nil }
        let stopping = Task { [supervisor = following.supervisor] in await supervisor.stop {} }
        #expect(await following.reached(["connecting", "connected", "disconnecting"]))
        let supervisor = following.supervisor
        following.loop.execute { supervisor.ended(.failed(0), at: 0) }
        await stopping.value
    }

    @Test func `suspending ends a wait for the network, and resuming tries at once`() async throws {
        let following = try Following()
        following.network.update(.init(isAvailable: false))
        following.start()
        #expect(await following.reached(["connecting", "waiting", "waitingForNetwork"]))
        await following.supervisor.suspend()
        // A suspended client stays so.
        following.network.update(.init(isAvailable: true))
        following.supervisor.resume()
        #expect(
            await following.reached(
                ["connecting", "waiting", "waitingForNetwork", "disconnecting", "suspended", "connecting", "waiting"]))
        await following.stop()
    }

    @Test func `a client that is disconnected does not follow the network`() async throws {
        let following = try Following()
        following.start()
        #expect(await following.reached(["connecting", "waiting"]))
        await following.stop()
        let states = following.client.states
        following.network.update(.init(isAvailable: false))
        following.network.update(.init(isAvailable: true))
        await following.loop.result(of: {})
        #expect(following.client.states == states)
    }
}

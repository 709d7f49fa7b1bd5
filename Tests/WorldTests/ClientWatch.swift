import MQTT
import MessagingWire
import STOMP
import Synchronization
import Transport

@testable import LoopbackBroker

/// Watches what a client of either protocol reports, and checks it: legal sequences of states, each event after the state
/// that it reports, a bounded number of attempts in a minute, and a counter of connections that equals their events.
final class ClientWatch: Sendable {
    private struct Report {
        var states: [String] = []
        var attempts: [Duration] = []
        var connections = 0
        /// When connections were lost, and why.
        var losses: [(time: Duration, reason: String)] = []
        /// Events that came before the state that they report.
        var early: [String] = []
    }

    /// What may follow each state.
    private static let successors: [String: Set<String>] = [
        "disconnected": ["connecting"],
        // Without a network if another server of a list would be tried at once.
        "connecting": ["connected", "waiting", "waitingForNetwork", "disconnected", "disconnecting"],
        "connected": ["waiting", "disconnecting", "disconnected"],
        "waiting": ["connecting", "waitingForNetwork", "disconnecting", "disconnected"],
        "waitingForNetwork": ["connecting", "disconnecting", "disconnected"],
        // Also of a connection that cannot be used any more, and of one that the client leaves, after which another one is tried.
        "disconnecting": ["disconnected", "suspended", "waiting", "connecting"],
        "suspended": ["connecting", "disconnected"],
    ]
    /// A client that waits between its attempts as the default policy says makes fewer, also when the app and the network
    /// ask it to connect now and then.
    private static let maximumAttempts = 30

    private let name: String
    private let report = Mutex(Report())

    init(_ name: String) { self.name = name }

    /// A state or another event, after so much time.
    private func attempted(at time: Duration) { report.withLock { $0.attempts.append(time) } }
    private func connected() {
        report.withLock { report in
            report.connections += 1
            // The app may suspend or disconnect a client, or let it leave, while a server accepts it.
            let legal: Set = ["connected", "disconnecting", "suspended", "disconnected"]
            if report.states.last.map({ !legal.contains($0) }) ?? true {
                report.early.append("connected after \(report.states.last ?? "nothing")")
            }
        }
    }
    private func lost(at time: Duration, _ reason: String) {
        report.withLock { report in
            report.losses.append((time, reason))
            if report.states.last == "connected" { report.early.append("connectionLost: \(reason)") }
        }
    }

    /// When the client lost its connection after a time and before another one, counted from when the watch began.
    func losses(after start: Duration, before end: Duration) -> [Duration] {
        report.withLock { $0.losses.map(\.time).filter { $0 > start && $0 < end } }
    }

    private func changed<Failure>(to state: ConnectionState<Failure>) {
        let name =
            switch state {
            case .disconnected: "disconnected"
            case .connecting: "connecting"
            case .connected: "connected"
            case .waiting: "waiting"
            case .waitingForNetwork: "waitingForNetwork"
            case .disconnecting: "disconnecting"
            case .suspended: "suspended"
            }
        report.withLock { $0.states.append(name) }
    }

    /// Watches until the client is released, or the task is cancelled.
    func watch(
        _ client: MQTTClient, _ world: Simulation, _ body: @escaping @Sendable (MQTTEvent) -> Void
    ) -> Task<Void, Never> {
        let (events, start) = (client.events, world.clock.now)
        return Task {
            for await event in events {
                switch event {
                case .stateChanged(let state): self.changed(to: state)
                case .connecting: self.attempted(at: start.duration(to: world.clock.now))
                case .connected: self.connected()
                case .connectionLost(let error): self.lost(at: start.duration(to: world.clock.now), "\(error)")
                default: break
                }
                body(event)
            }
        }
    }

    func watch(
        _ client: STOMPClient, _ world: Simulation, _ body: @escaping @Sendable (STOMPEvent) -> Void
    ) -> Task<Void, Never> {
        let (events, start) = (client.events, world.clock.now)
        return Task {
            for await event in events {
                switch event {
                case .stateChanged(let state): self.changed(to: state)
                case .connecting: self.attempted(at: start.duration(to: world.clock.now))
                case .connected: self.connected()
                case .connectionLost(let error): self.lost(at: start.duration(to: world.clock.now), "\(error)")
                default: break
                }
                body(event)
            }
        }
    }

    /// Where nothing happens to connections, a client keeps its first one.
    func requireOneConnection(_ world: Simulation) throws {
        let report = report.withLock { $0 }
        let reasons = report.losses.map(\.reason)
        try world.require(
            report.connections == 1 && reasons.isEmpty,
            "the \(name) client made \(report.connections) connections, and nothing had happened to the one before: \(reasons)"
        )
    }

    /// - Parameters:
    ///   - counters: of the client, which has disconnected.
    ///   - servers: how many it tries one after the other before it waits.
    func check(_ counters: ClientCounters, servers: Int = 1, _ world: Simulation) throws {
        let report = report.withLock { $0 }
        var last = "disconnected"
        for state in report.states {
            try world.require(
                Self.successors[last]?.contains(state) == true || last == state && state == "connecting",
                "\(name) was \(state) after \(last): \(report.states)")
            last = state
        }
        try world.require(last == "disconnected", "\(name) ended as \(last): \(report.states.suffix(5))")
        try world.require(report.early.isEmpty, "\(name) reported before the state had changed: \(report.early)")
        // Another one follows at once when an old password was refused.
        let most = servers * (WorldUsers(world).hasUsers ? 2 : 1) * Self.maximumAttempts
        for (index, time) in report.attempts.enumerated() where index >= most {
            let first = report.attempts[index - most]
            try world.require(
                time - first > .seconds(60), "\(name) made more than \(most) attempts in a minute")
        }
        try world.require(
            counters.connections == report.connections,
            "\(name) reported \(report.connections) connections and counted \(counters.connections)")
    }
}

/// The users of a world's broker. In one of seven worlds it has one, for whom apps now and then have an old password, until it
/// is refused.
struct WorldUsers: Sendable {
    let hasUsers: Bool
    private let asked = Counter()

    private final class Counter: Sendable {
        let count = Atomic<UInt64>(0)
    }

    init(_ world: Simulation) { hasUsers = world.seed % 7 == 3 }

    var options: LoopbackBrokerOptions {
        var options = LoopbackBrokerOptions()
        options.judging.judgesPromises = true
        if hasUsers { options.users = [.init(name: "app", password: "new")] }
        return options
    }

    func credentials(for request: CredentialsRequest) -> Credentials? {
        guard hasUsers else { return nil }
        let isOld = !request.wereRefused && asked.count.add(1, ordering: .relaxed).newValue % 3 == 1
        return Credentials(userName: "app", password: isOld ? "old" : "new")
    }
}

extension Simulation {
    /// Fails by the name of what has not ended when the task that this returns is cancelled: longer than faults last, and than
    /// answers and acts may take.
    func watch(_ what: String, for time: Duration = .seconds(3_000)) -> Task<Void, Never> {
        Task {
            guard (try? await clock.sleep(for: time)) != nil else { return }
            fail("\(what) has not ended after \(time)")
        }
    }

    /// The system of the clients and the broker sleeps for up to two minutes, in which connections may die.
    func sleep(_ random: inout SimulationRandom) async {
        let time = Duration.milliseconds(Int.random(in: 0...120_000, using: &random))
        note("the system sleeps for \(time)")
        for link in world.links where Bool.random(using: &random) { link.die(isUp: nil) }
        await clock.letSystemSleep(for: time) { [world, loop = clock.loop] in
            world.sleeps(until: loop.now.advanced(byNanoseconds: time.inNanoseconds))
        }
    }

    /// Requests of a client that has disconnected fail at once.
    func requireEnd(of client: MQTTClient) async throws {
        try await requireFailure("publish") { try await client.publish("late", to: "late", qos: .atLeastOnce) }
        try await requireFailure("publish with QoS 0") { try await client.publish("late", to: "late") }
        try await requireFailure("subscribe") { _ = try await client.subscribe(to: "late") }
        try await requireFailure("unsubscribe") { try await client.unsubscribe(from: "late") }
    }

    func requireEnd(of client: STOMPClient) async throws {
        try await requireFailure("send") { try await client.send("late", to: "/topic/late") }
        try await requireFailure("sendAndConfirm") { try await client.sendAndConfirm("late", to: "/topic/late") }
        try await requireFailure("subscribe") { _ = try await client.subscribe(to: "/topic/late") }
        try await requireFailure("withTransaction") { try await client.withTransaction { _ in } }
    }

    /// No client kept a dead connection for longer than keep alive allows, and closing takes.
    func requireNoDeadConnection() throws {
        let longest = world.longestOverdue
        try require(
            longest < .seconds(5), "a client kept a dead connection for \(longest) longer than keep alive allows")
    }

    /// Clients that have disconnected have no connection any more.
    ///
    /// - Parameter most: the connections that they may have had at a time.
    func requireNoConnection(afterAtMost most: Int) async throws {
        // What closing leaves for a moment.
        try await clock.sleep(for: .seconds(5))
        let connections = world.openConnections
        try require(
            connections.now == 0, "\(connections.now) connections are open, but all clients have disconnected")
        try require(connections.most <= most, "\(connections.most) connections were open at a time, \(most) may be")
    }

    /// Clients that have disconnected have no task any more.
    ///
    /// - Parameters:
    ///   - most: the tasks that they may have had while time passed.
    ///   - mostAtOnce: the same with those that were cancelled at a moment and ended at it. Default: `most`.
    func requireNoTask(afterAtMost most: Int, atOnce mostAtOnce: Int? = nil) throws {
        let tasks = world.openTasks
        try require(tasks.now == 0, "\(tasks.now) tasks of clients have not ended, but all clients have disconnected")
        try require(
            tasks.mostLasting <= most, "clients had \(tasks.mostLasting) tasks for a time, \(most) may be")
        let atOnce = mostAtOnce ?? most
        try require(tasks.most <= atOnce, "clients had \(tasks.most) tasks at once, \(atOnce) may be")
    }

    /// Nothing waits for a time any more: clients have disconnected, and messages with a time to live have come to its end.
    func requireNoAlarm() throws {
        // A slow network may still carry bytes of connections that their clients have closed.
        let alarms = clock.loop.alarms
        let names = alarms.map { alarm in
            "\(type(of: alarm)) in \(Duration.nanoseconds(alarm.deadline - clock.loop.now))"
        }
        try require(
            alarms.count == world.deliveryAlarms,
            "\(alarms.count - world.deliveryAlarms) alarms are set, but all clients have disconnected: \(names)")
    }

    /// For how long the system has been awake: what a call takes does not count the time asleep.
    var timeAwake: Duration { .nanoseconds(clock.loop.now) - world.timeAsleep }

    private func requireFailure(_ name: String, of call: () async throws -> Void) async throws {
        let start = timeAwake
        do {
            try await call()
        } catch {
            let time = timeAwake - start
            return try require(time == .zero, "\(name) of a client that has disconnected failed after \(time)")
        }
        throw SimulationError("\(name) of a client that has disconnected succeeded")
    }
}

extension LoopbackBroker {
    /// The filters in the session of a client.
    func filters(of client: String) -> Set<String> {
        hub.state.withLock { state in
            let session = state.router.sessions.first { $0?.clientID == client }
            return Set((session ?? nil)?.filters.all.map { $0.text } ?? [])
        }
    }

    func hasSession(of client: String) -> Bool {
        hub.state.withLock { state in state.router.sessions.contains { $0?.clientID == client } }
    }

    /// Collects what is published to a topic from now on, as a durable subscription of STOMP does, but without a connection.
    func collect(topic: String) {
        hub.state.withLock { state in
            let topics = Destination(Destination.topicPrefix + topic)
            try? state.router.makeQueue(Self.collection(of: topic), collecting: topics)
        }
    }

    /// The texts that were collected, in their order.
    func collected(topic: String) -> [String] {
        hub.state.withLock { state in
            let messages = state.router.queues[Self.collection(of: topic)]?.messages ?? []
            return messages.map { String(decoding: $0.message.payload, as: UTF8.self) }
        }
    }

    private static func collection(of topic: String) -> ByteKey { ByteKey("collected \(topic)") }

    /// The transactions of STOMP that are neither committed nor aborted.
    var openTransactions: Int {
        hub.state.withLock { $0.router.stompConnections.values.reduce(0) { $0 + $1.transactions.count } }
    }

    /// What connected clients of STOMP have subscribed to, without temporary queues.
    var subscribedDestinations: Set<String> {
        hub.state.withLock { state in
            let consumers = state.router.stompConnections.values.flatMap(\.consumers)
            let destinations = consumers.compactMap { state.router.consumers[$0]?.destination }
            return Set(destinations.filter { $0.kind != .temporaryQueue }.map(\.text))
        }
    }

    /// A URL of this broker, which is also `broker.example`. Some clients need a network and a name, some use a WebSocket.
    func url(_ scheme: String, _ port: Int?, using random: inout SimulationRandom) -> String {
        let host = Bool.random(using: &random) ? "broker.example" : "127.0.0.1"
        let usesWebSocket = Int.random(in: 0..<4, using: &random) == 0
        return usesWebSocket ? "ws://\(host):\(ports.ws ?? 0)" : "\(scheme)://\(host):\(port ?? 0)"
    }
}

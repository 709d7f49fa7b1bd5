import Synchronization
import Transport

@testable import LoopbackBroker
@testable import MQTT

/// Where a client has its session.
enum StoreKind: CaseIterable {
    case none, memory, file
    /// Written records are not forced to the disk, so that the power must not fail.
    case unsynced
}

/// The process of a client: it may end at any moment, and starts again with what is in its store.
final class ClientProcess: Sendable {
    private struct State {
        var client: MQTTClient
        var life = 1
        var isDown = false
        var isOver = false
        /// Ends what the process does.
        var cancel: (@Sendable () -> Void)?
        var watches: [(ClientWatch, MQTTClient, Task<Void, Never>)] = []
    }

    /// The client identifier.
    let name: String
    private let urls: [String]
    let configuration: MQTTConfiguration
    private let store: StoreKind
    /// What the store holds; nil without one.
    let contents: StoreContents?
    private let world: Simulation
    private let onEvent: @Sendable (MQTTEvent, StoreContents?) -> Void
    private let state: Mutex<State>

    init(
        _ name: String, _ urls: [String], _ configuration: MQTTConfiguration, _ store: StoreKind, _ world: Simulation,
        onEvent: @escaping @Sendable (MQTTEvent, StoreContents?) -> Void
    ) {
        (self.name, self.urls, self.store, self.world, self.onEvent) = (name, urls, store, world, onEvent)
        contents = store == .none ? nil : StoreContents(world)
        var configuration = configuration
        if store == .memory {
            configuration.sessionStore = contents.map { WatchedStore(MemorySessionStore(), $0, life: 1) }
        }
        self.configuration = configuration
        let client = Self.makeClient(name, urls, configuration, store, contents, world, life: 1)
        state = Mutex(State(client: client))
        watch(client, 1)
    }

    private var directory: String { Self.directory(of: name) }
    private static func directory(of name: String) -> String { "/\(name)" }

    private static func makeClient(
        _ name: String, _ urls: [String], _ configuration: MQTTConfiguration, _ store: StoreKind,
        _ contents: StoreContents?, _ world: Simulation, life: Int
    ) -> MQTTClient {
        var configuration = configuration
        if let contents, store != .memory {
            var options = FileSessionStore.Options()
            options.sync = store == .file ? .always : .never
            // So that the log is rewritten now and then.
            options.compactionSize = 200
            let files = FileSessionStore(directory: directory(of: name), options: options)
            configuration.sessionStore = WatchedStore(files, contents, life: life)
        }
        return MQTTClient(
            urls, clientID: name, configuration: configuration, loop: world.clock.loop, clock: world.clock)
    }

    private func watch(_ client: MQTTClient, _ life: Int) {
        let watch = ClientWatch(name)
        let task = watch.watch(client, world) { [onEvent, contents] event in onEvent(event, contents) }
        state.withLock { $0.watches.append((watch, client, task)) }
    }

    var current: (client: MQTTClient, life: Int) { state.withLock { ($0.client, $0.life) } }
    var client: MQTTClient { current.client }

    /// Whether a client is that of the process that runs now.
    func uses(_ client: MQTTClient) -> Bool { state.withLock { !$0.isOver && $0.client === client } }

    /// What the process of a client does ends with it.
    func hold(_ client: MQTTClient, _ cancel: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if state.client === client { state.cancel = cancel }
            return state.client !== client
        }
        if isOver { cancel() }
    }

    /// The world is over.
    func finish() { state.withLock { $0.isOver = true } }

    func start() async { await client.start() }

    /// Returns when the process runs.
    func isRunning() async {
        while state.withLock({ $0.isDown }) { try? await world.clock.sleep(for: .milliseconds(100)) }
    }

    /// The process ends at this moment, and starts again after `pause`. Without a store on the disk nothing happens.
    func end(_ broker: LoopbackBroker, losingPower: Bool, pause: () async -> Void) async {
        guard store == .file || store == .unsynced else { return }
        let old = state.withLock { state -> MQTTClient? in
            guard !state.isDown, !state.isOver else { return nil }
            state.isDown = true
            return state.client
        }
        guard let old else { return }
        // In one step: a client whose connection is only cut could connect once more, and one that is only left by its tasks
        // would unsubscribe. A process that has ended says neither.
        await old.core.supervisor.stop {
            old.core.link.dropConnectionNow()
            self.leave(old, losingPower)
        }
        // It had no connection.
        leave(old, losingPower)
        // What was on its way is lost too.
        await broker.dropConnection(of: name)
        await pause()
        await client.start()
        state.withLock { $0.isDown = false }
    }

    /// From now on nobody uses the old client; does nothing if that has been said before.
    private func leave(_ old: MQTTClient, _ losingPower: Bool) {
        let (current, previousLife) = current
        guard current === old else { return }
        let life = previousLife + 1
        let client = Self.makeClient(name, urls, configuration, store, contents, world, life: life)
        let cancel = state.withLock { state in
            defer { (state.client, state.life, state.cancel) = (client, life, nil) }
            return state.cancel
        }
        cancel?()
        contents?.begin(life: life)
        world.endProcess(usingStoreIn: directory, losingPower: losingPower && store == .file)
        watch(client, life)
    }

    /// Checks what its clients have reported, all of which have disconnected.
    ///
    /// - Parameter mayAbandon: whether they may have abandoned messages, as for a server with smaller limits.
    func check(_ world: Simulation, mayAbandon: Bool = false) async throws {
        try await world.clock.sleep(for: .seconds(1))
        for (watch, client, task) in state.withLock({ $0.watches }) {
            task.cancel()
            await task.value
            try watch.check(client.counters, servers: urls.count, world)
        }
        // What the clients of processes that have ended still hold is lost with them.
        let new = Self.makeClient(name, urls, configuration, store, contents, world, life: 0)
        try world.requireNothingLeft(in: client, unlike: new, mayAbandon: mayAbandon)
    }
}

/// What a session store holds, to check that nothing leaves before it is stored.
final class StoreContents: Sendable {
    private struct State {
        /// That of the process that may open the store.
        var life = 1
        var isEstablished = false
        var wasEstablished = false
        /// Every message that was ever stored: its topic and text.
        var messages: Set<String> = []
        /// Identifiers of received messages of QoS 2, and when others were last released.
        var received: Set<UInt16> = []
        var released: [UInt16: Duration] = [:]
        /// The topic filters that the server may have.
        var filters: Set<String> = []
    }

    private let world: Simulation
    private let start: ManualClock.Instant
    private let state = Mutex(State())

    init(_ world: Simulation) { (self.world, start) = (world, world.clock.now) }

    private var now: Duration { start.duration(to: world.clock.now) }

    /// The process has ended, and another begins.
    func begin(life: Int) { state.withLock { $0.life = life } }
    func isOver(life: Int) -> Bool { state.withLock { $0.life != life } }

    /// A store was opened with these records.
    func begin(_ records: [MQTTStoreRecord]) {
        state.withLock { ($0.isEstablished, $0.received, $0.filters) = (false, [], []) }
        add(records)
        state.withLock { $0.wasEstablished = $0.isEstablished }
    }

    func add(_ records: [MQTTStoreRecord]) {
        let now = now
        state.withLock { state in
            for record in records {
                switch record {
                case .established: state.isEstablished = true
                case .message(let message):
                    state.messages.insert("\(message.topic) \(String(decoding: message.payload, as: UTF8.self))")
                case .received(let id): state.received.insert(id)
                case .kept(let message): state.received.insert(message.packetID)
                case .receivedReleased(let id):
                    state.received.remove(id)
                    state.released[id] = now
                case .receivedForgotten, .discarded:
                    for id in state.received { state.released[id] = now }
                    state.received = []
                case .filterWanted(let filter), .filterEnded(let filter): state.filters.insert(filter)
                case .filterForgotten(let filter): state.filters.remove(filter)
                default: break
                }
            }
        }
    }

    /// Whether it holds that the server may have a session.
    var isEstablished: Bool { state.withLock { $0.isEstablished } }
    /// Whether it did when it was opened.
    var wasEstablished: Bool { state.withLock { $0.wasEstablished } }

    /// The topic filters that the server may have.
    var filters: Set<String> { state.withLock { $0.filters } }

    func hasHeld(_ topic: String, _ text: String) -> Bool {
        state.withLock { $0.messages.contains("\(topic) \(text)") }
    }

    /// Whether it holds, or held until this moment, that a message of QoS 2 has been received.
    func hasReceived(_ id: UInt16) -> Bool {
        let now = now
        return state.withLock { $0.received.contains(id) || $0.released[id] == now }
    }
}

/// A session store that notes what it holds.
private final class WatchedStore: SessionStore {
    private let base: any SessionStore
    private let contents: StoreContents
    private let life: Int

    init(_ base: any SessionStore, _ contents: StoreContents, life: Int) {
        (self.base, self.contents, self.life) = (base, contents, life)
    }

    var limits: SessionStoreLimits { base.limits }

    func open() throws -> StoredSession {
        // What a process that has ended would still do does not happen.
        if contents.isOver(life: life) { throw SessionStoreError("The process has ended.") }
        let session = try base.open()
        contents.begin(session.records)
        return session
    }

    func setClientID(_ clientID: String) throws { try base.setClientID(clientID) }

    func append(_ records: [MQTTStoreRecord]) throws {
        try base.append(records)
        contents.add(records)
    }

    func removeAll() throws {
        try base.removeAll()
        contents.begin([])
    }

    func close() { base.close() }
}

import MQTTCore
import MessagingWire
import Synchronization
import Transport

/// What all connections of a broker share: the router under its lock, the connections by number, the counters.
///
/// Everything that happens to connections happens on one loop's thread, one thing at a time. A link's lock is never
/// held while the router's or another link's is taken: machines leave what they received in their `afterLock`, it is routed
/// under the router's lock, and what comes out is handed to the links after that lock is released too.
final class Hub: Sendable {
    struct State: Sendable {
        var router: Router
        var connections: [Router.ConnectionID: Connection] = [:]
        /// The names of the clients that have been accepted.
        var names: [Router.ConnectionID: String] = [:]
        /// Nanoseconds by which everything that is sent is delayed, for clients that have no latency of their own.
        var latency: Int64 = 0
        var latencies: [ByteKey: Int64] = [:]
        var nextConnection: Router.ConnectionID = 1
        var alarmIsSetTo = Int64.max
        /// What connections of 5.0 that are opened from now on are granted; nil for the options.
        var granted: GrantedLimits?
        /// Under which the broker is reached in memory.
        var hosts = ["127.0.0.1", "::1", "localhost"]
        var isFrozen = false
        var isStopped = false
        /// The loop takes no work any more.
        var isOver = false

        /// What is sent on this connection is delayed by so many nanoseconds.
        func latency(of id: Router.ConnectionID) -> Int64 {
            names[id].flatMap { latencies[ByteKey($0)] } ?? latency
        }
    }

    let loop: EventLoop
    /// Owns the loop; nil if the broker does.
    let clock: ManualClock?
    let options: LoopbackBrokerOptions
    private let tls: TLSContexts?
    let counters = Counters()
    let faults: Lock<LoopbackFaults>
    let packets = PacketWatch()
    /// Nil unless clients are judged.
    let judges: ClientJudges?
    /// Nanoseconds for which a simulation holds answers back at most.
    let answerDelay = Atomic<Int64>(0)
    let state: Lock<State>
    /// Wakes the router for the deadlines of sessions and wills; made with the first of them.
    private let alarm: Lock<LoopAlarm?> = Lock(nil)

    init(_ options: LoopbackBrokerOptions, clock: ManualClock?) throws(TransportError) {
        self.options = options
        tls = options.tls.map { TLSContexts(server: $0) }
        self.clock = clock
        if let clock { loop = clock.loop } else { loop = try EventLoop.start() }
        judges = options.judgesClients ? ClientJudges(options.judging, judgesTime: clock != nil) : nil
        faults = Lock(options.faults)
        state = Lock(State(router: Router(options)))
    }

    // MARK: Connections

    /// Serves a stream; from any thread.
    func serve(_ stream: any ByteStream, as service: Service) {
        counters.add(.connections)
        loop.execute { self.adopt(stream, service) }
    }

    private func adopt(_ stream: any ByteStream, _ service: Service) {
        let maximum = options.limits.maximumConnections
        let (id, latency, isFrozen, isRefused) = state.withLock { state in
            defer { state.nextConnection += 1 }
            let isRefused = state.isStopped || state.connections.count >= maximum
            return (state.nextConnection, state.latency, state.isFrozen, isRefused)
        }
        guard !isRefused else { return stream.close() }
        let served = ServedStream(stream, loop: loop, isFrozen: isFrozen, latency: latency)
        do throws(TransportError) {
            guard let opening = try service.makeLayers(at: loop.now) else {
                return begin(service.kind, id, served, isFrozen: isFrozen, layers: nil)
            }
            let handshake = LayerHandshake(serving: opening.layers, over: served, loop: loop)
            state.withLock { $0.connections[id] = .opening(handshake, served) }
            handshake.start { [self] result in
                let isFrozen = state.withLock { $0.isFrozen }
                switch result {
                case .success:
                    let kind = opening.webSocket.map { Service.kind(ofSubprotocol: $0.subprotocol) } ?? service.kind
                    begin(kind, id, served, isFrozen: isFrozen, layers: opening.layers)
                case .failure:
                    forget(id)
                }
            }
            if isFrozen { handshake.setDeadline(.max) }
        } catch {
            // The certificate was good when the broker started, and the library was there.
            stream.close()
        }
    }

    private func begin(
        _ kind: Service.Kind, _ id: Router.ConnectionID, _ served: ServedStream, isFrozen: Bool, layers: LayerStack?
    ) {
        let connection = Connection.make(kind, id: id, stream: served, hub: self)
        state.withLock { $0.connections[id] = connection }
        if isFrozen { connection.setFrozen(true, at: loop.now) }
        connection.attach(served, layers: layers)
    }

    /// A client is about to be accepted; on the loop's thread.
    func setName(_ name: String, of id: Router.ConnectionID) {
        let (connection, latency) = state.withLock { state in
            state.names[id] = name
            return (state.connections[id], state.latency(of: id))
        }
        connection?.stream.setLatency(latency)
    }

    /// A connection is gone; on the loop's thread.
    func forget(_ id: Router.ConnectionID) {
        judges?.closed(id)
        state.withLock { state in
            state.connections[id] = nil
            state.names[id] = nil
        }
    }

    func connection(_ id: Router.ConnectionID) -> Connection? {
        state.withLock { $0.connections[id] }
    }

    var connectionCount: Int { state.withLock { $0.connections.count } }

    /// Runs `body` on the loop's thread and returns its result, or at once `fallback` when the broker has stopped.
    func onLoop<Result: Sendable>(
        orIfStopped fallback: Result, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        let call = PendingCall<Result>()
        // Under the lock, since the loop still does what was handed in before it was told to stop.
        let isHandedIn = state.withLock { state in
            if !state.isOver { loop.execute { call.end(body()) } }
            return !state.isOver
        }
        return isHandedIn ? await call.answer() : fallback
    }

    /// Does the same. With a manual clock this returns when the clients have noticed what it did.
    func act<Result: Sendable>(
        orIfStopped fallback: Result, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        let result = await onLoop(orIfStopped: fallback, body)
        await clock?.waitUntilQuiet()
        return result
    }

    /// Does the same with every connection.
    func forEachConnection(_ body: @escaping @Sendable (Connection) -> Void) async {
        await act(orIfStopped: ()) {
            for connection in self.openConnections { body(connection) }
        }
    }

    /// Falls silent, or ends that; on the loop's thread.
    func setFrozen(_ isFrozen: Bool) {
        state.withLock { $0.isFrozen = isFrozen }
        for connection in openConnections { connection.setFrozen(isFrozen, at: loop.now) }
    }

    /// The connections that are open, oldest first.
    var openConnections: [Connection] {
        state.withLock { state in state.connections.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// The connections of a client, oldest first.
    func connections(of client: String) -> [(id: Router.ConnectionID, connection: Connection)] {
        state.withLock { state in
            state.names.filter { $0.value.hasSameBytes(as: client) }.keys.sorted()
                .compactMap { id in state.connections[id].map { (id, $0) } }
        }
    }

    /// Cuts a connection soon; from any thread, under any lock.
    func drop(_ id: Router.ConnectionID) {
        loop.execute { self.connection(id)?.drop() }
    }

    // MARK: Routing

    /// Runs `body` on the router under its lock, then hands what it wants sent to the connections; on the loop's
    /// thread.
    func route<Result>(at now: Int64, _ body: (inout Router, inout RouterEffects) -> Result) -> Result {
        var effects = RouterEffects()
        var targets: [Connection?] = []
        var messageTargets: [Connection?] = []
        let (result, newDeadline) = state.withLock { state in
            let result = body(&state.router, &effects)
            targets.reserveCapacity(effects.publishes.count)
            for (id, _) in effects.publishes { targets.append(state.connections[id]) }
            for message in effects.messages { messageTargets.append(state.connections[message.connection]) }
            let deadline = state.router.nextDeadline
            defer { state.alarmIsSetTo = deadline }
            return (result, deadline == state.alarmIsSetTo ? nil : deadline)
        }
        if effects.dropped > 0 { counters.add(.messagesDropped, effects.dropped) }
        for (index, connection) in targets.enumerated() {
            connection?.deliver(effects.publishes[index].item, at: now)
        }
        if !messageTargets.isEmpty { deliver(effects.messages, to: messageTargets, at: now) }
        if let newDeadline { setAlarm(newDeadline) }
        return result
    }

    /// Delivers to STOMP connections; what finds no room goes back to the router.
    private func deliver(_ messages: [STOMPDelivery], to targets: [Connection?], at now: Int64) {
        var refused: [STOMPDelivery] = []
        for (message, target) in zip(messages, targets) where target?.deliver(message, at: now) == false {
            refused.append(message)
        }
        guard !refused.isEmpty else { return }
        route(at: now) { router, effects in router.takeBack(refused, at: now, into: &effects) }
    }

    /// A STOMP connection that refused messages has room again; from any thread.
    func hasRoomAgain(_ id: Router.ConnectionID) {
        loop.execute { [self] in
            let now = loop.now
            route(at: now) { router, effects in router.hasRoomAgain(id, at: now, into: &effects) }
        }
    }

    private func setAlarm(_ deadline: Int64) {
        let alarm = alarm.withLock { alarm -> LoopAlarm? in
            if alarm == nil && deadline != .max {
                alarm = LoopAlarm(loop: loop) { [weak self] now in
                    self?.route(at: now) { router, effects in router.handleTimeout(at: now, into: &effects) }
                }
            }
            return alarm
        }
        alarm?.set(deadline)
    }

    /// Whether this is the first call: from now on no connection is taken.
    func beginStop() -> Bool {
        state.withLock { state in
            defer { state.isStopped = true }
            return !state.isStopped
        }
    }

    /// The ports to listen on, and what is spoken there.
    var services: [(WritableKeyPath<LoopbackBroker.Ports, Int?>, LoopbackBrokerOptions.Port, Service)] {
        options.services(tls)
    }

    /// Finds mistakes in the options for TLS, which the first client would meet otherwise.
    func checkTLS() throws(TransportError) {
        if let tls { _ = try TLSLayer(server: tls) }
    }

    /// Adds a name to those under which the broker is reached in memory. It is the only one where another broker has a port
    /// that this one asks for.
    func use(_ host: String) {
        let isShared = services.contains { _, port, _ in
            guard let number = port.number else { return false }
            return isTaken(number, LoopbackBroker.Ports())
        }
        state.withLock { $0.hosts = isShared ? [host] : $0.hosts + [host] }
    }

    /// The name under which the broker is reached in memory, where it is no name of this machine; nil otherwise.
    var onlyHost: String? { state.withLock { $0.hosts.count == 1 ? $0.hosts[0] : nil } }

    /// Whether a port is served in memory already, or is one of `ports`.
    func isTaken(_ number: Int, _ ports: LoopbackBroker.Ports) -> Bool {
        guard let port = UInt16(exactly: number) else { return false }
        return ports.all.contains(number)
            || state.withLock({ $0.hosts }).contains { loop.service(at: .host($0, port: port)) != nil }
    }

    /// Serves connections that are opened in memory, with the same manual clock, or ends that.
    func setMemoryServices(_ ports: LoopbackBroker.Ports, isOpen: Bool) {
        guard clock != nil else { return }
        func set(_ endpoint: Endpoint, _ service: Service) {
            guard isOpen else { return loop.setService(at: endpoint, nil) }
            loop.setService(at: endpoint) { [weak self] stream in self?.serve(stream, as: service) }
        }
        for (port, _, service) in services {
            guard let number = ports[keyPath: port] else { continue }
            for host in state.withLock({ $0.hosts }) { set(.host(host, port: UInt16(number)), service) }
        }
        for (path, kind) in options.sockets { set(.unix(path: path), Service(kind)) }
    }

    /// Closes every connection, and ends the loop if it is the broker's; returns when all are closed.
    func closeAll() async {
        await forEachConnection { $0.drop() }
        await onLoop(orIfStopped: ()) { self.setAlarm(.max) }
        packets.finish()
        guard clock == nil else { return }
        state.withLock { $0.isOver = true }
        loop.stop()
    }
}

extension Hub {
    var currentFaults: LoopbackFaults { faults.withLock { $0 } }
    var withholdsAcknowledgements: Bool { faults.withLock { $0.withholdsAcknowledgements } }

    /// Whether a client with this user name and password may connect. Both are compared as bytes.
    func admits(user: String?, password: [UInt8]?) -> Bool {
        guard let users = options.users else { return true }
        guard let user, let password else { return false }
        return users.contains { $0.name.hasSameBytes(as: user) && $0.password.utf8.elementsEqual(password) }
    }
}

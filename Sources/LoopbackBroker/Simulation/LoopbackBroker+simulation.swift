import MQTTCore
package import MessagingSimulation
import Synchronization
package import Transport

extension Simulation {
    /// Starts a broker of this world: its ports exist in the simulation only. Brokers that are started here restart and fall
    /// silent as the plan says. The world fails at the first rule of the specification that a client breaks.
    ///
    /// - Parameters:
    ///   - options: as for ``LoopbackBroker/start(_:clock:)``.
    ///   - host: a name under which clients reach it too, such as `mqtt://broker.example:` and the port. Default: nil, by
    ///     its URLs only, which are addresses of this machine. If another broker has one of its ports there, clients reach
    ///     it by this name alone, which its URLs then have.
    /// - Throws: as ``LoopbackBroker/start(_:clock:)``, `cannotListen` when another broker of the world has a port that was
    ///   to be used exactly.
    public func startBroker(
        _ options: LoopbackBrokerOptions = LoopbackBrokerOptions(), host: String? = nil
    ) async throws(TransportError) -> LoopbackBroker {
        var options = options
        options.judgesClients = true
        options.judging.onViolation = { [weak self] in self?.fail("\($0)") }
        let broker = try await LoopbackBroker.start(options, clock: clock, host: host)
        add(broker)
        return broker
    }
}

extension LoopbackBroker: SimulatedBroker {
    package func restart(keepsSessions: Bool) { hub.restart(keepsSessions: keepsSessions) }
    package func setSilent(_ isSilent: Bool) { hub.setFrozen(isSilent) }
    package func setAnswerDelay(_ nanoseconds: Int64) { hub.answerDelay.store(nanoseconds, ordering: .relaxed) }
    package func grant(_ limits: GrantedLimits?) { hub.state.withLock { $0.granted = limits } }

    package func takeovers(in world: SimulatedWorld) -> [@Sendable () -> (any ByteStream)?] {
        hub.sessionsToTake.map { session in { self.takeOver(session, in: world) } }
    }

    /// Connects with the identifier of a client, as a second device with the same configuration does, but reads nothing.
    private func takeOver(_ session: Hub.SessionToTake, in world: SimulatedWorld) -> (any ByteStream)? {
        guard let port = ports.mqtt else { return nil }
        var configuration = MQTTEngineConfiguration(role: .client, version: session.version)
        configuration.clientID = session.client
        configuration.cleanStart = session.expiry == 0
        configuration.sessionExpiry = session.expiry
        configuration.will = session.will
        configuration.keepAlive = session.keepAlive
        configuration.receiveMaximum = session.limits.receiveMaximum
        configuration.maximumPacketSize = session.limits.maximumPacketSize
        configuration.topicAliasMaximum = session.limits.topicAliasMaximum
        let user = hub.options.users?.first
        (configuration.userName, configuration.password) = (user?.name, user.map { Array($0.password.utf8) })
        var engine = MQTTEngine(configuration: configuration)
        guard (try? engine.connectionOpened(at: hub.loop.now)) != nil else { return nil }
        return world.open(
            to: .host("127.0.0.1", port: UInt16(clamping: port)), writing: engine.output, on: hub.loop)
    }
}

extension GrantedLimits {
    func apply(to configuration: inout MQTTEngineConfiguration) {
        configuration.receiveMaximum = receiveMaximum
        configuration.enforcesReceiveMaximum = true
        configuration.maximumPacketSize = maximumPacketSize
        configuration.maximumQoS = maximumQoS
        configuration.topicAliasMaximum = topicAliasMaximum
    }
}

extension Hub {
    /// Closes all connections as a server does that is killed; without its sessions it comes back empty. On the loop's
    /// thread.
    func restart(keepsSessions: Bool) {
        for connection in openConnections { connection.drop() }
        guard !keepsSessions else { return }
        // After what closing leads to.
        loop.execute { [self] in
            let router = Router(options)
            state.withLock { $0.router = router }
        }
    }

    /// A client of MQTT whose session another connection can take over.
    struct SessionToTake {
        let client: String
        let version: MQTTVersion
        /// As in CONNECT of 5.0.
        let expiry: UInt32
        let will: MQTTWill?
        /// Of the client.
        let limits: MQTTPeerLimits
        /// In seconds.
        let keepAlive: UInt16
    }

    /// Those that are connected now, in the order in which they connected.
    var sessionsToTake: [SessionToTake] {
        let connections = state.withLock { state in
            state.names.sorted { $0.key < $1.key }.compactMap { id, name in
                state.connections[id].map { (name, $0) }
            }
        }
        return connections.compactMap { name, connection in
            guard case .mqtt(let link, _) = connection else { return nil }
            let (version, session, limits, silence) = link.perform {
                ($0.engine.version, $0.session, $0.engine.limits, $0.engine.keepAlive.interval)
            }
            guard session >= 0 else { return nil }
            return state.withLock { state in
                SessionToTake(
                    client: name, version: version, expiry: state.router.expiry(ofSession: session),
                    will: state.router.will(ofSession: session), limits: limits,
                    // The server waits one and a half times as long.
                    keepAlive: UInt16(clamping: silence / 1_500_000_000))
            }
        }
    }
}

extension LoopbackBrokerOptions.Port {
    /// The port that is asked for; nil for none and for any.
    var number: Int? {
        switch choice {
        case .none, .free: nil
        case .preferred(let number), .exactly(let number): number
        }
    }

    /// The number of the port in a simulation; nil if the protocol is not served.
    ///
    /// - Parameter isTaken: whether another service has it.
    func simulated(in world: any LoopWorld, isTaken: (Int) -> Bool) throws(TransportError) -> Int? {
        guard let number else { return choice == .none ? nil : world.makePort() }
        let port = Int(try LoopbackListeners.port(number))
        guard isTaken(port) else { return port }
        guard choice == .preferred(number) else {
            throw TransportError(
                .cannotListen,
                "Another broker of this world has the port \(port). Give this one another port, or a host of its own.")
        }
        return world.makePort()
    }
}

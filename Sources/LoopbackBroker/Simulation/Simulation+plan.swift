import Synchronization
import Transport
import Wire

/// Carries the plan out; on the loop's thread.
extension Simulation {
    func begin() {
        let alarms = plan.entries.map { entry in
            (at(entry.time), LoopAlarm(loop: clock.loop) { [weak self] _ in self?.perform(entry) })
        }
        state.withLock { $0.alarms = alarms.map(\.1) }
        for (time, alarm) in alarms { alarm.set(time) }
    }

    /// Nothing of the plan happens any more, and nothing of the world is held.
    func end() {
        let alarms = state.withLock { state in
            let alarms = state.alarms
            state = State()
            return alarms
        }
        clock.loop.executeNow { for alarm in alarms { alarm.set(.max) } }
    }

    private func at(_ time: Duration) -> Int64 {
        clock.loop.now.advanced(byNanoseconds: time.inNanoseconds)
    }

    private func after(_ time: Duration, _ body: @escaping @Sendable (Simulation) -> Void) {
        let alarm = LoopAlarm(loop: clock.loop) { [weak self] _ in if let self { body(self) } }
        state.withLock { $0.alarms.append(alarm) }
        alarm.set(at(time))
    }

    private func perform(_ entry: SimulationPlan.Entry) {
        world.record(.note("plan \(entry)"))
        switch entry.event {
        case .cut(let place, let isUp, let packets):
            let links = world.links
            guard !links.isEmpty else { return }
            var random = entry.random
            links[random.below(links.count)].cut(place, isUp: isUp, after: packets)
        case .latency(let latency, let lasting):
            setLatency(latency.inNanoseconds, of: entry.number)
            after(lasting) { $0.setLatency(nil, of: entry.number) }
        case .refusal(let lasting):
            refuse(1)
            after(lasting) { $0.refuse(-1) }
        case .silence(let lasting):
            silence(1)
            after(lasting) { $0.silence(-1) }
        case .restart(let keepsSessions, let lasting):
            refuse(1)
            for broker in brokers { broker.hub.restart(keepsSessions: keepsSessions) }
            after(lasting) { $0.refuse(-1) }
        case .act(let name):
            guard let act = state.withLock({ $0.acts[name] }) else { return }
            let random = SimulationRandom(generator: entry.random)
            Task(executorPreference: world.executor) { await act(random) }
        }
    }

    private var brokers: [LoopbackBroker] { state.withLock { $0.brokers } }

    private func setLatency(_ latency: Int64?, of number: Int) {
        let longest = state.withLock { state in
            state.latencies[number] = latency
            return state.latencies.values.max() ?? 0
        }
        world.changeNetwork { $0.latency = 0...longest }
    }

    private func refuse(_ change: Int) {
        let count = state.withLock { state in
            state.refusals += change
            return state.refusals
        }
        world.changeNetwork { $0.refuses = count > 0 }
    }

    private func silence(_ change: Int) {
        let count = state.withLock { state in
            state.silences += change
            return state.silences
        }
        for broker in brokers { broker.hub.setSilent(count > 0) }
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
            let router = Router(
                limits: options.limits, keepsSessions: options.keepsSessions, refused: options.refusedMessages)
            state.withLock { $0.router = router }
        }
    }

    /// Falls silent, or ends that; on the loop's thread.
    func setSilent(_ isSilent: Bool) {
        state.withLock { $0.isFrozen = isSilent }
        for connection in openConnections { connection.setFrozen(isSilent, at: loop.now) }
    }
}

extension LoopbackBrokerOptions.Port {
    /// The number of the port in a simulation, where each is free; nil if the protocol is not served.
    func simulated(in world: SimulatedWorld) -> Int? {
        switch choice {
        case .none: nil
        case .free: world.makePort()
        case .preferred(let number), .exactly(let number): number
        }
    }
}

import MessagingWire
import Synchronization
import Transport

/// Carries the plan out; on the loop's thread.
extension Simulation {
    func begin() {
        var alarms = plan.entries.map { entry in
            (at(entry.time), LoopAlarm(loop: clock.loop) { [weak self] _ in self?.perform(entry) })
        }
        // A cut waits for a packet, on a connection without traffic for as long as the world lasts.
        let end = LoopAlarm(loop: clock.loop) { [weak self] _ in
            for link in self?.world.links ?? [] { link.cutNoMore() }
        }
        alarms.append((at(options.duration), end))
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
        world.record(.plan("plan \(entry)"))
        var random = entry.random
        switch entry.event {
        case .cut(let place, let isUp, let packets):
            let links = world.links
            guard !links.isEmpty else { return }
            links[random.below(links.count)].cut(place, isUp: isUp, after: packets)
        case .death(let isUp):
            let links = world.links
            guard !links.isEmpty else { return }
            links[random.below(links.count)].die(isUp: isUp)
        case .restart(let keepsSessions, let lasting):
            begin(entry, lasting)
            for broker in brokers { broker.restart(keepsSessions: keepsSessions) }
        case .limits(_, let lasting):
            begin(entry, lasting)
            for broker in brokers { broker.restart(keepsSessions: true) }
            after(lasting) { simulation in
                for broker in simulation.brokers { broker.restart(keepsSessions: true) }
            }
        case .takeover(let lasting):
            let takeovers = brokers.flatMap { $0.takeovers(in: world) }
            guard !takeovers.isEmpty else { return }
            guard let other = takeovers[random.below(takeovers.count)]() else { return }
            after(lasting) { _ in other.close() }
        case .latency(_, let lasting), .refusal(let lasting), .silence(let lasting), .slowness(_, _, let lasting),
            .slowAnswers(_, let lasting), .names(_, let lasting), .offline(let lasting),
            .disk(_, let lasting), .slowDisk(_, let lasting):
            begin(entry, lasting)
        case .clockChange(let change): world.setClock(forwardBy: change.inNanoseconds / 1_000_000)
        case .act(let name): perform(name, random)
        case .actAtPacket(let name):
            world.atNextPacket {
                random.below($0)
            } _: { [random, weak self] in
                self?.world.record(.plan("now the app: \(name)"))
                self?.perform(name, random)
            }
        }
    }

    private func perform(_ name: String, _ random: SplitMix) {
        guard let act = state.withLock({ $0.acts[name] }) else { return }
        Task(executorPreference: world.executor) { await act(SimulationRandom(generator: random)) }
    }

    private var brokers: [any SimulatedBroker] { state.withLock { $0.brokers } }

    /// What an entry does lasts for a time.
    private func begin(_ entry: SimulationPlan.Entry, _ lasting: Duration) {
        set(entry.event, of: entry.number)
        after(lasting) { $0.set(nil, of: entry.number) }
    }

    private func set(_ event: SimulationPlan.Entry.Event?, of number: Int) {
        let (old, new) = state.withLock { state in
            let old = state.conditions
            state.lasting[number] = event
            state.conditions = SimulatedConditions(state.lasting.sorted { $0.key < $1.key }.map(\.value))
            return (old, state.conditions)
        }
        world.changeNetwork { network in
            let isOffline = network.isOffline
            network = new.network
            network.isOffline = isOffline
        }
        world.disk.setFault(new.diskFault)
        if new.network.isOffline != old.network.isOffline { world.setOffline(new.network.isOffline) }
        for broker in brokers {
            broker.setAnswerDelay(new.answerDelay)
            broker.grant(new.granted)
            if new.isSilent != old.isSilent { broker.setSilent(new.isSilent) }
        }
    }
}

/// What the entries of a plan that have not ended do together.
struct SimulatedConditions: Sendable {
    var network = SimulatedWorld.Network()
    var isSilent = false
    /// In nanoseconds.
    var answerDelay: Int64 = 0
    var granted: GrantedLimits?
    var diskFault: SimulatedDisk.Fault?

    init(_ events: [SimulationPlan.Entry.Event] = []) {
        var (latency, connecting, name, disk) = (Int64(0), Int64(0), Int64(0), Int64(0))
        for event in events {
            switch event {
            case .latency(let longest, _): latency = max(latency, longest.inNanoseconds)
            case .refusal, .restart: network.refuses = true
            case .silence: isSilent = true
            case .slowness(let rate, let longest, _):
                network.rate = network.rate == 0 ? rate : min(network.rate, rate)
                connecting = max(connecting, longest.inNanoseconds)
            case .limits(let limits, _): granted = limits
            case .slowAnswers(let delay, _): answerDelay = max(answerDelay, delay.inNanoseconds)
            case .names(nil, _): network.hidesNames = true
            case .names(let longest?, _): name = max(name, longest.inNanoseconds)
            case .offline: network.isOffline = true
            case .slowDisk(let longest, _): disk = max(disk, longest.inNanoseconds)
            case .disk(let fault, _): diskFault = diskFault == .broken ? .broken : fault
            case .cut, .death, .takeover, .clockChange, .act, .actAtPacket: break
            }
        }
        network.latency = 0...latency
        network.connectDelay = 0...connecting
        network.nameDelay = 0...name
        network.diskDelay = 0...disk
    }
}

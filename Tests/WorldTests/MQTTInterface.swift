import MQTT
import MessagingJudge
import Synchronization

@testable import LoopbackBroker

/// Worlds whose acts and options are drawn from a table of the public interface of `MQTTClient`.
///
/// Servers keep their sessions, and each act has topics of its own, so that what has to happen is known exactly, whatever
/// goes wrong meanwhile: which messages arrive, in which order and how often, with which properties, and how each call ends.
enum MQTTInterface {
    struct Act: Sendable {
        let name: String
        /// The calls that it makes, as ``PublicInterface`` has them.
        let calls: [String]
        var versions = MQTTVersion.allCases
        let body: @Sendable (InterfaceStage, inout SimulationRandom) async throws -> Void
    }

    struct Option: Sendable {
        let name: String
        let set: @Sendable (inout MQTTConfiguration, inout SimulationRandom) -> Void
    }

    private static let actCount = 10

    /// What may happen to the world of a seed, and what does.
    static func world(of seed: UInt64) -> (SimulationOptions, @Sendable (Simulation) async throws -> Void) {
        var options = SimulationOptions()
        options.acts = ["move", "suspend", "tell of a network, or sleep"]
        options.placesActsAtPackets = true
        return (options, { world in try await run(world) })
    }

    static func run(seeds: Range<UInt64>) async throws {
        for seed in seeds {
            let (options, body) = world(of: seed)
            try await Simulation.run(seed: seed, options: options, body)
        }
    }

    /// The acts of a world, and the options of its clients.
    static func cast(_ random: inout SimulationRandom) -> (version: MQTTVersion, acts: [Act], options: [Option]) {
        let version: MQTTVersion = Int.random(in: 0..<3, using: &random) == 0 ? .v3_1_1 : .v5_0
        let possible = acts.filter { $0.versions.contains(version) }
        let drawn = (0..<actCount).compactMap { _ in possible.randomElement(using: &random) }
        return (version, drawn, options.filter { _ in Int.random(in: 0..<5, using: &random) == 0 })
    }

    private static func run(_ world: Simulation) async throws {
        var random = world.makeRandom()
        let (version, acts, options) = cast(&random)
        var serving = LoopbackBrokerOptions()
        serving.judging.judgesPromises = true
        // Apps subscribe again whose calls have failed, or who want it on each connection.
        serving.judging.mayBreak = [.needlessSubscribe]
        // Older clients do not learn it.
        if version == .v5_0, Int.random(in: 0..<3, using: &random) == 0 { serving.limits.keepAlive = 15...30 }
        if Int.random(in: 0..<4, using: &random) == 0 {
            serving.limits.maximumInFlight = Int.random(in: 1...3, using: &random)
        }
        let broker = try await world.startBroker(serving, host: "broker.example")
        let url = broker.url("mqtt", broker.ports.mqtt, using: &random)
        let hooks = HookCounts()
        var configuration = MQTTConfiguration()
        configuration.version = version
        configuration.cleanStart = false
        if version == .v5_0 { configuration.sessionExpiry = .seconds(86_400) }
        for option in options {
            world.note("option \(option.name)")
            option.set(&configuration, &random)
        }
        if Bool.random(using: &random) { configuration.messageHook = hooks.hook }
        let names = ["first", "second", "third"]
        let clients = names.map { MQTTClient(url, clientID: $0, configuration: configuration, clock: world.clock) }
        let stage = InterfaceStage(world, broker, url, configuration, clients)
        let watches = names.map { ClientWatch($0) }
        let watching = zip(watches, clients).map { watch, client in watch.watch(client, world) { _ in } }
        for client in clients { await client.start() }
        world.onAct("tell of a network, or sleep") { random in
            var random = random
            if Bool.random(using: &random) { return await world.sleep(&random) }
            for client in clients { client.networkChanged() }
        }
        world.onAct("suspend") { random in
            var random = random
            let client = clients[Int.random(in: clients.indices, using: &random)]
            await client.suspend()
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            client.resume()
        }
        world.onAct("move") { random in
            var random = random
            let client = clients[Int.random(in: clients.indices, using: &random)]
            guard client.state.isConnected else { return }
            let call = Task { _ = try? await client.reconnect() }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            call.cancel()
            await call.value
        }
        await withTaskGroup(of: Void.self) { group in
            for (number, act) in acts.enumerated() {
                let start = Duration.milliseconds(Int.random(in: 0...60_000, using: &random)) + .microseconds(number)
                let random = world.makeRandom()
                group.addTask {
                    var random = random
                    try? await world.clock.sleep(for: start)
                    world.note("act \(number): \(act.name)")
                    let watching = world.watch("act \(number), \(act.name)")
                    defer { watching.cancel() }
                    do {
                        try await act.body(stage, &random)
                        world.note("act \(number) ends")
                    } catch {
                        stage.broke("\(act.name): \(error)")
                    }
                }
            }
        }
        try await world.faultsHaveEnded()
        // What is acknowledged late, or again, has come by now.
        try await world.clock.sleep(for: .seconds(180))
        for (name, client) in zip(names, clients) {
            let backlog = client.backlog
            try world.require(
                backlog.queuedMessages == 0 && backlog.messagesInFlight == 0 && backlog.outboxBytes == 0
                    && backlog.unreadBytes == 0 && backlog.unacknowledgedMessages == 0,
                "the \(name) client has a backlog of \(backlog) at the end")
            let left = broker.filters(of: name).filter { !$0.hasPrefix("response") && !$0.contains("reply") }
            try world.require(left.isEmpty, "the session of the \(name) client has \(left.sorted()) at the end")
        }
        for client in clients {
            await client.disconnect()
            try await world.requireEnd(of: client)
        }
        await broker.stop()
        try await world.clock.sleep(for: .seconds(1))
        try stage.check()
        try hooks.check(world)
        for (index, client) in clients.enumerated() {
            watching[index].cancel()
            await watching[index].value
            try watches[index].check(client.counters, world)
            // Some move by themselves.
            let isQuiet = world.plan.entries.isEmpty && !stage.hasCut.load(ordering: .relaxed)
            if isQuiet, configuration.reconnect.maximumConnectionAge == nil {
                try watches[index].requireOneConnection(world)
            }
            let new = MQTTClient(url, clientID: names[index], configuration: configuration, clock: world.clock)
            try world.requireNothingLeft(in: client, unlike: new)
        }
        try world.requireNoDeadConnection()
        try await world.requireNoConnection(afterAtMost: 16)
        try world.requireNoTask(afterAtMost: 32)
        try world.requireNoAlarm()
    }
}

/// How often the closures of a message hook were called.
final class HookCounts: Sendable {
    private let begun = Atomic(0)
    private let ended = Atomic(0)

    func begin() { begun.add(1, ordering: .relaxed) }
    func end() { ended.add(1, ordering: .relaxed) }

    var hook: MQTTMessageHook {
        MQTTMessageHook { message in
            self.begin()
            return { _ in self.end() }
        } receiving: { _ in
        }
    }

    func check(_ world: Simulation) throws {
        let (begun, ended) = (begun.load(ordering: .relaxed), ended.load(ordering: .relaxed))
        try world.require(begun == ended, "the hook saw \(begun) messages begin, but \(ended) end")
    }
}

/// What acts share.
final class InterfaceStage: Sendable {
    let world: Simulation
    let broker: LoopbackBroker
    let url: String
    let configuration: MQTTConfiguration
    let clients: [MQTTClient]
    private let broken = Mutex<[String]>([])
    private let count = Atomic(0)

    init(
        _ world: Simulation, _ broker: LoopbackBroker, _ url: String, _ configuration: MQTTConfiguration,
        _ clients: [MQTTClient]
    ) {
        (self.world, self.broker, self.url) = (world, broker, url)
        (self.configuration, self.clients) = (configuration, clients)
    }

    /// How many messages the broker sends before the first one is acknowledged.
    var maximumInFlight: UInt16 { UInt16(clamping: broker.hub.options.limits.maximumInFlight) }

    var is5: Bool { configuration.version == .v5_0 }

    /// What a client did that it must not do.
    func broke(_ text: String) {
        world.noteViolation(text)
        broken.withLock { $0.append(text) }
    }

    func require(_ condition: Bool, _ text: @autoclosure () -> String) { if !condition { broke(text()) } }

    func check() throws {
        let broken = broken.withLock { $0 }
        try world.require(broken.isEmpty, broken.joined(separator: "; "))
    }

    /// Cuts the connection of a client in the middle of an exchange: the moment that other faults meet least.
    func cut(_ client: MQTTClient, _ random: inout SimulationRandom) {
        hasCut.store(true, ordering: .relaxed)
        let packets: [(LoopbackDirection, LoopbackPacket)] = [
            (.sent, .mqtt(.puback)), (.sent, .mqtt(.pubrec)), (.received, .mqtt(.pubrel)), (.sent, .mqtt(.pubcomp)),
        ]
        let (direction, packet) = packets.randomElement(using: &random) ?? packets[0]
        let number = Int.random(in: 1...4, using: &random)
        broker.inject(.cut, direction, packet, client: client.clientID, number: number)
    }

    /// Whether an act has cut connections.
    let hasCut = Atomic(false)

    /// A topic that no other act uses.
    func makeTopic() -> String { "act/\(count.add(1, ordering: .relaxed).newValue)" }

    /// Two different clients.
    func pair(_ random: inout SimulationRandom) -> (MQTTClient, MQTTClient) {
        let drawn = clients.shuffled(using: &random)
        return (drawn[0], drawn[1])
    }

    /// Repeats a request that has no answer in time, or whose connection ended before its answer, as an app does.
    func retrying<Result>(
        _ what: String, _ body: () async throws(MQTTError) -> Result
    ) async throws -> Result {
        let start = world.timeAwake
        let watching = world.watch(what, for: .seconds(900))
        defer { watching.cancel() }
        while true {
            do throws(MQTTError) {
                return try await body()
            } catch {
                let time = world.timeAwake - start
                world.note("\(what): \(error.code)")
                let passes = [.timedOut, .connectionLost, .notConnected, .sessionLost].contains(error.code)
                try world.require(passes && time < .seconds(400), "\(what) fails after \(time): \(error)")
                try await world.clock.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Reads until a message has the text `end`, which the caller publishes last.
    func read(_ messages: MQTTSubscription, _ what: String) async throws -> [MQTTMessage] {
        let reading = Task {
            var read: [MQTTMessage] = []
            for try await message in messages {
                if message.text == "end" { return read }
                read.append(message)
            }
            throw SimulationError("\(what) ended by itself after \(read.map { $0.text ?? "" })")
        }
        let isLate = Atomic(false)
        let patience = Task {
            try await world.clock.sleep(for: .seconds(600))
            isLate.store(true, ordering: .relaxed)
            reading.cancel()
        }
        defer { patience.cancel() }
        do {
            return try await reading.value
        } catch  where isLate.load(ordering: .relaxed) {
            throw SimulationError("\(what) did not receive its last message within 600 s")
        }
    }

    /// Compares what was read with what was published: of QoS 2 each once, of QoS 1 at least once, and first ones in order.
    func compare(_ read: [MQTTMessage], with published: [MQTTOutgoingMessage], granted: QoS, _ what: String) {
        let texts = read.map { $0.text ?? "" }
        let expected = published.filter { $0.qos != .atMostOnce }.map { String(decoding: $0.payload, as: UTF8.self) }
        let acknowledged = texts.filter { text in expected.contains(text) }
        let first = acknowledged.indices.filter { !acknowledged[..<$0].contains(acknowledged[$0]) }
            .map { acknowledged[$0] }
        require(first == expected, "\(what) received \(texts) of \(expected)")
        for (index, message) in read.enumerated() {
            let text = texts[index]
            guard let sent = published.first(where: { String(decoding: $0.payload, as: UTF8.self) == text }) else {
                broke("\(what) received '\(text)', which nobody has published")
                continue
            }
            let qos = min(sent.qos, granted)
            require(message.qos == qos, "\(what) received \(text) with QoS \(message.qos), not \(qos)")
            if qos != .atLeastOnce {
                require(texts.count { $0 == text } == 1, "\(what) received \(text) of QoS \(qos) more than once")
            }
            require(message.topic == sent.topic, "\(what) received \(text) with the topic \(message.topic)")
            require(!message.isRetained, "\(what) received \(text) as a retained message")
            compare(message.properties, with: sent.properties, "\(what) \(text)")
        }
    }

    private func compare(_ received: MQTTProperties, with sent: MQTTProperties, _ what: String) {
        var (received, sent) = (received, sent)
        let (left, whole) = (received.messageExpiryInterval, sent.messageExpiryInterval)
        require((left == nil) == (whole == nil), "\(what) has the expiry \(left as Any), sent was \(whole as Any)")
        if let left, let whole { require(left <= whole, "\(what) has the expiry \(left), sent was \(whole)") }
        received.messageExpiryInterval = nil
        sent.messageExpiryInterval = nil
        // Both are a connection's own.
        received.removeAll(.subscriptionIdentifier)
        received.removeAll(.topicAlias)
        require(received == sent, "\(what) has the properties \(received), sent were \(sent)")
    }
}

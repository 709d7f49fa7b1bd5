import MQTT
import MessagingShell
import Synchronization
import Transport

@testable import LoopbackBroker

/// Worlds in which everything that waits has a small bound: the queue, the outbox, the store, the buffers, what leaves in a
/// second, the age of a message and that of a connection.
///
/// At random moments what waits is compared with what the configuration documents, counted by the model (``BoundsModel``)
/// and by the client itself.
enum MQTTBounds {
    /// What may happen to a world.
    enum Kind: CaseIterable {
        /// The client moves, and nothing goes wrong.
        case calm
        /// Connections end, but bytes need no time, so that the broker sees when they leave.
        case prompt
        /// Everything is slow, and systems hold little of what is written.
        case slow

        init(seed: UInt64) { self = Self.allCases[Int(seed / 5 % 3)] }
    }

    /// What may happen to the world of a seed, and what does.
    static func world(of seed: UInt64) -> (SimulationOptions, @Sendable (Simulation) async throws -> Void) {
        let kind = Kind(seed: seed)
        var options = SimulationOptions()
        options.acts = ["move the sender", "move the sender", "move the receiver", "tell of a network"]
        switch kind {
        case .calm: options.faults = []
        case .prompt:
            options.faults = [.cuts, .refusals, .restarts, .halfOpen, .slowAnswers, .names, .networkChanges]
        case .slow: options.faults = .recoverable
        }
        return (options, { world in try await run(world, kind) })
    }

    private static let publishers = 3
    private static let bursts = 8
    /// The largest message, with its topic and properties.
    private static let largest = 260
    private static let floods = 6
    private static let floodPayload = (0..<500).map { UInt8($0 * 7 & 0xFF) }

    private static func configuration(
        _ kind: Kind, isKept: Bool, _ random: inout SimulationRandom
    ) -> MQTTConfiguration {
        var configuration = MQTTConfiguration()
        configuration.version = Bool.random(using: &random) ? .v5_0 : .v3_1_1
        configuration.cleanStart = !isKept
        if configuration.version == .v5_0, isKept { configuration.sessionExpiry = .seconds(86_400) }
        configuration.maximumInFlight = [1, 2, 5].randomElement(using: &random)
        configuration.maximumQueuedMessages = Int.random(in: 2...8, using: &random)
        configuration.maximumQueuedBytes = Int.random(in: 300...1_500, using: &random)
        configuration.queueOverflow =
            [.reject, .dropOldest, .newestPerTopic, .wait].randomElement(using: &random) ?? .reject
        configuration.maximumOutboxBytes = Int.random(in: 200...1_000, using: &random)
        configuration.maximumPublishesPerSecond = [nil, 2, 5, 10].randomElement(using: &random) ?? nil
        // So that no message has more than a quarter of them.
        configuration.maximumPublishedBytesPerSecond = [nil, nil, 4 * largest].randomElement(using: &random) ?? nil
        let ages: [Duration?] = [nil, .seconds(10), .seconds(40)]
        configuration.reconnect.maximumConnectionAge = ages.randomElement(using: &random) ?? nil
        configuration.queuesQoS0WhileOffline = Bool.random(using: &random)
        configuration.maximumUnreadBytes = 20_000
        return configuration
    }

    private static func run(_ world: Simulation, _ kind: Kind) async throws {
        var random = world.makeRandom()
        var brokerOptions = LoopbackBrokerOptions()
        brokerOptions.judging.judgesPromises = true
        let broker = try await world.startBroker(brokerOptions, host: "broker.example")
        let url = broker.url("mqtt", broker.ports.mqtt, using: &random)
        let isKept = kind != .calm || Bool.random(using: &random)
        let settings = configuration(kind, isKept: isKept, &random)
        world.world.changeNetwork { network in
            if kind == .calm { network.latency = 0...200_000_000 }
            if kind == .slow { network.capacity = 2_000 }
        }
        let store = isKept && Bool.random(using: &random) ? StoreKind.file : .none
        let model = BoundsModel(settings, sendsQoS0: Bool.random(using: &random), world)
        let duplicates = Atomic(0)
        let sender = ClientProcess("sender", [url], settings, store, world) { event, _ in
            switch event {
            case .sessionLost(_, let possibleDuplicates): duplicates.add(possibleDuplicates, ordering: .relaxed)
            case .storeDamaged(let damage): model.broke("the store is damaged: \(damage)")
            default: break
            }
        }
        var receiving = settings
        receiving.cleanStart = false
        if receiving.version == .v5_0 { receiving.sessionExpiry = .seconds(86_400) }
        let receiver = ClientProcess("receiver", [url], receiving, .none, world) { _, _ in }
        let arriving = watch(broker, model)
        for process in [sender, receiver] {
            act(world, process)
            await process.start()
        }
        let reading = Task { [random = world.makeRandom()] in
            await read(receiver.client, random, world, model)
        }
        while broker.filters(of: "receiver").isEmpty { try await world.clock.sleep(for: .seconds(1)) }
        let checking = Task { [random = world.makeRandom()] in
            await check(sender.client, receiver.client, random, world, model)
        }
        let flooding = Task { [random = world.makeRandom()] in await flood(broker, random, world) }
        // In some worlds only, so that the others stay as they are.
        let reporting = world.seed % 4 == 1 ? Task { await report(receiver.client, world) } : nil
        let publishing = Task { [randoms = (0..<publishers).map { _ in world.makeRandom() }] in
            await withTaskGroup(of: Void.self) { group in
                for (publisher, random) in randoms.enumerated() {
                    group.addTask { await publish(publisher, random, world, sender.client, model) }
                }
            }
        }
        try await world.faultsHaveEnded()
        world.world.changeNetwork { $0.capacity = 1 << 16 }
        for _ in 0..<600 where !model.isSettled { try await world.clock.sleep(for: .seconds(1)) }
        try world.require(model.isSettled, "the messages \(model.unsettled) have no end")
        await publishing.value
        await flooding.value
        await reporting?.value
        while sender.client.backlog.queuedMessages > 0 { try await world.clock.sleep(for: .seconds(1)) }
        // The reader pauses no longer.
        try await world.clock.sleep(for: .seconds(60))
        checking.cancel()
        await checking.value
        let (left, waiting) = (sender.client.backlog, receiver.client.backlog)
        try world.require(
            left.queuedMessages == 0 && left.queuedBytes == 0 && left.messagesInFlight == 0 && left.outboxBytes == 0,
            "the sender has a backlog of \(left) after its last message")
        try world.require(waiting.unreadBytes == 0, "\(waiting.unreadBytes) bytes are unread, but all was read")
        let counted = sender.client.counters.messagesSent
        for process in [sender, receiver] {
            process.finish()
            await process.client.disconnect()
        }
        await reading.value
        await broker.stop()
        await arriving.value
        for process in [sender, receiver] { try await process.check(world) }
        try model.check(counted: counted, kind)
        if kind == .calm {
            let count = duplicates.load(ordering: .relaxed)
            try world.require(count == 0, "\(count) messages of QoS 2 may arrive twice, but no connection was lost")
        }
        try world.requireNoDeadConnection()
        // Of each client one that is used, one that it moves to, and one whose last bytes are read.
        try await world.requireNoConnection(afterAtMost: 6)
        // For each connection an attempt.
        try world.requireNoTask(afterAtMost: 6)
        try world.requireNoAlarm()
    }

    private static func act(_ world: Simulation, _ process: ClientProcess) {
        let client = process.client
        world.onAct("tell of a network") { _ in client.networkChanged() }
        world.onAct("move the \(process.name)") { random in
            var random = random
            guard client.state.isConnected else { return }
            let call = Task { _ = try? await client.reconnect() }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            call.cancel()
            await call.value
        }
    }

    /// Bursts of messages; some have a time to live, some are taken back.
    private static func publish(
        _ publisher: Int, _ random: SimulationRandom, _ world: Simulation, _ client: MQTTClient, _ model: BoundsModel
    ) async {
        var random = random
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<bursts {
                let pause = Int.random(in: 0...15_000, using: &random)
                try? await world.clock.sleep(for: .milliseconds(pause) + .microseconds(publisher))
                let isLight = model.sendsQoS0 && Int.random(in: 0..<3, using: &random) == 0
                for _ in 0..<Int.random(in: 1...(isLight ? 20 : 6), using: &random) {
                    let qos: QoS = isLight ? .atMostOnce : Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
                    let topic = "t/\(publisher)/\(qos.rawValue)"
                    var message = MQTTOutgoingMessage("", to: topic, qos: qos)
                    if Int.random(in: 0..<3, using: &random) == 0, !isLight {
                        message.timeToLive = .seconds(Int.random(in: 1...30, using: &random))
                    }
                    let size = Int.random(in: 10...240, using: &random)
                    let number = model.begin(&message, size: size)
                    if isLight {
                        do throws(MQTTError) {
                            try await client.publish(message)
                            model.ended(number)
                        } catch {
                            model.end(number, error)
                        }
                        continue
                    }
                    let confirmation: MQTTClient.Confirmation
                    do throws(MQTTError) {
                        confirmation = try await client.publishForConfirmation(message)
                    } catch {
                        model.end(number, error)
                        continue
                    }
                    model.accepted(number)
                    group.addTask {
                        do throws(MQTTError) {
                            try await confirmation.confirmed()
                            model.end(number, nil)
                        } catch {
                            model.end(number, error)
                        }
                    }
                    guard Int.random(in: 0..<4, using: &random) == 0 else { continue }
                    let patience = Duration.milliseconds(Int.random(in: 0...5_000, using: &random))
                    group.addTask {
                        try? await world.clock.sleep(for: patience)
                        if confirmation.withdraw() { model.withdrawn(number) }
                    }
                }
            }
        }
    }

    /// Messages of QoS 0 for a reader that is slower, and that loses none of what its client has received.
    private static func flood(_ broker: LoopbackBroker, _ random: SimulationRandom, _ world: Simulation) async {
        var random = random
        for _ in 0..<floods {
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            for _ in 0..<100 { await broker.publish(floodPayload, to: "flood", qos: .atMostOnce) }
        }
    }

    private static func read(
        _ client: MQTTClient, _ random: SimulationRandom, _ world: Simulation, _ model: BoundsModel
    ) async {
        var random = random
        let flood = client.subscription(to: "flood", buffer: BufferPolicy(overflow: .pauseReading))
        do {
            for try await message in flood {
                model.read()
                if message.bytes != floodPayload { model.broke("a message of the flood has not its payload") }
                // For as long as faults may happen, so that the rest is read when they have ended.
                guard model.mayPause, Int.random(in: 0..<30, using: &random) == 0 else { continue }
                try await world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            }
        } catch {
            world.note("the reader stops: \(error)")
        }
    }

    /// Publishes with the client that reads slowly: it notices the end of a connection when it writes, also while it does
    /// not read, and each call ends although answers wait behind messages.
    private static func report(_ receiver: MQTTClient, _ world: Simulation) async {
        for number in 0..<16 {
            try? await world.clock.sleep(for: .seconds(7))
            _ = try? await receiver.publish("\(number)", to: "report", qos: .atLeastOnce)
        }
    }

    private static func watch(_ broker: LoopbackBroker, _ model: BoundsModel) -> Task<Void, Never> {
        let arrivals = broker.arrivals(maximumCount: 100_000)
        return Task {
            for await arrival in arrivals where arrival.client == "sender" && arrival.packet == .mqtt(.publish) {
                model.arrived(arrival)
            }
        }
    }

    /// Whether a client waits for the time of its next attempt, or for a network.
    private static func isOffline(_ client: MQTTClient) -> Bool {
        switch client.state {
        case .waiting, .waitingForNetwork: true
        default: false
        }
    }

    /// Compares at random moments. What is not as it must be counts if it is the same a moment later: callers that have an
    /// answer may not have been resumed.
    private static func check(
        _ sender: MQTTClient, _ receiver: MQTTClient, _ random: SimulationRandom, _ world: Simulation,
        _ model: BoundsModel
    ) async {
        var random = random
        func found() -> [String] {
            model.violations(
                sender.backlog, isOffline: isOffline(sender), received: receiver.counters.messagesReceived,
                receiver.backlog, connections: receiver.counters.connections,
                storeSize: world.world.disk.size(of: "/sender"))
        }
        while (try? await world.clock.sleep(for: .milliseconds(Int.random(in: 1...3_000, using: &random)))) != nil {
            let first = found()
            guard !first.isEmpty, (try? await world.clock.sleep(for: .microseconds(1_500))) != nil else { continue }
            let second = found()
            for text in first where second.contains(text) { model.broke(text) }
        }
    }
}

/// What was published, how it ended, and what waits.
final class BoundsModel: Sendable {
    private struct Message {
        var topic: String
        var payload: [UInt8]
        var bytes: Int
        var timeToLive: Duration?
        var begun: Duration
        var isAccepted = false
        var isWithdrawn = false
        var end: Duration?
        var failure: MQTTError.Code?
        var arrivals = 0
        var firstArrival: Duration?
        var wasDuplicateAtFirst = false
        let isAcknowledged: Bool
    }

    private struct State {
        var messages: [Message] = []
        var readCount = 0
        var broken = ""
        /// Each PUBLISH at the broker, with the bytes of topic and payload.
        var pace: [(time: Duration, bytes: Int)] = []
        /// The last message of QoS 0 to each topic.
        var lastQoS0: [String: Int] = [:]
        /// The most that a store had to hold at any time.
        var mostStored = 0
    }

    /// The most that one read of the link brings, with what messages need besides.
    private static let read = 66_000

    let sendsQoS0: Bool
    private let settings: MQTTConfiguration
    private let world: Simulation
    private let start: ManualClock.Instant
    private let state = Mutex(State())

    init(_ settings: MQTTConfiguration, sendsQoS0: Bool, _ world: Simulation) {
        (self.settings, self.sendsQoS0, self.world, start) = (settings, sendsQoS0, world, world.clock.now)
    }

    private var now: Duration { start.duration(to: world.clock.now) }
    var mayPause: Bool { now < .seconds(120) }

    /// What a client did that it must not do; the first counts.
    func broke(_ text: String) {
        world.noteViolation(text)
        state.withLock { if $0.broken.isEmpty { $0.broken = text } }
    }

    func begin(_ message: inout MQTTOutgoingMessage, size: Int) -> Int {
        let now = now
        return state.withLock { state in
            let number = state.messages.count
            let text = "\(number) "
            let rest = (0..<max(0, size - text.count)).map { UInt8(ascii: "a") + UInt8($0 % 23) }
            let payload = Array(text.utf8) + rest
            message.payload = payload
            let properties = message.timeToLive == nil ? 0 : 5
            state.messages.append(
                Message(
                    topic: message.topic, payload: payload,
                    bytes: message.topic.utf8.count + payload.count + properties,
                    timeToLive: message.timeToLive, begun: now, isAcknowledged: message.qos != .atMostOnce))
            return number
        }
    }

    func accepted(_ number: Int) { state.withLock { $0.messages[number].isAccepted = true } }
    func withdrawn(_ number: Int) { state.withLock { $0.messages[number].isWithdrawn = true } }

    /// A message of QoS 0 was written or queued.
    func ended(_ number: Int) {
        let now = now
        state.withLock { $0.messages[number].end = now }
    }

    func end(_ number: Int, _ failure: MQTTError?) {
        let now = now
        world.note("\(number) ends\(failure.map { ": \($0.code)" } ?? "")")
        state.withLock { state in
            state.messages[number].end = now
            state.messages[number].failure = failure?.code
        }
    }

    func read() { state.withLock { $0.readCount += 1 } }

    func arrived(_ arrival: LoopbackArrival) {
        let number = Int(arrival.text.prefix { $0 != " " })
        guard let number, let topic = arrival.topic, isBegun(number, topic, arrival.payload) else {
            return broke("the broker received a message that nobody has published: \(arrival)")
        }
        let now = now
        state.withLock { state in
            state.pace.append((now, topic.utf8.count + arrival.payload.count))
            if topic.hasSuffix("/0") {
                let last = state.lastQoS0.updateValue(number, forKey: topic) ?? -1
                if number <= last, state.broken.isEmpty { state.broken = "\(topic) \(number) arrived after \(last)" }
            }
            state.messages[number].arrivals += 1
            guard state.messages[number].arrivals == 1 else { return }
            state.messages[number].firstArrival = now
            state.messages[number].wasDuplicateAtFirst = arrival.isDuplicate
        }
    }

    private func isBegun(_ number: Int, _ topic: String, _ payload: [UInt8]) -> Bool {
        state.withLock { state in
            guard state.messages.indices.contains(number) else { return false }
            return state.messages[number].topic == topic && state.messages[number].payload == payload
        }
    }

    private static func waits(_ message: Message) -> Bool { message.isAcknowledged && message.end == nil }

    var unsettled: [Int] {
        state.withLock { state in state.messages.indices.filter { Self.waits(state.messages[$0]) } }
    }
    /// Whether all messages have been begun, and have ended.
    var isSettled: Bool { now > .seconds(130) && unsettled.isEmpty }

    // MARK: At any moment

    func violations(
        _ backlog: ClientBacklog, isOffline: Bool, received: Int, _ receiver: ClientBacklog, connections: Int,
        storeSize: Int
    ) -> [String] {
        let now = now
        return state.withLock { state in
            var found: [String] = []
            func expect(_ condition: Bool, _ text: @autoclosure () -> String) { if !condition { found.append(text()) } }
            let waiting = state.messages.filter(Self.waits)
            // Those that certainly wait; of the others the call has not returned.
            let accepted = waiting.filter { $0.isAccepted && !$0.isWithdrawn }
            let window = Int(settings.maximumInFlight ?? 20)
            let sizes = accepted.map(\.bytes).sorted()
            expect(
                accepted.count <= settings.maximumQueuedMessages + window,
                "\(accepted.count) messages wait, \(settings.maximumQueuedMessages) may, and \(window) may be in flight"
            )
            let least = sizes.dropLast(window).reduce(0, +)
            expect(
                least <= settings.maximumQueuedBytes,
                "\(least) bytes wait in the queue at least, \(settings.maximumQueuedBytes) may")
            expect(
                backlog.messagesInFlight <= window,
                "\(backlog.messagesInFlight) messages are in flight, \(window) may be")
            // The store is open once a message was accepted: nothing but the queue lets a call wait.
            let mayWait = state.messages.contains { $0.isAccepted }
            if isOffline, !settings.queuesQoS0WhileOffline, mayWait {
                let waiting = state.messages.filter { !$0.isAcknowledged && $0.end == nil }
                expect(waiting.isEmpty, "\(waiting.count) calls for QoS 0 wait without a connection")
            }
            let stuck = waiting.filter { message in
                !message.isAccepted && backlog.queuedBytes + message.bytes + 50 <= settings.maximumQueuedBytes
            }
            expect(
                stuck.isEmpty || !mayWait || backlog.queuedMessages > settings.maximumQueuedMessages / 2
                    || backlog.queuedBytes > settings.maximumQueuedBytes / 2,
                "a message waits for room, although half of the queue is free")
            if !sendsQoS0 {
                let count = backlog.queuedMessages + backlog.messagesInFlight
                expect(
                    (accepted.count...max(accepted.count, waiting.count)).contains(count),
                    "the backlog has \(count) messages, but \(accepted.count) to \(waiting.count) wait")
                let inFlight = backlog.messagesInFlight
                let range = (
                    sizes.dropLast(inFlight).reduce(0, +),
                    waiting.map(\.bytes).sorted().dropFirst(inFlight).reduce(0, +)
                )
                expect(
                    range.0 <= backlog.queuedBytes && backlog.queuedBytes <= max(range.0, range.1),
                    "the backlog has \(backlog.queuedBytes) bytes, but \(range.0) to \(range.1) wait")
                if inFlight == 0 {
                    let late = accepted.filter { message in
                        message.timeToLive.map { now > message.begun + $0 + .milliseconds(300) } ?? false
                    }
                    // With the time that its call may have waited for room.
                    expect(
                        late.isEmpty || settings.queueOverflow == .wait,
                        "\(late.count) messages wait although their time to live is over")
                }
            }
            let largest = state.messages.map(\.bytes).max() ?? 0
            // A message of QoS 0 is written while the outbox has room, those of QoS 1 and 2 as far as the window allows.
            let outbox = settings.maximumOutboxBytes + (1 + window) * (largest + 20) + 200
            expect(backlog.outboxBytes <= outbox, "the outbox has \(backlog.outboxBytes) bytes, \(outbox) are allowed")
            // What one read brought is with the reader. Of each connection the read that reaches the bound may exceed it,
            // and what the system holds when the connection ends.
            let unread = (received - state.readCount) * 500 - Self.read
            let most = settings.maximumUnreadBytes + max(1, connections) * 2 * Self.read
            expect(unread <= most, "\(unread) bytes are unread, \(most) may be")
            expect(
                receiver.unreadBytes >= unread,
                "\(unread) bytes are unread, but the backlog has \(receiver.unreadBytes)")
            // A record has some bytes more than its message, and what follows the message has some.
            state.mostStored = max(state.mostStored, waiting.reduce(200) { $0 + $1.bytes + 60 })
            expect(
                storeSize <= 2 * state.mostStored + 4_000, "the store has \(storeSize) bytes for \(state.mostStored)")
            return found
        }
    }

    // MARK: At the end

    func check(counted: Int, _ kind: MQTTBounds.Kind) throws {
        let state = state.withLock { $0 }
        try world.require(state.broken.isEmpty, state.broken)
        for (number, message) in state.messages.enumerated() where message.isAcknowledged {
            let text = "message \(number)"
            switch message.failure {
            case nil: try world.require(message.arrivals > 0, "\(text) is acknowledged, but did not arrive")
            case .cancelled?:
                try world.require(message.isWithdrawn, "\(text) is cancelled, but was not withdrawn")
                try world.require(message.arrivals == 0, "\(text) was withdrawn, but arrived")
            case .expired?:
                try world.require(message.arrivals == 0, "\(text) has expired, but arrived")
                let time = (message.end ?? .zero) - message.begun
                try world.require(
                    message.timeToLive.map { time >= $0 } ?? false,
                    "\(text) expired after \(time), not after \(message.timeToLive as Any)")
            case .queueFull?: try world.require(message.arrivals == 0, "\(text) found no room, but arrived")
            case .sessionLost? where kind == .calm: break
            default: try world.require(false, "\(text) failed: \(message.failure as Any)")
            }
            if message.isWithdrawn {
                try world.require(message.failure == .cancelled, "\(text) was withdrawn, but ended otherwise")
            }
            // A repetition may be the first that arrives.
            if kind == .prompt, let arrival = message.firstArrival, !message.wasDuplicateAtFirst,
                let timeToLive = message.timeToLive, settings.queueOverflow != .wait
            {
                let age = arrival - message.begun
                try world.require(age <= timeToLive, "\(text) left after \(age), but may wait for \(timeToLive) only")
            }
        }
        if kind == .prompt { try checkPace(state) }
        // What a client that moves writes with DISCONNECT is lost if its next CONNECT overtakes it.
        let arrivals = state.pace.count
        try world.require(counted >= arrivals, "the sender counted \(counted) messages, but \(arrivals) arrived")
    }

    /// What leaves within a second; bytes need no time.
    private func checkPace(_ state: State) throws {
        for first in state.pace.indices {
            let end = state.pace[first].time + .seconds(1)
            let second = state.pace[first...].prefix { $0.time < end }
            if let limit = settings.maximumPublishesPerSecond {
                try world.require(second.count <= limit, "\(second.count) messages left in a second, \(limit) may")
            }
            if let limit = settings.maximumPublishedBytesPerSecond {
                let bytes = second.reduce(0) { $0 + $1.bytes }
                try world.require(bytes <= limit, "\(bytes) bytes left in a second, \(limit) may")
            }
        }
    }
}

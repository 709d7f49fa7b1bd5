import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Servers that end the connection instead of answering one request, beside other traffic.
@Suite("Client: requests that the server answers by ending the connection", .turns)
struct RefusedRequestTests {
    /// A client with the default delays of reconnecting, and its broker.
    private final class Scene: Sendable {
        let clock: ManualClock
        let broker: LoopbackBroker
        let client: MQTTClient

        init(
            _ version: MQTTVersion = .v3_1_1, faults: LoopbackFaults = LoopbackFaults(),
            _ change: (inout MQTTConfiguration) -> Void = { _ in }
        ) async throws {
            clock = try ManualClock()
            broker = try await LoopbackBroker.judged(clock: clock)
            broker.changeFaults { $0 = faults }
            var configuration = MQTTConfiguration(clientID: "program")
            configuration.version = version
            change(&configuration)
            client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
        }

        /// Lets time pass, a tenth of a second at a time, until something is true. Returns the seconds that it took.
        @discardableResult
        func seconds(atMost limit: Int, until isTrue: () -> Bool) async -> Double {
            var tenths = 0
            while !isTrue(), tenths < limit * 10 {
                await clock.advance(by: .milliseconds(100))
                tenths += 1
            }
            #expect(isTrue())
            return Double(tenths) / 10
        }

        /// Lets time pass until something is true that depends on the thread of a session store too.
        func pass(until isTrue: @Sendable () -> Bool) async {
            for _ in 0..<20_000 where !isTrue() {
                await clock.advance(by: .milliseconds(10))
                try? await Task.sleep(for: .milliseconds(1))
            }
            #expect(isTrue())
        }

        /// The error of the first event from now on that has the one that is sought; nil if the events end before.
        func firstError(
            of client: MQTTClient, _ sought: @escaping @Sendable (MQTTEvent) -> MQTTError?
        ) -> Outcome<MQTTError?> {
            let events = client.events
            return Outcome(self) {
                for await event in events {
                    if let error = sought(event) { return error }
                }
                return nil
            }
        }

        /// The connections that were lost so far.
        var lostCount: Int { broker.statistics.connections - (client.state.isConnected ? 1 : 0) }

        func end() async {
            await client.disconnect()
            await broker.stop()
        }
    }

    /// What a task of the program has come to.
    private final class Outcome<Value: Sendable>: Sendable {
        private let result = Mutex<Result<Value, any Error>?>(nil)

        /// Begins on the clock's loop, so that time cannot pass before it has begun.
        init(_ scene: Scene, _ work: @escaping @Sendable () async throws -> Value) {
            Task(executorPreference: scene.clock.loop) {
                let result: Result<Value, any Error>
                do { result = .success(try await work()) } catch { result = .failure(error) }
                self.result.withLock { $0 = result }
            }
        }

        var isOver: Bool { result.withLock { $0 != nil } }
        var value: Value? { result.withLock { try? $0?.get() } }
        var error: MQTTError? {
            result.withLock { if case .failure(let error)? = $0 { error as? MQTTError } else { nil } }
        }
    }

    // MARK: The culprit is found

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `a forbidden message fails, and healthy traffic flows within 15 seconds`(version: MQTTVersion, qos: QoS)
        async throws
    {
        let scene = try await Scene(version, faults: .strict(forbiddenTopics: ["no"]))
        let client = scene.client
        try await client.connect()
        let messages = try await client.subscribe(to: "yes/#", qos: .atLeastOnce)
        let forbidden = Outcome(scene) { try await client.publish("x", to: "no", qos: qos) }
        let healthy = (0..<3).map { number in
            Outcome(scene) { try await client.publish("\(number)", to: "yes/\(number)", qos: qos) }
        }
        let received = Outcome(scene) { try await messages.first(3).map(\.text) }
        await scene.seconds(atMost: 15) { forbidden.isOver && received.isOver && healthy.allSatisfy(\.isOver) }
        let error = try #require(forbidden.error)
        #expect(error.code == .refused)
        #expect(error.message.contains("'no'"), "\(error.message)")
        #expect(error.reasonCode == (version == .v5_0 ? .notAuthorized : nil))
        #expect(healthy.allSatisfy { $0.value != nil })
        #expect(received.value == ["0", "1", "2"])
        #expect(scene.lostCount <= 5, "\(scene.lostCount)")
        await scene.clock.advance(by: .seconds(60))
        #expect(client.state.isConnected && scene.lostCount <= 5)
        await scene.end()
    }

    @Test func `a message that is given up with its connection fails when the state has changed`() async throws {
        let scene = try await Scene(.v5_0, faults: .strict(forbiddenTopics: ["no"]))
        let client = scene.client
        try await client.connect()
        let found = Mutex<MQTTConnectionState?>(nil)
        // Continues inside the call that resumes it.
        let publishing = Task(executorPreference: PromptExecutor.shared) {
            defer { found.withLock { $0 = client.state } }
            try await client.publish("x", to: "no", qos: .atLeastOnce)
        }
        await scene.seconds(atMost: 15) { found.withLock { $0 != nil } }
        let error = await #expect(throws: MQTTError.self) { try await publishing.value }
        #expect(error?.code == .refused)
        #expect(found.withLock { $0?.isConnected } == false)
        await scene.end()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a forbidden filter fails, and the other subscriptions receive within 15 seconds`(version: MQTTVersion)
        async throws
    {
        let scene = try await Scene(version, faults: .strict(forbiddenFilters: ["no/#"]))
        let client = scene.client
        try await client.connect()
        var subscriptions: [MQTTSubscription] = []
        for number in 0..<4 { subscriptions.append(try await client.subscribe(to: "yes/\(number)")) }
        let forbidden = Outcome(scene) { _ = try await client.subscribe(to: "no/#") }
        let published = Outcome(scene) { try await client.publish("x", to: "elsewhere", qos: .atLeastOnce) }
        await scene.seconds(atMost: 15) { forbidden.isOver && published.isOver && client.state.isConnected }
        let error = try #require(forbidden.error)
        #expect(error.code == .refused)
        #expect(error.message.contains("'no/#'"), "\(error.message)")
        #expect(published.value != nil)
        #expect(scene.lostCount <= 5, "\(scene.lostCount)")
        for (number, subscription) in subscriptions.enumerated() {
            await scene.broker.publish("to \(number)", to: "yes/\(number)")
            #expect(try await subscription.first(1).map(\.text) == ["to \(number)"])
        }
        await scene.clock.advance(by: .seconds(60))
        #expect(client.state.isConnected && scene.lostCount <= 5)
        await scene.end()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a filter that is forbidden later ends its sequence only`(version: MQTTVersion) async throws {
        let scene = try await Scene(version)
        let client = scene.client
        try await client.connect()
        let healthy = try await client.subscribe(to: "yes")
        let forbidden = try await client.subscribe(to: "no/#")
        let ended = Outcome(scene) { try await forbidden.first(1).count }
        scene.broker.changeFaults { $0 = .strict(forbiddenFilters: ["no/#"]) }
        await scene.broker.dropAllConnections()
        await scene.seconds(atMost: 15) { ended.isOver && client.state.isConnected }
        #expect(ended.error?.code == .refused)
        await scene.broker.publish("x", to: "yes")
        #expect(try await healthy.first(1).map(\.text) == ["x"])
        // One of them was cut by the test.
        #expect(scene.lostCount <= 6, "\(scene.lostCount)")
        await scene.end()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `an enqueued message is reported and leaves the store, and those behind it arrive`(version: MQTTVersion)
        async throws
    {
        let store = MemorySessionStore()
        let scene = try await Scene(version, faults: .strict(forbiddenTopics: ["no"])) {
            $0.sessionStore = store
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(3600)
        }
        let client = scene.client
        let undelivered = scene.firstError(of: client) { if case .undelivered(let error) = $0 { error } else { nil } }
        try await client.connect()
        let messages = try await client.subscribe(to: "yes")
        for (number, topic) in ["yes", "no", "yes", "yes"].enumerated() {
            try await client.enqueue(MQTTOutgoingMessage(Array("\(number)".utf8), to: topic, qos: .atLeastOnce))
        }
        let received = Outcome(scene) { try await messages.first(3).map(\.text) }
        await scene.pass { undelivered.isOver && received.isOver && client.backlog.messagesInFlight == 0 }
        let error = try #require(undelivered.value ?? nil)
        #expect(error.code == .refused && error.message.contains("'no'"), "\(error)")
        #expect(received.value == ["0", "2", "3"])
        #expect(scene.lostCount <= 5, "\(scene.lostCount)")
        await client.disconnect()
        let kept = try store.open().records.filter { if case .message = $0 { true } else { false } }
        #expect(kept.isEmpty, "\(kept)")
        await scene.broker.stop()
    }

    @Test func `the next process finds an enqueued message that this one did not`() async throws {
        let store = MemorySessionStore()
        let scene = try await Scene(faults: .strict(forbiddenTopics: ["no"])) {
            $0.sessionStore = store
            $0.cleanStart = false
        }
        try await scene.client.connect()
        for topic in ["no", "yes"] {
            try await scene.client.enqueue(MQTTOutgoingMessage([1], to: topic, qos: .atLeastOnce))
        }
        await scene.pass { scene.broker.statistics.connections == 2 }
        await scene.client.disconnect()
        var configuration = MQTTConfiguration(clientID: "program")
        configuration.sessionStore = store
        configuration.cleanStart = false
        let next = MQTTClient(scene.broker.urls.mqtt ?? "", configuration: configuration, clock: scene.clock)
        let undelivered = scene.firstError(of: next) { if case .undelivered(let error) = $0 { error } else { nil } }
        await next.start()
        await scene.pass { undelivered.isOver && next.backlog.messagesInFlight == 0 }
        #expect((undelivered.value ?? nil)?.code == .refused)
        await next.disconnect()
        let kept = try store.open().records.filter { if case .message = $0 { true } else { false } }
        #expect(kept.isEmpty, "\(kept)")
        await scene.broker.stop()
    }

    @Test func `two culprits are found one after the other`() async throws {
        let scene = try await Scene(
            faults: .strict(forbiddenTopics: ["no", "never"], forbiddenFilters: ["no/#"]))
        let client = scene.client
        try await client.connect()
        let messages = try await client.subscribe(to: "yes")
        // All are sent in this order before the server ends the connection because of the first: in another order the last
        // culprit has nothing left to be compared with, and is no more than suspected for minutes.
        await scene.broker.freeze()
        let filter = Outcome(scene) { _ = try await client.subscribe(to: "no/#") }
        await scene.clock.waitUntilQuiet()
        var forbidden: [Outcome<MQTTReasonCode>] = []
        for topic in ["no", "never"] {
            forbidden.append(Outcome(scene) { try await client.publish("x", to: topic, qos: .atLeastOnce) })
            await scene.clock.waitUntilQuiet()
        }
        let healthy = Outcome(scene) { try await client.publish("x", to: "yes", qos: .atLeastOnce) }
        await scene.clock.waitUntilQuiet()
        await scene.broker.thaw()
        let received = Outcome(scene) { try await messages.first(1).count }
        await scene.seconds(atMost: 45) {
            filter.isOver && forbidden.allSatisfy(\.isOver) && healthy.isOver && received.isOver
        }
        #expect(filter.error?.code == .refused)
        #expect(forbidden.allSatisfy { $0.error?.code == .refused })
        #expect(healthy.value != nil && received.value == 1)
        #expect(scene.lostCount <= 12, "\(scene.lostCount)")
        await scene.end()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a program that publishes to a forbidden topic every second keeps its other traffic`(version: MQTTVersion)
        async throws
    {
        let scene = try await Scene(version, faults: .strict(forbiddenTopics: ["no"]))
        let client = scene.client
        try await client.connect()
        let messages = try await client.subscribe(to: "yes")
        let received = Mutex(0)
        let reading = Outcome(scene) {
            for try await _ in messages { received.withLock { $0 += 1 } }
        }
        var forbidden: [Outcome<MQTTReasonCode>] = []
        var healthy: [Outcome<MQTTReasonCode>] = []
        for second in 0..<60 {
            forbidden.append(Outcome(scene) { try await client.publish("x", to: "no", qos: .atLeastOnce) })
            healthy.append(Outcome(scene) { try await client.publish("x", to: "yes", qos: .atLeastOnce) })
            await scene.clock.advance(by: .seconds(1))
            // The search takes 15 seconds at most, and what came in meanwhile some more.
            guard second >= 30 else { continue }
            #expect(healthy[second - 15].value != nil, "\(second)")
        }
        await scene.seconds(atMost: 15) { forbidden.allSatisfy(\.isOver) && healthy.allSatisfy(\.isOver) }
        #expect(forbidden.allSatisfy { $0.error?.code == .refused })
        #expect(healthy.allSatisfy { $0.value != nil })
        #expect(received.withLock { $0 } == 60)
        await scene.end()
        #expect(reading.isOver)
    }

    @Test func `a lone message over 3.1.1 is named, and arrives when it is allowed`() async throws {
        let scene = try await Scene(faults: .strict(forbiddenTopics: ["no"]))
        let client = scene.client
        let named = scene.firstError(of: client) { if case .requestPassedOver(let error) = $0 { error } else { nil } }
        try await client.connect()
        let forbidden = Outcome(scene) { try await client.publish("x", to: "no", qos: .atLeastOnce) }
        await scene.seconds(atMost: 30) { named.isOver }
        #expect(named.value??.message.contains("'no'") == true)
        await scene.clock.advance(by: .seconds(600))
        #expect(!forbidden.isOver)
        // It is neither lost nor given up.
        scene.broker.changeFaults { $0 = LoopbackFaults() }
        await scene.seconds(atMost: 60) { forbidden.isOver }
        #expect(forbidden.value != nil)
        await scene.end()
    }

    @Test(arguments: [1, 3]) func `cancelling the publish of what others pass ends it`(count: Int) async throws {
        let scene = try await Scene(faults: .strict(forbiddenTopics: ["no"]))
        let client = scene.client
        let named = scene.firstError(of: client) {
            if case .requestPassedOver(let error) = $0 { error } else { nil }
        }
        try await client.connect()
        let received = try await client.subscribe(to: "no")
        let publishing = Task {
            let messages = (1...count).map { MQTTOutgoingMessage("\($0)", to: "no", qos: .atLeastOnce) }
            if count == 1 {
                _ = try await client.publish("1", to: "no", qos: .atLeastOnce)
            } else {
                _ = await client.publish(messages)
            }
        }
        await scene.seconds(atMost: 60) { named.isOver }
        publishing.cancel()
        _ = await publishing.result
        scene.broker.changeFaults { $0 = LoopbackFaults() }
        let last = Outcome(scene) { try await client.publish("last", to: "no", qos: .atLeastOnce) }
        await scene.seconds(atMost: 700) { last.isOver }
        var iterator = received.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "last")
        await scene.end()
    }

    @Test func `a topic that is allowed again is published as any other`() async throws {
        let scene = try await Scene(.v5_0, faults: .strict(forbiddenTopics: ["no"]))
        let client = scene.client
        try await client.connect()
        let forbidden = Outcome(scene) { try await client.publish("x", to: "no", qos: .atLeastOnce) }
        await scene.seconds(atMost: 15) { forbidden.isOver && client.state.isConnected }
        #expect(forbidden.error?.code == .refused)
        scene.broker.changeFaults { $0 = LoopbackFaults() }
        let connections = scene.broker.statistics.connections
        for _ in 0..<2 {
            let allowed = Outcome(scene) { try await client.publish("x", to: "no", qos: .atLeastOnce) }
            await scene.seconds(atMost: 1) { allowed.isOver }
            #expect(allowed.value != nil)
        }
        #expect(scene.broker.statistics.connections == connections)
        await scene.end()
    }

    @Test func `a message of QoS 2 that is never acknowledged fails with advice`() async throws {
        let scene = try await Scene(.v5_0) { $0.acknowledgementTimeout = .seconds(2) }
        scene.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = scene.client
        try await client.connect()
        let unanswered = Outcome(scene) { try await client.publish("x", to: "a", qos: .exactlyOnce) }
        await scene.seconds(atMost: 600) { unanswered.isOver }
        let error = try #require(unanswered.error)
        #expect(error.code == .refused && error.message.contains("QoS 1"), "\(error)")
        await scene.end()
    }

    // MARK: Nothing is condemned

    /// Cuts all connections in some rhythm for 30 seconds while requests have no answer, and lets all be well then.
    private func cut(_ version: MQTTVersion, _ faults: LoopbackFaults, every tenths: Int) async throws {
        let scene = try await Scene(version, faults: faults) { $0.requestTimeout = .seconds(120) }
        let client = scene.client
        await client.start()
        let published = [QoS.atLeastOnce, .exactlyOnce].map { qos in
            Outcome(scene) { try await client.publish("x", to: "yes", qos: qos) }
        }
        let subscribed = Outcome(scene) { try await client.subscribe(to: "yes/#") }
        for tenth in 0..<300 {
            await scene.clock.advance(by: .milliseconds(100))
            if tenth % tenths == 0 { await scene.broker.dropAllConnections() }
        }
        #expect(published.allSatisfy { !$0.isOver || $0.value != nil })
        #expect(!subscribed.isOver || subscribed.value != nil)
        scene.broker.changeFaults { $0 = LoopbackFaults() }
        // A broker never sends what it has withheld on a connection.
        await scene.broker.dropAllConnections()
        await scene.seconds(atMost: 75) { published.allSatisfy(\.isOver) && subscribed.isOver }
        #expect(published.allSatisfy { $0.value != nil })
        #expect(subscribed.value != nil)
        await scene.end()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [1, 4, 9, 23])
    func `a balancer that closes everything for 30 seconds condemns no request`(version: MQTTVersion, tenths: Int)
        async throws
    {
        var faults = LoopbackFaults()
        faults.withholdsAcknowledgements = true
        try await cut(version, faults, every: tenths)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [1, 7, 31])
    func `a server that restarts again and again condemns no request`(version: MQTTVersion, tenths: Int) async throws {
        try await cut(version, LoopbackFaults(), every: tenths)
    }

    // MARK: Limits count over connections that end so

    @Test func `a subscription times out although no connection lasts`() async throws {
        let scene = try await Scene(faults: LoopbackFaults()) { $0.requestTimeout = .seconds(10) }
        scene.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = scene.client
        try await client.connect()
        let subscribed = Outcome(scene) { try await client.subscribe(to: "yes") }
        for _ in 0..<400 where !subscribed.isOver {
            await scene.clock.advance(by: .milliseconds(100))
            await scene.broker.dropAllConnections()
        }
        #expect(subscribed.error?.code == .timedOut)
        await scene.end()
    }

    @Test func `maximumAttempts counts connections that last but never answer`() async throws {
        let scene = try await Scene { $0.reconnect.maximumAttempts = 3 }
        scene.broker.changeFaults { $0.withholdsAcknowledgements = true }
        let client = scene.client
        await client.start()
        let published = Outcome(scene) { try await client.publish("x", to: "yes", qos: .atLeastOnce) }
        for _ in 0..<10 where !published.isOver {
            await scene.clock.advance(by: .seconds(12))
            await scene.broker.dropAllConnections()
        }
        #expect(published.isOver && published.value == nil)
        #expect(scene.broker.statistics.connections <= 5)
        await scene.end()
    }
}

/// Runs a task's jobs where it is resumed, before the call that resumes it returns.
private final class PromptExecutor: TaskExecutor {
    static let shared = PromptExecutor()

    func enqueue(_ job: consuming ExecutorJob) {
        job.runSynchronously(on: asUnownedTaskExecutor())
    }
}

import ClientTestSupport
import LoopbackBroker
import MessagingJudge
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite("Client: cancellation campaign", .turns)
struct CancellationCampaignTests {
    @Test func `each call of a client ends exactly once, whatever is cancelled and whatever fails`() async throws {
        let dropped = DroppedWaiters.count
        let bench = try await Bench {
            $0.limits.maximumSessionMessages = 1000
            // Bytes are damaged on their way.
            $0.judging.mayBreak = Set(Clause.allCases)
        }
        let subjects = (0..<4).map { number in
            Subject(bench.client("campaign-\(number)") { Self.configure(&$0, number) })
        }
        // Their short timeouts may pass on a busy machine; calls that fail are part of the campaign, but not of its start.
        for subject in subjects { #expect(await eventually { (try? await subject.client.connect()) != nil }) }
        let authenticator = Authenticator()
        let authenticated = authenticator.client()
        #expect(
            await eventually {
                guard (try? await authenticated.connect()) != nil else { return false }
                return (try? await authenticated.reauthenticate()) != nil
            })
        var calls = Self.calls.map { $0.call(subjects) }
        calls += Array(
            repeating: CancellationCampaign.Call("reauthenticate with a method") { _ in
                try await authenticated.connect()
                try await authenticated.reauthenticate()
            }, count: 6)
        authenticator.isReliable.store(false, ordering: .relaxed)
        try await CancellationCampaign(calls).run(Campaign.rounds(100_000, least: 200)) { random in
            await bench.fail(&random, subjects[Int.random(in: 0..<4, using: &random)].client)
        }
        bench.heal()
        for client in subjects.map(\.client) + [authenticated] { await client.disconnect() }
        await bench.stop()
        #expect(DroppedWaiters.count == dropped)
    }

    @Test func `every public asynchronous function of the client has a row`() throws {
        let covered = Self.calls.reduce(into: Set<String>()) { $0.formUnion($1.covers) }
        let calls = try PublicCalls.asynchronous(in: "MQTT", "MessagingShell")
        #expect(calls.subtracting(covered).isEmpty, "without a row: \(calls.subtracting(covered))")
        #expect(covered.subtracting(calls).isEmpty, "not in the sources: \(covered.subtracting(calls))")
    }

    /// A client with what its calls leave for others.
    private final class Subject: CampaignSubject {
        let client: MQTTClient
        let subscriptions = KeptSubscriptions<MQTTSubscription>()

        init(_ client: MQTTClient) {
            self.client = client
        }
    }

    /// A server that renews the authentication of its client, in one step or several.
    private final class Authenticator: Sendable {
        /// Whether it always answers.
        let isReliable = Atomic(true)
        private let steps = Atomic(0)

        func client() -> MQTTClient {
            ScriptedServer { self.answer($0) }.client { configuration in
                CancellationCampaignTests.configure(&configuration, 1)
                configuration.authentication = MQTTAuthentication(method: "campaign") {
                    await Task.yield()
                    return [0]
                } respond: { challenge in
                    await Task.yield()
                    if challenge == [1] { throw CancellationError() }
                    return challenge
                }
            }
        }

        private func answer(_ step: ScriptedServer.Step) {
            switch step.event {
            case .connectReceived: step.accept()
            case .authenticationReceived:
                guard !isReliable.load(ordering: .relaxed) else { return step.authenticate(.success, [2]) }
                switch steps.add(1, ordering: .relaxed).newValue % 64 {
                case 0: break
                case 1: step.disconnect(.serverBusy)
                case 2: step.authenticate(.continueAuthentication, [1])
                case 3...20: step.authenticate(.continueAuthentication, [3])
                default: step.authenticate(.success, [2])
                }
            default: break
            }
        }
    }

    private static func configure(_ configuration: inout MQTTConfiguration, _ number: Int) {
        configuration.requestTimeout = .milliseconds(300)
        configuration.connectTimeout = .milliseconds(300)
        configuration.reconnect.initialDelay = .milliseconds(1)
        configuration.reconnect.maximumDelay = .milliseconds(5)
        configuration.reconnect.firstConnectAttempts = 3
        configuration.version = number == 0 ? .v3_1_1 : .v5_0
        configuration.cleanStart = number != 2
        configuration.sessionExpiry = .seconds(60)
        configuration.maximumQueuedMessages = 200
        if number == 1 { configuration.maximumOutboxBytes = 2048 }
        if number == 2 { configuration.sessionStore = MemorySessionStore() }
        if number > 1 { configuration.queueOverflow = .wait }
        if number == 3 {
            configuration.queueOverflow = .dropOldest
            configuration.maximumInFlight = 5
        }
    }

    private typealias Call = CancellationCampaign.Row<Subject>

    private static let filters = ["a", "a/b", "a/+", "#", "$share/group/a"]

    private static func messages(_ count: Int, _ random: inout SeededGenerator) -> [MQTTOutgoingMessage] {
        (0..<count).map { _ in
            MQTTOutgoingMessage(
                random.bytes(Int.random(in: 0...200, using: &random)), to: Bool.random(using: &random) ? "a" : "a/b",
                qos: QoS.allCases.randomElement(using: &random) ?? .atLeastOnce)
        }
    }

    /// Every public asynchronous function. Those that end a connection are called less often than the others.
    private static let calls: [Call] =
        Array(repeating: Call.commonOften + often, count: 6).flatMap(\.self) + Call.commonSeldom + seldom

    private static let often = [
        Call(
            "publish QoS 0", "publish(_:to:qos:retain:properties:) [some Sequence<UInt8>]",
            body: { subject, _ in try await subject.client.publish([UInt8](repeating: 0, count: 500), to: "a") }
        ),
        Call(
            "publish QoS 1", "publish(_:to:qos:retain:properties:) [String]",
            body: { subject, _ in try await subject.client.publish("1", to: "a", qos: .atLeastOnce) }),
        Call(
            "publish QoS 2", body: { subject, _ in try await subject.client.publish("2", to: "a/b", qos: .exactlyOnce) }
        ),
        Call(
            "publish any bytes",
            body: { subject, _ in
                try await subject.client.publish(repeatElement(UInt8(0), count: 5), to: "a", qos: .atLeastOnce)
            }),
        Call(
            "publish a message", "publish(_:) [MQTTOutgoingMessage]",
            body: { subject, random in try await subject.client.publish(messages(1, &random)[0]) }),
        Call(
            "publish messages", "publish(_:) [[MQTTOutgoingMessage]]",
            body: { subject, random in try await subject.client.publish(messages(40, &random)).check() }),
        Call(
            "publish QoS 1 messages",
            body: { subject, _ in
                let message = MQTTOutgoingMessage([1], to: "a", qos: .atLeastOnce)
                try await subject.client.publish(Array(repeating: message, count: 50)).check()
            }
        ),
        Call(
            "enqueue", "enqueue(_:) [MQTTOutgoingMessage]",
            body: { subject, random in
                if Bool.random(using: &random) {
                    try await subject.client.enqueue(MQTTOutgoingMessage("1", to: "a")).withdraw()
                } else {
                    try await subject.client.enqueue(MQTTOutgoingMessage([1], to: "a"))
                }
            }
        ),
        Call(
            "subscribe",
            "subscribe(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:) [String]",
            body: { subject, random in
                let filter = filters.randomElement(using: &random) ?? "a"
                let policy = BufferPolicy(
                    messages: 50, overflow: Bool.random(using: &random) ? .pauseReading : .dropOldest)
                subject.keep(try await subject.client.subscribe(to: filter, qos: .exactlyOnce, buffer: policy))
            }
        ),
        Call(
            "subscribe to several", "subscribe(to:buffer:acknowledgement:properties:) [[MQTTSubscriptionRequest]]",
            body: { subject, _ in
                let requests = [MQTTSubscriptionRequest(filter: "a/b"), MQTTSubscriptionRequest(filter: "c")]
                subject.keep(try await subject.client.subscribe(to: requests))
            }
        ),
        Call(
            "next", "next() []", "next(isolation:) [isolated (any Actor)?]",
            body: { subject, random in
                var messages = try subject.subscription(&random).makeAsyncIterator()
                for _ in 0..<20 { _ = try await messages.next() }
            }
        ),
        Call(
            "next value",
            body: { subject, random in
                var values = try subject.subscription(&random).values { $0.bytes.count }.makeAsyncIterator()
                _ = try await values.next()
            }
        ),
        Call(
            "publish for a confirmation", "publishForConfirmation(_:) [MQTTOutgoingMessage]",
            "confirmed() []",
            body: { subject, _ in
                _ = try await subject.client.publishForConfirmation(MQTTOutgoingMessage([1], to: "a")).confirmed()
            }
        ),
        Call(
            "publish a value", "publish(_:as:to:qos:retain:properties:) [some Encodable & Sendable]",
            body: { subject, _ in try await subject.client.publish([1, 2], as: .json, to: "a", qos: .atLeastOnce) }
        ),
        Call(
            "publish to a typed topic", "publish(_:to:properties:) [Value]",
            body: { subject, _ in try await subject.client.publish("typed", to: .text("a/b")) }
        ),
        Call(
            "subscribe to a typed topic",
            "subscribe(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:) [MQTTTopic<Value>]",
            body: { subject, _ in
                let texts = try await subject.client.subscribe(to: MQTTTopic<String>.text("a/+"))
                var iterator = texts.makeAsyncIterator()
                _ = try await iterator.next()
            }
        ),
        Call(
            "subscribe to values and text",
            "subscribe(to:as:coding:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:) [String]",
            "subscribe(to:as:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:) [String]",
            body: { subject, _ in
                var values = try await subject.client.subscribe(to: "a", as: [Int].self).makeAsyncIterator()
                var texts = try await subject.client.subscribe(to: "a/#", as: String.self).makeAsyncIterator()
                _ = (try await values.next(), try await texts.next())
            }
        ),
        Call(
            "unsubscribe filters of another process", "unsubscribe(from:properties:) [String]",
            "unsubscribe(from:properties:) [[String]]",
            body: { subject, _ in
                try await subject.client.unsubscribe(from: "never")
                try await subject.client.unsubscribe(from: ["never", "again"])
            }
        ),
        Call(
            "unsubscribe with properties", "unsubscribe(properties:) [MQTTProperties]",
            body: { subject, random in _ = try await subject.subscription(&random).unsubscribe(properties: []) }
        ),
        Call(
            "publish for a confirmation, of every kind",
            body: { subject, random in
                let client = subject.client
                let confirmations = [
                    try await client.publishForConfirmation(MQTTOutgoingMessage("1", to: "a")),
                    try await client.publishForConfirmation(messages(1, &random)[0]),
                    try await client.publishForConfirmation(MQTTOutgoingMessage([1], as: .json, to: "a")),
                    try await client.publishForConfirmation(MQTTOutgoingMessage("typed", to: .text("a/b"))),
                ]
                for confirmation in confirmations { try await confirmation.confirmed() }
            }
        ),
        Call(
            "enqueue values",
            body: { subject, _ in
                try await subject.client.enqueue(MQTTOutgoingMessage("1", to: "a", qos: .exactlyOnce))
                try await subject.client.enqueue(MQTTOutgoingMessage([1], as: .json, to: "a"))
                try await subject.client.enqueue(MQTTOutgoingMessage("typed", to: .text("a/b")))
            }
        ),
        Call(
            "request", "request(_:to:qos:timeout:properties:) [some Sequence<UInt8>]",
            body: { subject, _ in _ = try await subject.client.request([1], to: "question", timeout: .milliseconds(50))
            }
        ),
        Call(
            "request text", "request(_:to:qos:timeout:properties:) [String]",
            body: { subject, _ in _ = try await subject.client.request("1", to: "question", timeout: .milliseconds(50))
            }
        ),
        Call(
            "request without properties", "request(_:to:responseTopic:qos:timeout:) [some Sequence<UInt8>]",
            body: { subject, _ in
                _ = try await subject.client.request(
                    [1], to: "question", responseTopic: "answer/{id}", timeout: .milliseconds(50))
            }
        ),
        Call(
            "request text without properties", "request(_:to:responseTopic:qos:timeout:) [String]",
            body: { subject, _ in
                _ = try await subject.client.request(
                    "1", to: "question", responseTopic: "answer/{id}", timeout: .milliseconds(50))
            }
        ),
        Call(
            "request a value",
            "request(_:as:to:returning:qos:timeout:properties:) [some Encodable & Sendable]",
            body: { subject, _ in
                _ = try await subject.client.request(
                    1, as: .json, to: "question", returning: Int.self, timeout: .milliseconds(50))
            }
        ),
        Call(
            "request of a typed topic", "request(_:to:returning:coding:timeout:properties:) [Value]",
            body: { subject, _ in
                let question = MQTTTopic<String>.text("question")
                _ = try await subject.client.request("1", to: question, returning: Int.self, timeout: .milliseconds(50))
            }
        ),
        Call(
            "respond to a value",
            body: { subject, _ in
                for try await question in try await subject.client.subscribe(to: "question", as: Int.self).prefix(1) {
                    try await subject.client.reply(to: question.message, with: [2])
                    try await subject.client.reply(to: question.message, with: "2")
                    try await subject.client.reply(to: question.message, with: 2)
                }
            }
        ),
        Call(
            "respond", "reply(to:with:qos:properties:) [MQTTMessage]",
            "reply(to:with:as:qos:properties:) [MQTTMessage]",
            body: { subject, _ in
                let questions = try await subject.client.subscribe(to: "question")
                for try await question in questions.prefix(1) {
                    try await subject.client.reply(to: question, with: [2])
                    try await subject.client.reply(to: question, with: "2")
                    try await subject.client.reply(to: question, with: 2, as: .json)
                }
            }
        ),
    ]

    private static let seldom = [
        Call(
            "disconnect with a reason", "disconnect(reason:properties:) [MQTTReasonCode]",
            body: { subject, _ in try await subject.client.disconnect(reason: .disconnectWithWillMessage) }
        ),
        Call(
            "discardSession", "discardSession() []", body: { subject, _ in try await subject.client.discardSession() }),
        Call(
            "reauthenticate without a method", "reauthenticate() []",
            body: { subject, _ in try await subject.client.reauthenticate() }),
        Call(
            "unmatchedMessages", "unmatchedMessages(buffer:acknowledgement:) [BufferPolicy]",
            body: { subject, _ in subject.keep(await subject.client.unmatchedMessages()) }),
        Call(
            "withConnection", "withConnection(_:) [(Self) async throws -> Result]",
            body: { subject, _ in
                try await subject.client.withConnection { _ = try await $0.publish("w", to: "a", qos: .atLeastOnce) }
            }
        ),
    ]
}

extension Bench {
    /// Lets something at random go wrong, or right again.
    fileprivate func fail(_ random: inout SeededGenerator, _ client: MQTTClient) async {
        switch Int.random(in: 0..<40, using: &random) {
        case 0: await cut()
        case 1: broker.changeFaults { $0.withholdsAcknowledgements = true }
        case 2: broker.changeFaults { $0.ignoresConnect = true }
        case 3: broker.changeFaults { $0.refusedFilters = ["a/b"] }
        case 4: setNetwork(up: false)
        case 5: damage(client) { $0.capacity = 0 }
        case 6: damage(client) { $0.capacity = 100 }
        case 7: damage(client) { $0.bytesUntilCut = Int.random(in: 0...2000, using: &random) }
        case 8: damage(client) { $0.bytesPerRead = 1 }
        case 9: damage(client) { $0.bytesToCorrupt = 1 }
        case 10...24: heal()
        default: break
        }
    }

    fileprivate func heal() {
        broker.changeFaults { $0 = LoopbackFaults() }
        setNetwork(up: true)
        damageAll { $0 = MemoryPair.Faults() }
    }
}

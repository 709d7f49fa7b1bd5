import ClientTestSupport
import LoopbackBroker
import MessagingJudge
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingShell
@testable import STOMP

@Suite("Client: cancellation campaign", .turns)
struct CancellationCampaignTests {
    @Test func `each call of a client ends exactly once, whatever is cancelled and whatever fails`() async throws {
        let dropped = DroppedWaiters.count
        var options = LoopbackBrokerOptions()
        // Bytes are damaged on their way.
        options.judging.mayBreak = Set(Clause.allCases)
        try await withBroker(options) { broker in
            let subjects = (0..<4).map { number in Subject(broker) { Self.configure(&$0, number) } }
            // Their short timeouts may pass on a busy machine; calls that fail are part of the campaign, but not of its start.
            for subject in subjects { #expect(await eventually { (try? await subject.client.connect()) != nil }) }
            let calls = Self.calls.map { $0.call(subjects) }
            try await CancellationCampaign(calls).run(Campaign.rounds(100_000, least: 200)) { random in
                await subjects[Int.random(in: 0..<4, using: &random)].fail(&random, broker)
            }
            for subject in subjects { subject.heal(broker) }
            for subject in subjects { await subject.client.disconnect() }
        }
        #expect(DroppedWaiters.count == dropped)
    }

    @Test func `every public asynchronous function of the client has a row`() throws {
        let covered = Self.calls.reduce(into: Set<String>()) { $0.formUnion($1.covers) }
        let calls = try PublicCalls.asynchronous(in: "STOMP", "MessagingShell")
        #expect(calls.subtracting(covered).isEmpty, "without a row: \(calls.subtracting(covered))")
        #expect(covered.subtracting(calls).isEmpty, "not in the sources: \(covered.subtracting(calls))")
    }

    /// A client that reaches its broker through memory, with what its calls leave for others.
    private final class Subject: CampaignSubject {
        private final class Network: Sendable {
            let wire = Lock<MemoryStream?>(nil)
            let isDown = Atomic(false)
        }

        let client: STOMPClient
        private let network: Network
        let subscriptions = KeptSubscriptions<STOMPSubscription>()

        init(_ broker: LoopbackBroker, _ change: (inout STOMPConfiguration) -> Void) {
            let network = Network()
            var configuration = STOMPConfiguration()
            change(&configuration)
            client = STOMPClient(["stomp://bench"], configuration: configuration, loop: .shared) {
                () async throws(TransportError) in
                if network.isDown.load(ordering: .relaxed) {
                    throw TransportError(.connectionRefused, "The network is down.")
                }
                let (near, far) = MemoryPair.make()
                network.wire.withLock { $0 = near }
                broker.attach(far, as: Service(.stomp))
                return OpenedStream(stream: near)
            }
            self.network = network
        }

        /// Lets something at random go wrong, or right again.
        func fail(_ random: inout SeededGenerator, _ broker: LoopbackBroker) async {
            switch Int.random(in: 0..<40, using: &random) {
            case 0: await broker.dropAllConnections()
            case 1: broker.changeFaults { $0.withholdsAcknowledgements = true }
            case 2: broker.changeFaults { $0.ignoresConnect = true }
            case 3: broker.changeFaults { $0.refusedFilters = ["/topic/b"] }
            case 4: network.isDown.store(true, ordering: .relaxed)
            case 5: damage { $0.capacity = 0 }
            case 6: damage { $0.capacity = 100 }
            case 7: damage { $0.bytesUntilCut = Int.random(in: 0...2000, using: &random) }
            case 8: damage { $0.bytesPerRead = 1 }
            case 9: damage { $0.bytesToCorrupt = 1 }
            case 10...24: heal(broker)
            default: break
            }
        }

        func heal(_ broker: LoopbackBroker) {
            broker.changeFaults { $0 = LoopbackFaults() }
            network.isDown.store(false, ordering: .relaxed)
            damage { $0 = MemoryPair.Faults() }
        }

        private func damage(_ change: (inout MemoryPair.Faults) -> Void) {
            network.wire.withLock { $0 }?.changeFaults(change)
        }
    }

    private static func configure(_ configuration: inout STOMPConfiguration, _ number: Int) {
        configuration.requestTimeout = .milliseconds(300)
        configuration.connectTimeout = .milliseconds(300)
        configuration.reconnect.initialDelay = .milliseconds(1)
        configuration.reconnect.maximumDelay = .milliseconds(5)
        configuration.reconnect.firstConnectAttempts = 3
        if number == 0 { configuration.versions = [.v10] }
        if number == 1 { configuration.maximumOutboxBytes = 2048 }
        if number == 2 { configuration.maximumReceipts = 10 }
    }

    private typealias Call = CancellationCampaign.Row<Subject>

    private static let destinations = ["/topic/a", "/topic/b", "/queue/c"]

    private static func messages(_ count: Int, _ random: inout SeededGenerator) -> [STOMPOutgoingMessage] {
        (0..<count).map { _ in
            STOMPOutgoingMessage(
                random.bytes(Int.random(in: 0...200, using: &random)),
                to: destinations.randomElement(using: &random) ?? "/topic/a")
        }
    }

    /// Every public asynchronous function. Those that end a connection are called less often than the others.
    private static let calls: [Call] =
        Array(repeating: Call.commonOften + often, count: 6).flatMap(\.self) + Call.commonSeldom + seldom

    private static let often = [
        Call(
            "send", "send(_:to:options:in:) [some Sequence<UInt8>]",
            body: { subject, _ in try await subject.client.send([UInt8](repeating: 0, count: 500), to: "/topic/a") }),
        Call(
            "send any bytes", "sendAndConfirm(_:to:options:in:) [some Sequence<UInt8>]",
            body: { subject, _ in
                try await subject.client.send(repeatElement(UInt8(0), count: 500), to: "/topic/a")
                try await subject.client.sendAndConfirm(repeatElement(UInt8(0), count: 5), to: "/topic/a")
            }
        ),
        Call(
            "sendAndConfirm", "sendAndConfirm(_:to:options:in:) [String]",
            body: { subject, _ in try await subject.client.sendAndConfirm("1", to: "/topic/a") }),
        Call(
            "send a message", "send(_:in:) [STOMPOutgoingMessage]", "sendAndConfirm(_:in:) [STOMPOutgoingMessage]",
            body: { subject, random in
                let message = messages(1, &random)[0]
                try await subject.client.send(message)
                try await subject.client.sendAndConfirm(message)
            }
        ),
        Call(
            "send messages", "send(_:in:) [[STOMPOutgoingMessage]]",
            body: { subject, random in try await subject.client.send(messages(40, &random)) }),
        Call(
            "confirm messages", "sendAndConfirm(_:in:) [[STOMPOutgoingMessage]]",
            body: { subject, random in try await subject.client.sendAndConfirm(messages(40, &random)).check() }),
        Call(
            "sendForReceipt", "sendForReceipt(_:in:) [STOMPOutgoingMessage]", "confirmed() []",
            body: { subject, _ in
                try await subject.client.sendForReceipt(STOMPOutgoingMessage([1], to: "/topic/b")).confirmed()
            }
        ),
        Call(
            "subscribe", "subscribe(to:acknowledgement:options:buffer:) [String]",
            body: { subject, random in
                let destination = destinations.randomElement(using: &random) ?? "/topic/a"
                let acknowledgement = Bool.random(using: &random) ? STOMPAckMode.auto : .clientIndividual
                let policy = BufferPolicy(
                    messages: 50, overflow: Bool.random(using: &random) ? .pauseReading : .dropOldest)
                subject.keep(
                    try await subject.client.subscribe(
                        to: destination, acknowledgement: acknowledgement, buffer: policy))
            }
        ),
        Call(
            "next", "next() []", "next(isolation:) [isolated (any Actor)?]",
            body: { subject, random in
                let subscription = try subject.subscription(&random)
                var messages = subscription.makeAsyncIterator()
                for _ in 0..<20 {
                    guard let message = try await messages.next() else { return }
                    if subscription.acknowledgement != .auto { try message.acknowledge() }
                }
            }
        ),
        Call(
            "transaction", "withTransaction(named:_:) [String?]",
            body: { subject, _ in
                try await subject.client.withTransaction { transaction in
                    try await subject.client.send([1], to: "/topic/a", in: transaction)
                }
            }
        ),
        Call(
            "commit", "commit(_:) [STOMPTransactionHandle]",
            body: { subject, _ in try await subject.client.commit(try subject.client.begin()) }),
        Call(
            "send a text", "send(_:to:options:in:) [String]",
            body: { subject, _ in try await subject.client.send("1", to: "/topic/a") }
        ),
        Call(
            "confirm bytes",
            body: { subject, _ in try await subject.client.sendAndConfirm([1], to: "/topic/a") }
        ),
        Call(
            "send values", "send(_:as:to:options:in:) [some Encodable & Sendable]", "send(_:to:options:in:) [Value]",
            body: { subject, _ in
                try await subject.client.send([1, 2], as: .json, to: "/topic/a")
                try await subject.client.send("typed", to: STOMPDestination.text("/topic/b"))
            }
        ),
        Call(
            "confirm values", "sendAndConfirm(_:as:to:options:in:) [some Encodable & Sendable]",
            "sendAndConfirm(_:to:options:in:) [Value]",
            body: { subject, _ in
                try await subject.client.sendAndConfirm([1, 2], as: .json, to: "/topic/a")
                try await subject.client.sendAndConfirm("typed", to: STOMPDestination.text("/topic/b"))
            }
        ),
        Call(
            "subscribe to a typed destination",
            "subscribe(to:acknowledgement:options:buffer:) [STOMPDestination<Value>]",
            body: { subject, _ in
                let texts = try await subject.client.subscribe(to: STOMPDestination<String>.text("/topic/b"))
                var iterator = texts.makeAsyncIterator()
                _ = try await iterator.next()
            }
        ),
        Call(
            "request with a text", "request(_:to:options:timeout:) [String]",
            body: { subject, _ in
                _ = try await subject.client.request("1", to: "/queue/questions", timeout: .milliseconds(50))
            }
        ),
        Call(
            "send for a receipt, of every kind",
            body: { subject, random in
                let client = subject.client
                let receipts = [
                    try await client.sendForReceipt(STOMPOutgoingMessage("1", to: "/topic/a")),
                    try await client.sendForReceipt(messages(1, &random)[0]),
                    try await client.sendForReceipt(STOMPOutgoingMessage([1], as: .json, to: "/topic/a")),
                    try await client.sendForReceipt(STOMPOutgoingMessage("typed", to: .text("/topic/b"))),
                ]
                for receipt in receipts { try await receipt.confirmed() }
            }
        ),
        Call(
            "request of a typed destination", "request(_:to:returning:coding:options:timeout:) [Value]",
            body: { subject, _ in
                let questions = STOMPDestination<String>.text("/queue/questions")
                _ = try await subject.client.request(
                    "1", to: questions, returning: Int.self, timeout: .milliseconds(50))
            }
        ),
        Call(
            "reply to a value",
            body: { subject, _ in
                let questions = try await subject.client.subscribe(to: "/queue/questions", as: Int.self)
                for try await question in questions.prefix(1) {
                    try await subject.client.reply(to: question.message, with: [2])
                    try await subject.client.reply(to: question.message, with: "2")
                    try await subject.client.reply(to: question.message, with: 2)
                }
            }
        ),
        Call(
            "request", "request(_:to:options:timeout:) [some Sequence<UInt8>]",
            body: { subject, _ in
                _ = try await subject.client.request([1], to: "/queue/questions", timeout: .milliseconds(50))
            }
        ),
        Call(
            "unsubscribe a durable subscription", "unsubscribe(from:durableName:headers:) [String]",
            body: { subject, _ in try await subject.client.unsubscribe(from: "/topic/a", durableName: "kept") }
        ),
        Call(
            "request a value", "request(_:as:to:returning:options:timeout:) [some Encodable & Sendable]",
            body: { subject, _ in
                _ = try await subject.client.request(
                    1, as: .json, to: "/queue/questions", returning: Int.self, timeout: .milliseconds(50))
            }
        ),
        Call(
            "subscribe to values and text",
            "subscribe(to:as:coding:acknowledgement:options:buffer:) [String]",
            "subscribe(to:as:acknowledgement:options:buffer:) [String]",
            body: { subject, _ in
                let client = subject.client
                var values = try await client.subscribe(to: "/topic/a", as: [Int].self).makeAsyncIterator()
                var texts = try await client.subscribe(to: "/topic/a", as: String.self).makeAsyncIterator()
                _ = (try await values.next(), try await texts.next())
            }
        ),
        Call(
            "reply", "reply(to:with:options:) [STOMPMessage]", "reply(to:with:as:options:) [STOMPMessage]",
            body: { subject, _ in
                let questions = try await subject.client.subscribe(to: "/queue/questions")
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
            "withConnection", "withConnection(_:) [(Self) async throws -> Result]",
            body: { subject, _ in
                try await subject.client.withConnection { try await $0.sendAndConfirm("w", to: "/topic/a") }
            }
        )
    ]
}

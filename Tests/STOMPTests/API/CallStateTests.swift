import ClientTestSupport
import LoopbackBroker
import STOMP
import Synchronization
import TestSupport
import Testing

/// What each call does while there is no connection, as the article about reconnecting shows it.
@Suite("Client: calls without a connection", .turns)
struct CallStateTests {
    @Test(arguments: rows) func `in each state a call does what the article shows`(row: CallRow<Subject>) async throws {
        try await row.check(against: CallTable("STOMP")) {
            ($0 as? STOMPError).map { "\($0.code)" }
        } in: { state in
            try await Subject(
                state, hasAsked: row.name.contains("request"), isDurable: row.name.contains("durable"))
        }
    }

    @Test func `the article shows exactly these calls`() throws {
        #expect(try Set(CallTable("STOMP").cells.keys) == Set(Self.rows.map(\.name)))
    }

    /// A client that is not connected, and one that answers its questions.
    struct Subject: CallSubject {
        let broker: LoopbackBroker
        let client: STOMPClient
        private let password = Password()
        private let responder: STOMPClient
        private let answers: Task<Void, any Error>
        private(set) var subscription: STOMPSubscription?
        private(set) var message: STOMPMessage?
        private(set) var transaction: STOMPTransactionHandle?

        /// - Parameters:
        ///   - hasAsked: whether the client has made a request, so that it has a queue for replies.
        ///   - isDurable: whether its subscription is durable.
        init(_ state: CallState, hasAsked: Bool, isDurable: Bool) async throws {
            var options = LoopbackBrokerOptions()
            options.users = [.init(name: "ann", password: "right")]
            let broker = try await LoopbackBroker.judged(options)
            let responder = try await broker.connected {
                $0.credentials = Credentials(userName: "ann", password: "right")
            }
            let questions = try await responder.subscribe(to: "/queue/questions")
            answers = Task {
                for try await question in questions { try await responder.reply(to: question, with: "answer") }
            }
            let password = password
            client = broker.client {
                $0.clientID = "caller"
                $0.requestTimeout = .patience
                $0.credentialsProvider = { _ in Credentials(userName: "ann", password: password.value) }
            }
            self.broker = broker
            self.responder = responder
            if state.followsConnection {
                try await client.connect()
                // It is not acknowledged, so that a reader that waits receives it again after the reconnect.
                let destination = isDurable ? "/topic/held" : "/queue/held"
                let subscription = try await client.subscribe(
                    to: destination, acknowledgement: .clientIndividual,
                    options: STOMPSubscribeOptions(durableName: isDurable ? "held" : nil))
                try await client.sendAndConfirm("1", to: destination)
                message = try await subscription.first(1).first
                transaction = try client.begin()
                if hasAsked { _ = try await client.request("x", to: "/queue/questions") }
                self.subscription = subscription
            }
            try await enter(state)
        }

        private func enter(_ state: CallState) async throws {
            switch state {
            case .notStarted: break
            case .starting, .reconnecting:
                broker.changeFaults { $0.refusesConnections = true }
                if state == .starting { await client.start() } else { await broker.dropConnection(of: "caller") }
                for await now in client.states { if case .waiting = now { break } }
            case .stopped:
                password.value = "wrong"
                await broker.dropConnection(of: "caller")
                for await now in client.states { if case .disconnected(_?) = now { break } }
                password.value = "right"
            case .suspended: await client.suspend()
            case .disconnected: await client.disconnect()
            }
        }

        var connections: Int { client.counters.connections }

        func connect() async throws {
            broker.changeFaults { $0.refusesConnections = false }
            try await client.connect()
        }

        func callArrives() async {}

        func close() async {
            answers.cancel()
            await client.disconnect()
            await responder.disconnect()
            await broker.stop()
        }
    }

    /// What a subject's `credentialsProvider` returns.
    private final class Password: Sendable {
        private let text = Mutex("right")
        var value: String {
            get { text.withLock { $0 } }
            set { text.withLock { $0 = newValue } }
        }
    }

    private typealias Row = CallRow<Subject>

    static let rows: [CallRow<Subject>] = [
        Row("`send`, `sendAndConfirm`, `sendForReceipt`") { try await $0.client.send("x", to: "/queue/called") },
        Row("`send`, `sendAndConfirm`, `sendForReceipt`") {
            try await $0.client.send([STOMPOutgoingMessage("x", to: "/queue/called")])
        },
        Row("`send`, `sendAndConfirm`, `sendForReceipt`") {
            try await $0.client.sendAndConfirm("x", to: "/queue/called")
        },
        Row("`send`, `sendAndConfirm`, `sendForReceipt`") {
            _ = try await $0.client.sendForReceipt(STOMPOutgoingMessage([], to: "/queue/called"))
        },
        Row("`subscribe`, `request`") { _ = try await $0.client.subscribe(to: "/queue/called") },
        Row("`unsubscribe()` of a subscription", needsConnection: true) { try await $0.subscription?.unsubscribe() },
        Row("`unsubscribe()` of a durable subscription", needsConnection: true) {
            try await $0.subscription?.unsubscribe()
        },
        Row("`subscribe`, `request`") { _ = try await $0.client.request("x", to: "/queue/questions") },
        Row("`begin`, `withTransaction`") { try await $0.client.withTransaction { _ in } },
        Row("`commit` of an earlier transaction", needsConnection: true) { subject in
            if let transaction = subject.transaction { try await subject.client.commit(transaction) }
        },
        Row("`acknowledge()`, `reject()` of an earlier message", needsConnection: true) {
            try $0.message?.acknowledge()
        },
        Row("the next message", needsConnection: true) {
            var messages = $0.subscription?.makeAsyncIterator()
            guard try await messages?.next() != nil else { throw SequenceEnd() }
        },
        Row("`connect`") { try await $0.client.connect() },
    ]
}

import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// What each call does while there is no connection, as the article about reconnecting shows it.
@Suite("Client: calls without a connection", .turns)
struct CallStateTests {
    @Test(arguments: rows) func `in each state a call does what the article shows`(row: CallRow<Subject>) async throws {
        try await row.check(against: CallTable("MQTT")) {
            ($0 as? MQTTError).map { "\($0.code)" }
        } in: { state in
            try await Subject(state, queuesQoS0: row.name.contains("queuesQoS0WhileOffline"))
        }
    }

    @Test func `the article shows exactly these calls`() throws {
        #expect(try Set(CallTable("MQTT").cells.keys) == Set(Self.rows.map(\.name)))
    }

    /// A client that is not connected, and one that answers its questions.
    struct Subject: CallSubject {
        let bench: Bench
        let client: MQTTClient
        private let password = Password()
        private let responder: MQTTClient
        private let answers: Task<Void, any Error>
        private let arrivals: AsyncStream<LoopbackArrival>
        private(set) var subscription: MQTTSubscription?
        private(set) var message: MQTTMessage?

        init(_ state: CallState, queuesQoS0: Bool) async throws {
            let bench = try await Bench { $0.users = [.init(name: "ann", password: "right")] }
            let responder = try await bench.connected("responder") {
                $0.version = .v5_0
                $0.credentials = Credentials(userName: "ann", password: "right")
            }
            let questions = try await responder.subscribe(to: "questions")
            answers = Task {
                for try await question in questions { try await responder.reply(to: question, with: "answer") }
            }
            let password = password
            client = bench.client("caller") {
                $0.version = .v5_0
                $0.queuesQoS0WhileOffline = queuesQoS0
                $0.credentialsProvider = { _ in Credentials(userName: "ann", password: password.value) }
            }
            self.bench = bench
            self.responder = responder
            if state.followsConnection {
                try await client.connect()
                let subscription = try await client.subscribe(to: "held", acknowledgement: .manual)
                // Retained, so that a reader that waits receives it again after the reconnect.
                try await client.publish("1", to: "held", qos: .atLeastOnce, retain: true)
                message = try await subscription.first(1).first
                self.subscription = subscription
            }
            arrivals = bench.broker.arrivals()
            try await enter(state)
        }

        private func enter(_ state: CallState) async throws {
            switch state {
            case .notStarted: break
            case .starting, .reconnecting:
                bench.setNetwork(up: false)
                if state == .starting { await client.start() } else { await bench.broker.dropConnection(of: "caller") }
                for await now in client.states { if case .waiting = now { break } }
            case .stopped:
                password.value = "wrong"
                await bench.broker.dropConnection(of: "caller")
                for await now in client.states { if case .disconnected(_?) = now { break } }
                password.value = "right"
            case .suspended: await client.suspend()
            case .disconnected: await client.disconnect()
            }
        }

        var connections: Int { client.counters.connections }

        func connect() async throws {
            bench.setNetwork(up: true)
            try await client.connect()
        }

        func callArrives() async {
            for await arrival in arrivals where arrival.packet == .mqtt(.publish) && arrival.topic == "called" { break }
        }

        func close() async {
            answers.cancel()
            await client.disconnect()
            await responder.disconnect()
            await bench.stop()
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
        Row("`publish` with QoS 0, `tryPublish`") { try await $0.client.publish("x", to: "called") },
        Row("`publish` with QoS 0, `tryPublish`") {
            _ = try $0.client.tryPublish(MQTTOutgoingMessage([], to: "called"))
        },
        Row("both with `queuesQoS0WhileOffline`") {
            try await $0.client.publish("x", to: "called")
            guard try $0.client.tryPublish(MQTTOutgoingMessage([], to: "called")) else { throw SequenceEnd() }
        },
        Row("`publish` with QoS 1 and 2") { try await $0.client.publish("x", to: "called", qos: .atLeastOnce) },
        Row("`publish` with QoS 1 and 2") { try await $0.client.publish("x", to: "called", qos: .exactlyOnce) },
        Row("`publish` with QoS 1 and 2") {
            try await $0.client.publish([.init([], to: "called", qos: .atLeastOnce)]).check()
        },
        Row("`publishForConfirmation`") {
            _ = try await $0.client.publishForConfirmation(MQTTOutgoingMessage([], to: "called"))
        },
        Row("`enqueue`") { try await $0.client.enqueue(MQTTOutgoingMessage("x", to: "called")) },
        Row("`subscribe`, `request`") { _ = try await $0.client.subscribe(to: "called") },
        Row("`unsubscribe()` of a subscription", needsConnection: true) { try await $0.subscription?.unsubscribe() },
        Row("`unsubscribe(from:)`") { try await $0.client.unsubscribe(from: "another") },
        Row("`subscribe`, `request`") { _ = try await $0.client.request("x", to: "questions", timeout: .patience) },
        Row("`reauthenticate`") { try await $0.client.reauthenticate() },
        Row("`acknowledge()` of an earlier message", needsConnection: true) { $0.message?.acknowledge() },
        Row("the next message", needsConnection: true) {
            var messages = $0.subscription?.makeAsyncIterator()
            guard try await messages?.next() != nil else { throw SequenceEnd() }
        },
        Row("`connect`") { try await $0.client.connect() },
    ]
}

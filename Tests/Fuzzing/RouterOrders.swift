import MQTTCore

@testable import LoopbackBroker
@testable import STOMPCore

/// The loopback broker's router with orders of clients of both protocols in any sequence: its bounds hold, and it is
/// empty once all clients have left.
enum RouterOrders {
    private static let topics = ["a", "b", "/", "$x", "é"]
    private static let filters = ["a", "b", "/", "+", "#", "$share/g/", "$x"]
    private static let destinations = ["/topic/", "/queue/", "/exchange/", "/temp-queue/", "a", ".", "*", "#", ">"]

    static func check(_ input: FuzzInput) {
        var limits = LoopbackBrokerLimits()
        limits.maximumSessions = 6
        limits.maximumRetainedMessages = 4
        limits.maximumRetainedBytes = 64
        limits.maximumQueueMessages = 4
        limits.maximumQueueBytes = 64
        limits.maximumSessionMessages = 4
        limits.maximumSessionBytes = 64
        limits.maximumPrefetch = 3
        var clients = Clients(Router(limits: limits), input)
        while !clients.input.bytes.isEmpty {
            clients.step()
            require(clients.router.sessionCount <= limits.maximumSessions, "too many sessions")
            require(
                clients.router.retainedCount(at: 0) <= limits.maximumRetainedMessages, "too many retained messages")
        }
        clients.leave()
    }

    private struct Clients {
        var router: Router
        var input: FuzzInput
        private var effects = RouterEffects()
        private var now: Int64 = 0
        private var lastConnection = 0
        /// Sessions of MQTT with their connections.
        private var sessions: [(client: String, session: Int, connection: Int)] = []
        private var connections: [Int] = []
        /// Messages of STOMP that were delivered.
        private var deliveries: [STOMPDelivery] = []

        init(_ router: Router, _ input: FuzzInput) {
            self.router = router
            self.input = input
        }

        mutating func step() {
            now += Int64(input.byte() & 3) * 1_000_000_000
            switch input.byte() % 14 {
            case 0: open()
            case 1: close()
            case 2: subscribe()
            case 3: if let client = session() { router.unsubscribe(client.session, input.text(RouterOrders.filters)) }
            case 4, 5: publish()
            case 6: router.handleTimeout(at: now, into: &effects)
            case 7:
                lastConnection += 1
                connections.append(lastConnection)
                router.openSTOMP(lastConnection, clientID: input.choice(["x", nil]))
            case 8: if let connection = connection() { leave(connection) }
            case 9: subscribeSTOMP()
            case 10: unsubscribeSTOMP()
            case 11: sendSTOMP()
            case 12: answerSTOMP()
            default: transact()
            }
            // As the broker does after each order.
            for publication in effects.publishes {
                require(
                    sessions.contains { $0.connection == publication.connection },
                    "a message goes to connection \(publication.connection), which is gone")
            }
            deliveries = (deliveries + effects.messages).suffix(16)
            effects = RouterEffects()
        }

        private mutating func session() -> (client: String, session: Int, connection: Int)? {
            sessions.isEmpty ? nil : input.choice(sessions)
        }

        private mutating func connection() -> Int? { connections.isEmpty ? nil : input.choice(connections) }

        private mutating func open() {
            let client = input.choice(["1", "2", "3", "4", "5", "6", "7", "8"])
            // The broker closes the other connection of the client first.
            if let index = sessions.firstIndex(where: { $0.client == client }) { close(index, sendsWill: true) }
            lastConnection += 1
            let will =
                input.byte() & 1 == 0
                ? nil : MQTTWill([1], to: input.text(RouterOrders.topics), qos: .atLeastOnce)
            let opened = router.openSession(
                clientID: client, connection: lastConnection, cleanStart: input.byte() & 1 == 0,
                expiry: input.choice([0, 1, 5, .max]), will: will, at: now, into: &effects)
            if let opened { sessions.append((client, opened.session, lastConnection)) }
        }

        private mutating func close() {
            guard !sessions.isEmpty else { return }
            close(Int(input.byte()) % sessions.count, sendsWill: input.byte() & 1 == 0)
        }

        private mutating func close(_ index: Int, sendsWill: Bool, expiry: UInt32? = nil) {
            let client = sessions.remove(at: index)
            router.closeSession(
                client.session, kept: MQTTSession(), queue: SessionQueue(countLimit: 4, byteLimit: 64),
                sendsWill: sendsWill, expiry: expiry, at: now, into: &effects)
        }

        private mutating func subscribe() {
            guard let client = session() else { return }
            let filter = input.text(RouterOrders.filters)
            guard MQTTTopicFilter.isValid(filter) else { return }
            var request = MQTTSubscriptionRequest(filter: filter, qos: input.choice(QoS.allCases))
            request.noLocal = input.byte() & 1 == 0
            request.retainAsPublished = input.byte() & 1 == 0
            router.subscribe(
                client.session, request, identifier: UInt32(input.byte() & 1), at: now, into: &effects)
        }

        private mutating func publish() {
            let message = Message(
                topic: input.text(RouterOrders.topics), payload: Array(repeating: 1, count: Int(input.byte() & 31)),
                qos: input.choice(QoS.allCases), isRetained: input.byte() & 1 == 0,
                expiry: input.byte() & 1 == 0 ? .max : now + 2_000_000_000,
                publisher: session()?.session ?? -1)
            router.publish(message, at: now, into: &effects)
        }

        // MARK: STOMP

        private mutating func headers() -> STOMPHeaders {
            var headers: STOMPHeaders = [:]
            switch input.byte() % 6 {
            case 0: headers["durable-subscription-name"] = "d"
            case 1: headers["prefetch-count"] = "\(input.byte() & 3)"
            case 2: headers["requeue"] = input.choice(["true", "false"])
            default: break
            }
            return headers
        }

        private mutating func subscribeSTOMP() {
            guard let connection = connection() else { return }
            let request = STOMPSubscribeRequest(
                id: input.choice(["1", "2", nil]), destination: input.text(RouterOrders.destinations),
                ackMode: input.choice(STOMPAckMode.allCases),
                selector: input.choice([nil, nil, "x = 'a'", "x IN ('a')"]), receipt: nil, headers: headers())
            try? router.subscribe(connection, request, at: now, into: &effects)
        }

        private mutating func unsubscribeSTOMP() {
            guard let connection = connection() else { return }
            let request = STOMPUnsubscribeRequest(
                id: input.choice(["1", "2", nil]), destination: input.text(RouterOrders.destinations), receipt: nil,
                headers: headers())
            try? router.unsubscribe(connection, request, at: now, into: &effects)
        }

        private mutating func sendSTOMP() {
            guard let connection = connection() else { return }
            let destination = input.text(RouterOrders.destinations)
            let message = Message(topic: destination, payload: Array(repeating: 1, count: Int(input.byte() & 31)))
            try? router.send(
                connection, message, to: destination, transaction: input.choice([nil, "t", "u"]), at: now,
                into: &effects)
        }

        private mutating func answerSTOMP() {
            guard let connection = connection() else { return }
            let delivery = deliveries.isEmpty ? nil : input.choice(deliveries)
            if input.byte() & 7 == 0, let delivery {
                router.takeBack([delivery], at: now, into: &effects)
                return router.hasRoomAgain(delivery.connection, at: now, into: &effects)
            }
            let request = STOMPAckRequest(
                id: delivery?.ackID, messageID: delivery?.messageID, subscription: input.choice(["1", "2", nil]),
                transaction: input.choice([nil, nil, "t"]), receipt: nil, headers: headers())
            try? router.answer(connection, request, accepts: input.byte() & 1 == 0, at: now, into: &effects)
        }

        private mutating func transact() {
            guard let connection = connection() else { return }
            let name = input.choice(["t", "u"])
            switch input.byte() % 3 {
            case 0: try? router.begin(connection, name)
            case 1: try? router.commit(connection, name, at: now, into: &effects)
            default: try? router.abort(connection, name)
            }
        }

        private mutating func leave(_ connection: Int) {
            connections.removeAll { $0 == connection }
            router.closeSTOMP(connection, at: now, into: &effects)
        }

        /// Everybody leaves and no session is to be kept: nothing receives messages any more.
        mutating func leave() {
            for connection in connections { leave(connection) }
            while !sessions.isEmpty { close(0, sendsWill: false, expiry: 0) }
            // Sessions that were left before end here.
            now += 3_600_000_000_000_000_000
            router.handleTimeout(at: now, into: &effects)
        }
    }
}

import MQTTCore
import TestSupport
import Testing

@testable import LoopbackBroker
@testable import STOMPCore

/// The router by itself: no sockets, no clocks.
@Suite(.turns) struct RouterTests {
    /// A router with its effects, and sessions by name.
    struct Bench {
        var router: Router
        var effects = RouterEffects()
        private var connections = 0

        init(
            _ limits: LoopbackBrokerLimits = LoopbackBrokerLimits(),
            refused: LoopbackBrokerOptions.RefusedMessages = .discard
        ) {
            router = Router(limits: limits, refused: refused)
        }

        mutating func open(
            _ client: String, clean: Bool = true, expiry: UInt32 = 0, will: MQTTWill? = nil, at now: Int64 = 0
        ) -> (session: Int, connection: Int, isPresent: Bool, queue: SessionQueue) {
            connections += 1
            let opened = router.openSession(
                clientID: client, connection: connections, cleanStart: clean, expiry: expiry, will: will, at: now,
                into: &effects)!
            return (opened.session, connections, opened.isPresent, opened.queue)
        }

        mutating func close(_ session: Int, politely: Bool = false, at now: Int64 = 0) {
            router.closeSession(
                session, kept: MQTTSession(), queue: SessionQueue(countLimit: 10, byteLimit: 1_000),
                sendsWill: !politely, at: now, into: &effects)
        }

        mutating func subscribe(_ session: Int, _ filter: String, _ qos: QoS = .exactlyOnce, identifier: UInt32 = 0) {
            router.subscribe(
                session, MQTTSubscriptionRequest(filter: filter, qos: qos), identifier: identifier, at: 0,
                into: &effects)
        }

        mutating func publish(
            _ topic: String, _ payload: String = "x", qos: QoS = .atLeastOnce, retain: Bool = false, from: Int = -1,
            expiry: Int64 = .max, at now: Int64 = 0
        ) {
            router.publish(
                Message(
                    topic: topic, payload: Array(payload.utf8), qos: qos, isRetained: retain, expiry: expiry,
                    publisher: from), at: now, into: &effects)
        }

        /// What was sent to whom since the last call.
        mutating func sent() -> [String] {
            defer { effects = RouterEffects() }
            return effects.publishes.map { item in
                "\(item.connection) \(item.item.message.topic) \(String(decoding: item.item.message.payload, as: UTF8.self))"
                    + " \(item.item.qos.rawValue)" + (item.item.retain ? " r" : "")
                    + (item.item.identifiers.isEmpty ? "" : " \(item.item.identifiers.sorted())")
            }
        }
    }

    private func expectSent(
        _ bench: inout Bench, _ expected: [String], at location: SourceLocation = #_sourceLocation
    ) {
        let sent = bench.sent()
        #expect(sent == expected, sourceLocation: location)
    }

    @Test func aFullTableForgetsTheSessionThatHasBeenWithoutAConnectionForLongest() {
        var limits = LoopbackBrokerLimits()
        limits.maximumSessions = 3
        var bench = Bench(limits)
        let (first, second) = (bench.open("first", clean: false, expiry: .max), bench.open("second", expiry: .max))
        _ = bench.open("present")
        bench.close(second.session)
        bench.close(first.session)
        // "second" left before "first".
        _ = bench.open("new")
        #expect(bench.router.sessionCount == 3)
        #expect(bench.open("first", clean: false, expiry: .max).isPresent)
        // Now all have connections.
        let refused = bench.router.openSession(
            clientID: "more", connection: 99, cleanStart: true, expiry: 0, will: nil, at: 0, into: &bench.effects)
        #expect(refused == nil)
    }

    @Test func sendsOneCopyWithTheHighestQoSAndAllIdentifiers() {
        var bench = Bench()
        let a = bench.open("a").session
        bench.subscribe(a, "x/+", .atMostOnce, identifier: 1)
        bench.subscribe(a, "x/#", .atLeastOnce, identifier: 2)
        bench.publish("x/y", qos: .exactlyOnce)
        expectSent(&bench, ["1 x/y x 1 [1, 2]"])
        let removals = [bench.router.unsubscribe(a, "x/#"), bench.router.unsubscribe(a, "x/#")]
        #expect(removals == [true, false])
        bench.publish("x/y", qos: .exactlyOnce)
        expectSent(&bench, ["1 x/y x 0 [1]"])
    }

    @Test func doesNotReturnItsOwnMessagesToASubscriberThatSaysSo() {
        var bench = Bench()
        let a = bench.open("a").session
        let own = MQTTSubscriptionRequest(filter: "t", qos: .atMostOnce, noLocal: true, retainAsPublished: true)
        bench.router.subscribe(a, own, at: 0, into: &bench.effects)
        bench.publish("t", from: a)
        expectSent(&bench, [])
        bench.publish("t", retain: true)
        expectSent(&bench, ["1 t x 0 r"])
    }

    @Test func `the subscription with noLocal says nothing about a client's own message that another one matches`() {
        var bench = Bench()
        let a = bench.open("a").session
        let own = MQTTSubscriptionRequest(filter: "a/#", qos: .exactlyOnce, noLocal: true, retainAsPublished: true)
        bench.router.subscribe(a, own, identifier: 1, at: 0, into: &bench.effects)
        bench.subscribe(a, "a/b", .atMostOnce, identifier: 2)
        bench.publish("a/b", qos: .exactlyOnce, retain: true, from: a)
        expectSent(&bench, ["1 a/b x 0 [2]"])
        bench.publish("a/b", qos: .exactlyOnce, retain: true)
        expectSent(&bench, ["1 a/b x 2 r [1, 2]"])
    }

    @Test func sendsRetainedMessagesAsTheSubscriptionSays() {
        var bench = Bench()
        let a = bench.open("a").session
        bench.publish("t", retain: true)
        bench.publish("short", retain: true, expiry: 10)
        _ = bench.sent()
        func request(_ handling: MQTTSubscriptionRequest.RetainHandling) -> MQTTSubscriptionRequest {
            MQTTSubscriptionRequest(filter: "#", qos: .atMostOnce, retainHandling: handling)
        }
        bench.router.subscribe(a, request(.doNotSend), at: 0, into: &bench.effects)
        expectSent(&bench, [])
        bench.router.subscribe(a, request(.sendIfNew), at: 0, into: &bench.effects)
        expectSent(&bench, [])
        // The other has expired.
        bench.router.subscribe(a, request(.sendAtSubscribe), at: 10, into: &bench.effects)
        expectSent(&bench, ["1 t x 0 r"])
        #expect(bench.router.retainedCount(at: 10) == 1)
    }

    @Test func boundsRetainedMessages() {
        var limits = LoopbackBrokerLimits()
        limits.maximumRetainedMessages = 1
        var bench = Bench(limits)
        bench.publish("a", retain: true)
        bench.publish("b", retain: true)
        bench.publish("a", "new", retain: true)
        #expect(bench.router.retainedCount(at: 0) == 1)
        #expect(bench.effects.dropped == 1)
    }

    @Test func `a message that cannot be retained takes the place of the one before all the same`() {
        var limits = LoopbackBrokerLimits()
        limits.maximumRetainedBytes = 4
        var bench = Bench(limits)
        bench.publish("a", "old", retain: true)
        bench.publish("a", "too long", retain: true)
        #expect(bench.effects.dropped == 1)
        bench.publish("b", "new", retain: true)
        _ = bench.sent()
        bench.subscribe(bench.open("reader").session, "#")
        expectSent(&bench, ["1 b new 1 r"])
    }

    @Test func queuesForASessionThatIsAwayUntilItExpires() {
        var bench = Bench()
        let first = bench.open("a", clean: false, expiry: 10)
        bench.subscribe(first.session, "t")
        bench.close(first.session, at: 0)
        bench.publish("t", "0", qos: .atMostOnce)
        bench.publish("t", "1")
        expectSent(&bench, [])
        let second = bench.open("a", clean: false, expiry: 10, at: 5)
        #expect(second.isPresent && second.queue.count == 1)
        bench.close(second.session, at: 0)
        #expect(bench.router.nextDeadline == 10_000_000_000)
        bench.router.handleTimeout(at: 10_000_000_000, into: &bench.effects)
        #expect(bench.router.sessionCount == 0)
        #expect(bench.router.nextDeadline == .max)
        let third = bench.open("a", clean: false, expiry: 10)
        #expect(!third.isPresent)
    }

    @Test func delaysAWillAndForgetsItWhenTheClientReturns() {
        var bench = Bench()
        var will = MQTTWill([UInt8](), to: "w", qos: .atMostOnce)
        will.properties.willDelayInterval = 5
        bench.subscribe(bench.open("watcher").session, "#")
        let first = bench.open("a", clean: false, expiry: 100, will: will)
        bench.close(first.session)
        expectSent(&bench, [])
        _ = bench.open("a", clean: false, expiry: 100, will: will)
        bench.router.handleTimeout(at: 6_000_000_000, into: &bench.effects)
        expectSent(&bench, [])
        bench.close(first.session, at: 0)
        bench.router.handleTimeout(at: 5_000_000_000, into: &bench.effects)
        expectSent(&bench, ["1 w  0"])
        // A session that ends takes its will along [MQTT-3.1.3.2.2].
        let last = bench.open("b", expiry: 1, will: will)
        bench.close(last.session)
        bench.router.handleTimeout(at: 1_000_000_000, into: &bench.effects)
        expectSent(&bench, ["1 w  0"])
    }

    @Test func prefersMembersOfASharedSubscriptionThatAreThere() {
        var bench = Bench()
        let a = bench.open("a", clean: false, expiry: 100).session
        let b = bench.open("b").session
        bench.subscribe(a, "$share/g/t")
        bench.subscribe(b, "$share/g/t")
        bench.publish("t", "1")
        bench.publish("t", "2")
        expectSent(&bench, ["1 t 1 1", "2 t 2 1"])
        bench.close(a)
        bench.publish("t", "3")
        bench.publish("t", "4")
        expectSent(&bench, ["2 t 3 1", "2 t 4 1"])
        bench.close(b)
        bench.publish("t", "5")
        let again = bench.open("a", clean: false, expiry: 1)
        #expect(again.queue.count == 1)
    }

    @Test func dropsTheOldestUnreliableMessageOfAFullQueue() {
        func item(_ payload: String, _ qos: QoS) -> OutgoingPublish {
            OutgoingPublish(
                message: Message(topic: "", payload: Array(payload.utf8), qos: qos), qos: qos, retain: false)
        }
        var queue = SessionQueue(countLimit: 3, byteLimit: 100)
        queue.append(item("a", .atMostOnce))
        queue.append(item("b", .atLeastOnce))
        queue.append(item("c", .atMostOnce))
        queue.append(item("d", .atLeastOnce))
        queue.append(item("e", .atLeastOnce))
        queue.append(item("f", .atLeastOnce))
        let dropped = queue.takeDropped()
        #expect(dropped == 3)
        var left: [String] = []
        while let next = queue.popFirst(where: { _ in true }) {
            left.append(String(decoding: next.message.payload, as: UTF8.self))
        }
        #expect(left == ["b", "d", "e"])
        queue.append(item(String(repeating: "x", count: 101), .atLeastOnce))
        #expect(queue.isEmpty && queue.bytes == 0)
    }

    @Test(arguments: [0, -1])
    func `a queue that may hold nothing holds nothing`(limit: Int) throws {
        var limits = LoopbackBrokerLimits()
        limits.maximumQueueMessages = limit
        limits.maximumQueueBytes = limit
        var router = Router(limits: limits)
        var effects = RouterEffects()
        router.openSTOMP(1, clientID: nil)
        let message = Message(topic: "/queue/q", payload: [1])
        try router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &effects)
        #expect(router.queuedCount("/queue/q") == 0 && effects.dropped == 1)
    }

    @Test func `bounds on bytes count headers and properties`() throws {
        var limits = LoopbackBrokerLimits()
        limits.maximumQueueBytes = 10_000
        limits.maximumSessionBytes = 10_000
        limits.maximumRetainedBytes = 10_000
        var bench = Bench(limits)
        let comment = String(repeating: "x", count: 3_000)
        let properties: MQTTProperties = [.userProperty("comment", comment)]
        let headers: STOMPHeaders = ["comment": comment]
        bench.router.openSTOMP(1, clientID: nil)
        try bench.router.begin(1, "tx")
        for number in 0..<3 {
            let message = Message(topic: "/queue/q", payload: [UInt8(number)], headers: headers)
            try bench.router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &bench.effects)
            try bench.router.send(1, message, to: "/queue/q", transaction: "tx", at: 0, into: &bench.effects)
        }
        let large = Message(topic: "/queue/q", payload: [3], headers: headers)
        try bench.router.send(1, large, to: "/queue/q", transaction: nil, at: 0, into: &bench.effects)
        #expect(bench.router.queuedCount("/queue/q") == 3 && bench.effects.dropped == 1)
        #expect(throws: STOMPRefusal.self) {
            try bench.router.send(1, large, to: "/queue/q", transaction: "tx", at: 0, into: &bench.effects)
        }
        let away = bench.open("away", clean: false, expiry: .max)
        bench.subscribe(away.session, "t")
        bench.router.closeSession(
            away.session, kept: MQTTSession(), queue: away.queue, sendsWill: false, at: 0, into: &bench.effects)
        for number in 0..<4 {
            let message = Message(topic: "t", payload: [1], qos: .atLeastOnce, properties: properties)
            bench.router.publish(message, at: 0, into: &bench.effects)
            let retained = Message(topic: "r/\(number)", payload: [1], isRetained: true, properties: properties)
            bench.router.publish(retained, at: 0, into: &bench.effects)
        }
        #expect(bench.open("away", clean: false, expiry: .max).queue.count == 3)
        #expect(bench.router.retainedCount(at: 0) == 3)
    }

    @Test func `consumers with selectors get their messages in order, whoever has room first`() throws {
        var router = Router()
        var effects = RouterEffects()
        router.openSTOMP(1, clientID: nil)
        func subscribe(_ id: String, _ selector: String?, prefetch: Int) throws {
            let request = STOMPSubscribeRequest(
                id: id, destination: "/queue/q", ackMode: .clientIndividual, selector: selector, receipt: nil,
                headers: ["prefetch-count": "\(prefetch)"])
            try router.subscribe(1, request, at: 0, into: &effects)
        }
        func sent() -> [String] {
            defer { effects = RouterEffects() }
            return effects.messages.map {
                "\($0.subscriptionID ?? "") \(String(decoding: $0.entry.message.payload, as: UTF8.self))"
            }
        }
        func acknowledge(_ delivery: STOMPDelivery) throws {
            let request = STOMPAckRequest(
                id: delivery.ackID, messageID: nil, subscription: nil, transaction: nil, receipt: nil, headers: [:])
            try router.answer(1, request, accepts: true, at: 0, into: &effects)
        }
        try subscribe("a", "kind = 'a'", prefetch: 1)
        for (number, kind) in ["a", "b", "a", "c", "b"].enumerated() {
            let message = Message(topic: "/queue/q", payload: Array("\(number)\(kind)".utf8), headers: ["kind": kind])
            try router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &effects)
        }
        let first = effects.messages[0]
        #expect(sent() == ["a 0a"])
        try subscribe("b", "kind = 'b'", prefetch: 10)
        #expect(sent() == ["b 1b", "b 4b"])
        try acknowledge(first)
        let second = effects.messages[0]
        #expect(sent() == ["a 2a"])
        // What nobody accepted waits for a consumer that does; what was held comes back in its order.
        try router.unsubscribe(
            1, STOMPUnsubscribeRequest(id: "b", destination: nil, receipt: nil, headers: [:]), at: 0, into: &effects)
        #expect(sent().isEmpty && router.queuedCount("/queue/q") == 3)
        try subscribe("all", nil, prefetch: 10)
        #expect(sent() == ["all 1b", "all 3c", "all 4b"])
        try acknowledge(second)
        #expect(sent().isEmpty && router.queuedCount("/queue/q") == 0)
    }

    @Test func boundsAQueueOfSTOMPByDroppingTheOldest() throws {
        var limits = LoopbackBrokerLimits()
        limits.maximumQueueMessages = 2
        var router = Router(limits: limits)
        var effects = RouterEffects()
        router.openSTOMP(1, clientID: nil)
        for number in 0..<4 {
            let message = Message(topic: "/queue/q", payload: [UInt8(number)])
            try router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &effects)
        }
        #expect(router.queuedCount("/queue/q") == 2)
        #expect(effects.dropped == 2)
    }

    /// The documented price of not searching for them.
    @Test func `a message that has expired counts against the bounds, and reaches nobody`() throws {
        var limits = LoopbackBrokerLimits()
        limits.maximumQueueMessages = 2
        limits.maximumRetainedMessages = 1
        limits.maximumSessionMessages = 1
        var bench = Bench(limits)
        // A queue of STOMP.
        bench.router.openSTOMP(1, clientID: nil)
        for (text, expiry, now) in [("oldest", .max, 0), ("short", 10, 0), ("late", .max, 10)]
            as [(String, Int64, Int64)]
        {
            let message = Message(topic: "/queue/q", payload: Array(text.utf8), expiry: expiry)
            try bench.router.send(1, message, to: "/queue/q", transaction: nil, at: now, into: &bench.effects)
        }
        #expect(bench.router.queuedCount("/queue/q") == 2 && bench.effects.dropped == 1)
        try bench.router.subscribe(1, Self.subscription("/queue/q"), at: 10, into: &bench.effects)
        #expect(bench.effects.messages.map { $0.entry.message.payload } == [Array("late".utf8)])
        #expect(bench.effects.dropped == 2)
        // A retained message.
        bench.publish("short", retain: true, expiry: 10)
        bench.publish("late", retain: true, at: 10)
        #expect(bench.effects.dropped == 3)
        bench.publish("short", retain: true, at: 10)
        #expect(bench.effects.dropped == 3 && bench.router.retainedCount(at: 10) == 1)
        // The queue of a session.
        let first = bench.open("a", clean: false, expiry: .max)
        bench.subscribe(first.session, "t")
        bench.router.closeSession(
            first.session, kept: MQTTSession(), queue: first.queue, sendsWill: false, at: 0, into: &bench.effects)
        bench.publish("t", "short", expiry: 10)
        bench.publish("t", "late", at: 10)
        #expect(bench.effects.dropped == 4)
        #expect(bench.open("a", clean: false, expiry: .max).queue.count == 1)
    }

    @Test func `an expired message reaches no subscriber of a topic, of either protocol`() throws {
        var bench = Bench()
        bench.router.openSTOMP(1, clientID: nil)
        let request = STOMPSubscribeRequest(
            id: "1", destination: "/topic/a", ackMode: .auto, selector: nil, receipt: nil, headers: [:])
        try bench.router.subscribe(1, request, at: 0, into: &bench.effects)
        bench.publish("a", "late", expiry: 10, at: 10)
        bench.publish("a", "early", expiry: 10, at: 9)
        #expect(bench.effects.messages.map { $0.entry.message.payload } == [Array("early".utf8)])
        #expect(bench.effects.dropped == 1)
    }

    @Test func `what a full connection refuses goes to another consumer that has room`() throws {
        var router = Router()
        var effects = RouterEffects()
        for connection in 1...2 {
            router.openSTOMP(connection, clientID: nil)
            let request = STOMPSubscribeRequest(
                id: "1", destination: "/queue/q", ackMode: .auto, selector: nil, receipt: nil, headers: [:])
            try router.subscribe(connection, request, at: 0, into: &effects)
        }
        let message = Message(topic: "/queue/q", payload: [1])
        try router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &effects)
        let refused = effects.messages
        let first = try #require(refused.first).connection
        effects = RouterEffects()
        router.takeBack(refused, at: 0, into: &effects)
        #expect(effects.messages.map(\.connection) == [3 - first])
        #expect(router.queuedCount("/queue/q") == 0)
    }

    private static func subscription(_ destination: String, durable: String? = nil) -> STOMPSubscribeRequest {
        STOMPSubscribeRequest(
            id: "1", destination: destination, ackMode: .auto, selector: nil, receipt: nil,
            headers: durable.map { ["durable-subscription-name": $0] } ?? [:])
    }

    @Test func `a pattern of queues takes neither answers nor the messages of durable subscriptions`() throws {
        var router = Router()
        var effects = RouterEffects()
        for connection in 1...3 { router.openSTOMP(connection, clientID: "client \(connection)") }
        try router.subscribe(1, Self.subscription("/queue/>"), at: 0, into: &effects)
        try router.subscribe(2, Self.subscription("/temp-queue/answers"), at: 0, into: &effects)
        try router.subscribe(3, Self.subscription("/topic/t", durable: "kept"), at: 0, into: &effects)
        let answers = router.globalReplyTo("/temp-queue/answers", of: 2)
        for destination in [answers, "/topic/t", "/queue/q"] {
            let message = Message(topic: destination == "/topic/t" ? "t" : destination, payload: [1])
            try router.send(3, message, to: destination, transaction: nil, at: 0, into: &effects)
        }
        #expect(effects.messages.map(\.connection) == [2, 3, 1])
        // Nobody consumes it, so that its client may come back to it.
        router.closeSTOMP(3, at: 0, into: &effects)
        let hadSome = router.forgetDurableSubscriptions(of: "client 3")
        #expect(hadSome)
    }

    @Test func `no destination is the queue of a durable subscription`() throws {
        var router = Router()
        var effects = RouterEffects()
        router.openSTOMP(1, clientID: "c")
        try router.subscribe(1, Self.subscription("/topic/t", durable: "n"), at: 0, into: &effects)
        let names = router.queues.keys.map(\.text)
        #expect(names.count == 1)
        for name in names {
            // A message to it is one to a topic that nobody has subscribed to.
            let message = Message(destination: name, headers: [:], body: [1], at: 0, timeOfDay: 0)
            try router.send(1, message, to: name, transaction: nil, at: 0, into: &effects)
        }
        #expect(effects.messages.isEmpty)
    }

    @Test func `a temporary queue that its client sends to first ends with that client`() throws {
        var router = Router()
        var effects = RouterEffects()
        for connection in 1...2 { router.openSTOMP(connection, clientID: nil) }
        let message = Message(topic: "/temp-queue/x", payload: [1])
        try router.send(1, message, to: "/temp-queue/x", transaction: nil, at: 0, into: &effects)
        let name = router.globalReplyTo("/temp-queue/x", of: 1)
        router.closeSTOMP(1, at: 0, into: &effects)
        #expect(throws: STOMPRefusal.self) {
            try router.send(2, message, to: name, transaction: nil, at: 0, into: &effects)
        }
    }

    @Test func `a transaction that cannot be committed whole sends nothing`() throws {
        var router = Router()
        var effects = RouterEffects()
        router.openSTOMP(1, clientID: nil)
        try router.begin(1, "t")
        for destination in ["/queue/q", "/remote-temp-queue/9:gone"] {
            let message = Message(topic: destination, payload: [1])
            try router.send(1, message, to: destination, transaction: "t", at: 0, into: &effects)
        }
        #expect(throws: STOMPRefusal.self) { try router.commit(1, "t", at: 0, into: &effects) }
        #expect(router.queuedCount("/queue/q") == 0)
    }

    @Test func `a transaction is refused whole where its queues take each other's place`() throws {
        var limits = LoopbackBrokerLimits()
        limits.maximumSessions = 2
        var router = Router(limits: limits)
        var effects = RouterEffects()
        for connection in 1...2 { router.openSTOMP(connection, clientID: nil) }
        // One queue is idle, and the other holds a message.
        try router.subscribe(2, Self.subscription("/queue/idle"), at: 0, into: &effects)
        router.closeSTOMP(2, at: 0, into: &effects)
        func send(_ destination: String, _ transaction: String? = nil) throws {
            let message = Message(topic: destination, payload: [1])
            try router.send(1, message, to: destination, transaction: transaction, at: 0, into: &effects)
        }
        try send("/queue/busy")
        try router.begin(1, "t")
        try send("/queue/idle", "t")
        try send("/queue/new", "t")
        #expect(throws: STOMPRefusal.self) { try router.commit(1, "t", at: 0, into: &effects) }
        #expect(router.queuedCount("/queue/idle") == 0)
    }

    @Test func `messages of several subscriptions that end together come back in their order`() throws {
        var router = Router()
        var effects = RouterEffects()
        for connection in 1...2 { router.openSTOMP(connection, clientID: nil) }
        for id in ["a", "b"] {
            let request = STOMPSubscribeRequest(
                id: id, destination: "/queue/q", ackMode: .clientIndividual, selector: nil, receipt: nil, headers: [:])
            try router.subscribe(1, request, at: 0, into: &effects)
        }
        for number in 1...4 {
            let message = Message(topic: "/queue/q", payload: [UInt8(number)])
            try router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &effects)
        }
        #expect(effects.messages.map(\.subscriptionID) == ["a", "b", "a", "b"])
        effects = RouterEffects()
        router.closeSTOMP(1, at: 0, into: &effects)
        #expect(effects.messages.isEmpty)
        try router.subscribe(2, Self.subscription("/queue/q"), at: 0, into: &effects)
        #expect(effects.messages.map { $0.entry.message.payload } == [[1], [2], [3], [4]])
        #expect(effects.messages.allSatisfy { $0.isRedelivered })
    }

    @Test func `a queue that a message was taken from has its place until the message is acknowledged`() throws {
        var limits = LoopbackBrokerLimits()
        limits.maximumSessions = 1
        var router = Router(limits: limits)
        var effects = RouterEffects()
        for connection in 1...2 { router.openSTOMP(connection, clientID: nil) }
        let request = STOMPSubscribeRequest(
            id: "1", destination: "/queue/*", ackMode: .clientIndividual, selector: nil, receipt: nil, headers: [:])
        try router.subscribe(1, request, at: 0, into: &effects)
        func send(_ destination: String) throws {
            let message = Message(topic: destination, payload: [1])
            try router.send(2, message, to: destination, transaction: nil, at: 0, into: &effects)
        }
        try send("/queue/a")
        #expect(throws: STOMPRefusal.self) { try send("/queue/b") }
        router.closeSTOMP(1, at: 0, into: &effects)
        #expect(router.queuedCount("/queue/a") == 1)
        try router.subscribe(2, request, at: 0, into: &effects)
        let acknowledgement = STOMPAckRequest(
            id: effects.messages.last?.ackID, messageID: nil, subscription: nil, transaction: nil, receipt: nil,
            headers: [:])
        try router.answer(2, acknowledgement, accepts: true, at: 0, into: &effects)
        try send("/queue/b")
        #expect(effects.messages.map(\.destination) == ["/queue/a", "/queue/a", "/queue/b"])
        #expect(effects.dropped == 0)
    }

    @Test func `a selector looks at the user properties of an MQTT message`() throws {
        var bench = Bench()
        bench.router.openSTOMP(1, clientID: nil)
        let request = STOMPSubscribeRequest(
            id: "1", destination: "/topic/a", ackMode: .auto, selector: "country = 'FR'", receipt: nil, headers: [:])
        try bench.router.subscribe(1, request, at: 0, into: &bench.effects)
        for country in ["DE", "FR"] {
            var properties = MQTTProperties()
            properties.append(MQTTProperty(.userProperty, .pair(MQTTUserProperty("country", country))))
            let message = Message(
                topic: "a", payload: Array(country.utf8), qos: .atMostOnce, isRetained: false, expiring: properties,
                at: 0)
            bench.router.publish(message, at: 0, into: &bench.effects)
        }
        #expect(bench.effects.messages.map { $0.entry.message.payload } == [Array("FR".utf8)])
    }

    @Test func `a client's own will is not for its subscription with noLocal`() {
        var bench = Bench()
        let will = MQTTWill("gone", to: "status/me", qos: .atLeastOnce)
        let mine = bench.open("me", clean: false, expiry: 100, will: will)
        bench.router.subscribe(
            mine.session, MQTTSubscriptionRequest(filter: "status/+", qos: .atLeastOnce, noLocal: true), identifier: 0,
            at: 0, into: &bench.effects)
        bench.close(mine.session)
        #expect(bench.open("me", clean: false, expiry: 100).queue.isEmpty)
    }

    @Test func keepsWhatAFullConnectionRefuses() throws {
        var router = Router()
        var effects = RouterEffects()
        router.openSTOMP(1, clientID: nil)
        let request = STOMPSubscribeRequest(
            id: "1", destination: "/queue/q", ackMode: .auto, selector: nil, receipt: nil, headers: [:])
        try router.subscribe(1, request, at: 0, into: &effects)
        for number in 0..<3 {
            let message = Message(topic: "/queue/q", payload: [UInt8(number)])
            try router.send(1, message, to: "/queue/q", transaction: nil, at: 0, into: &effects)
        }
        #expect(effects.messages.count == 3)
        router.takeBack(Array(effects.messages[1...]), at: 0, into: &effects)
        #expect(router.queuedCount("/queue/q") == 2)
        effects = RouterEffects()
        router.hasRoomAgain(1, at: 0, into: &effects)
        #expect(effects.messages.map { $0.entry.message.payload } == [[1], [2]])
        #expect(effects.messages.allSatisfy { !$0.isRedelivered })
    }
}

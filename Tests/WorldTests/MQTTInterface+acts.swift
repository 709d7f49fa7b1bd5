import MQTT
import Synchronization

@testable import LoopbackBroker

extension MQTTInterface {
    private struct Reading: Codable, Sendable {
        var number: Int
    }

    /// Two to five messages with or without properties, and the last one.
    private static func makeMessages(
        to topic: String, _ stage: InterfaceStage, _ random: inout SimulationRandom, qos: [QoS] = QoS.allCases
    ) -> [MQTTOutgoingMessage] {
        (0..<Int.random(in: 2...5, using: &random)).map { number in
            var properties = MQTTProperties()
            if stage.is5 {
                let possible: [MQTTProperty] = [
                    .contentType("text/plain"), .userProperty("number", "\(number)"), .userProperty("number", "again"),
                    .responseTopic("somewhere"), .correlationData([0, UInt8(number)]), .payloadFormatIndicator(true),
                    .messageExpiryInterval(86_400),
                ]
                properties = MQTTProperties(possible.filter { _ in Bool.random(using: &random) })
            }
            let size = Bool.random(using: &random) ? 0 : 300
            let text = "\(number) " + String(repeating: "x", count: size)
            let level = qos.randomElement(using: &random) ?? .atLeastOnce
            return MQTTOutgoingMessage(text, to: "\(topic)/\(number)", qos: level, properties: properties)
        }
    }

    private static func end(_ topic: String) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage("end", to: "\(topic)/end", qos: .exactlyOnce)
    }

    /// Publishes messages with one of the calls; each of QoS 1 and 2 has to succeed.
    private static func publish(
        _ messages: [MQTTOutgoingMessage], _ call: Int, _ client: MQTTClient, _ stage: InterfaceStage
    ) async throws {
        for message in messages {
            let result: MQTTReasonCode?
            switch call {
            case _ where message.qos == .atMostOnce:
                _ = try? client.tryPublish(message)
                result = nil
            case 0:
                let text = String(decoding: message.payload, as: UTF8.self)
                result = try await client.publish(
                    text, to: message.topic, qos: message.qos, properties: message.properties)
            case 1:
                result = try await client.publish(
                    message.payload, to: message.topic, qos: message.qos, properties: message.properties)
            case 2: result = try await client.publish(message).reasonCode
            case 3: result = try await client.publishForConfirmation(message).confirmed().reasonCode
            default:
                try await client.enqueue(message)
                result = nil
            }
            if let result {
                // Its subscription has been granted. The other code answers a PUBREL that was repeated.
                let isRepeated = message.qos == .exactlyOnce && result == .packetIdentifierNotFound
                stage.require(result == .success || isRepeated, "publishing to \(message.topic) returned \(result)")
            }
        }
    }

    /// Discards a session. A connection that has died takes DISCONNECT with it; then the next one begins a new session, which
    /// is discarded as well.
    private static func discard(_ client: MQTTClient, _ name: String, _ stage: InterfaceStage) async throws {
        let clock = stage.world.clock
        let last = Mutex<LoopbackPacket?>(nil)
        let isDiscarded = Atomic(false)
        let arrivals = stage.broker.arrivals()
        let watching = Task {
            for await arrival in arrivals where arrival.client == name {
                last.withLock { $0 = arrival.packet }
                let continues = isDiscarded.load(ordering: .relaxed) && arrival.continuesSession
                stage.require(!continues, "\(name) continues a session that it has discarded")
            }
        }
        defer { watching.cancel() }
        for _ in 0..<5 {
            await client.start()
            while !client.state.isConnected { try await clock.sleep(for: .milliseconds(500)) }
            try await stage.retrying("discarding") { () async throws(MQTTError) in try await client.discardSession() }
            // When the server notices that the last connection has ended, which may have died.
            for _ in 0..<300 where stage.broker.hasSession(of: name) { try await clock.sleep(for: .seconds(1)) }
            guard stage.broker.hasSession(of: name) else { return }
            isDiscarded.store(true, ordering: .relaxed)
            let wasTold = last.withLock { $0 == .mqtt(.disconnect) }
            stage.require(!wasTold, "the server has the session of \(name), which was discarded")
        }
        stage.broke("the server still has the session of \(name) after five connections")
    }

    static let acts: [Act] = [
        Act(
            name: "publish to a subscription",
            calls: [
                "MQTTClient: func publish(_ text: String", "MQTTClient: func publish(_ payload",
                "MQTTClient: func publish(_ message: MQTTOutgoingMessage)", "MQTTClient: func publishForConfirmation",
                "MQTTClient: func enqueue", "MQTTClient: func tryPublish", "MQTTClient.Confirmation: func confirmed",
                "MQTTClient: func subscribe(to filter: String, qos", "MQTTClient: func subscribe(to requests",
                "MQTTSubscription: func unsubscribe(properties", "MQTTSubscription: let reasonCodes",
                "MQTTSubscription: var grantedQoS", "MQTTSubscription: var filter:", "MQTTSubscription: var filters",
                "MQTTSubscription: var droppedCount", "MQTTSubscription: func makeAsyncIterator",
                "MQTTSubscription: let grantProperties", "MQTTSubscriptionRequest: ",
                "MQTTOutgoingMessage: init(_ text",
                "MQTTOutgoingMessage: var ", "MQTTMessage: var ", "MQTTPublishResult: ", "MQTTUnsubscribeResult: ",
                "MQTTClient: var clientID",
            ]
        ) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let qos: QoS = Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
            let asks = Bool.random(using: &random)
            let messages = try await stage.retrying("subscribing to \(topic)/+") { () async throws(MQTTError) in
                asks
                    ? try await receiver.subscribe(to: [MQTTSubscriptionRequest(filter: "\(topic)/+", qos: qos)])
                    : try await receiver.subscribe(to: "\(topic)/+", qos: qos)
            }
            stage.require(messages.filter == "\(topic)/+", "the filter of \(topic)/+ is \(messages.filter)")
            stage.require(messages.grantedQoS == qos, "\(topic)/+ was granted \(messages.grantedQoS as Any)")
            stage.require(messages.reasonCodes.map(\.rawValue) == [qos.rawValue], "\(topic)/+: \(messages.reasonCodes)")
            let published = makeMessages(to: topic, stage, &random)
            try await publish(published, Int.random(in: 0...4, using: &random), sender, stage)
            try await publish([end(topic)], 2, sender, stage)
            let read = try await stage.read(messages, topic)
            stage.compare(read, with: published, granted: qos, topic)
            for message in read {
                let level = String(message.topic.split(separator: "/").last ?? "")
                stage.require(message.captures == [level], "\(message.topic) has the captures \(message.captures)")
                stage.require(message.droppedBefore == 0, "\(message.droppedBefore) messages were dropped")
            }
            let codes = try await stage.retrying("unsubscribing from \(topic)/+") { () async throws(MQTTError) in
                try await messages.unsubscribe(properties: []).reasonCodes
            }
            let known: [MQTTReasonCode] = [.success, .noSubscriptionExisted]
            stage.require(codes.allSatisfy { known.contains($0) }, "unsubscribing returned \(codes)")
            stage.require(!stage.is5 || codes.count <= 1, "unsubscribing returned \(codes)")
        },
        Act(
            name: "publish many at once",
            calls: [
                "MQTTClient: func publish(_ messages: [MQTTOutgoingMessage])",
                "MQTTClient: func subscription(to filter: String, qos", "MQTTClient: func subscription(to requests",
                "MQTTSubscription: var batches", "MQTTSubscription: func unsubscribe() async",
            ]
        ) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let asks = Bool.random(using: &random)
            let reading = Task {
                // Declared anew after a SUBSCRIBE without an answer, which ends the sequence.
                while true {
                    let messages =
                        asks
                        ? receiver.subscription(to: [MQTTSubscriptionRequest(filter: "\(topic)/#", qos: .exactlyOnce)])
                        : receiver.subscription(to: "\(topic)/#", qos: .exactlyOnce)
                    do {
                        let read = try await stage.read(messages, topic)
                        try await stage.retrying("unsubscribing from \(topic)") { () async throws(MQTTError) in
                            try await messages.unsubscribe()
                        }
                        return read
                    } catch let error as MQTTError where error.code == .timedOut {
                        stage.world.note("\(topic): \(error)")
                    }
                }
            }
            // Longer than an answer may take.
            var seconds = 0
            while seconds < 40 {
                try await stage.world.clock.sleep(for: .seconds(1))
                seconds = stage.broker.filters(of: receiver.clientID).contains("\(topic)/#") ? seconds + 1 : 0
            }
            let published = makeMessages(to: topic, stage, &random, qos: [.atLeastOnce, .exactlyOnce])
            let results = await sender.publish(published + [end(topic)])
            for (message, result) in zip(published, results) {
                if case .failure(let error) = result, !error.isUnread {
                    stage.broke("publishing \(message.topic) failed: \(error)")
                }
            }
            stage.require(results.count == published.count + 1, "\(results.count) results for \(published.count + 1)")
            stage.compare(try await reading.value, with: published, granted: .exactlyOnce, topic)
        },
        Act(name: "publish through many identifiers", calls: []) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let messages = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                try await receiver.subscribe(to: "\(topic)/#", qos: .exactlyOnce)
            }
            // A client that has few in flight begins again with the first identifiers after 63.
            let published = (0..<70).map { number in
                MQTTOutgoingMessage(
                    "\(number)", to: topic + (number % 2 == 0 ? "/a" : "/b"),
                    qos: number % 5 == 0 ? .atLeastOnce : .exactlyOnce)
            }
            var rest = published[...]
            while !rest.isEmpty {
                let burst = Array(rest.prefix(Int.random(in: 1...6, using: &random)))
                rest = rest.dropFirst(burst.count)
                if Int.random(in: 0..<8, using: &random) == 0 { stage.cut(sender, &random) }
                for (message, result) in zip(burst, await sender.publish(burst)) {
                    if case .failure(let error) = result, !error.isUnread {
                        stage.broke("publishing \(message.topic) failed: \(error)")
                    }
                }
                try await stage.world.clock.sleep(for: .milliseconds(Int.random(in: 0...2_000, using: &random)))
            }
            try await publish([end(topic)], 2, sender, stage)
            stage.compare(try await stage.read(messages, topic), with: published, granted: .exactlyOnce, topic)
            try await stage.retrying("unsubscribing") { () async throws(MQTTError) in try await messages.unsubscribe() }
        },
        Act(
            name: "publish values",
            calls: [
                "MQTTClient: func publish(_ value", "MQTTClient: func publish<Value>(_ value",
                "MQTTClient: func subscribe(to filter: String, as text", "MQTTClient: func subscribe<Value>(to filter",
                "MQTTClient: func subscribe<Value>(to topic", "MQTTOutgoingMessage: init<Value>(_ value",
                "MQTTOutgoingMessage: init(_ value",
            ]
        ) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = MQTTTopic<Reading>(stage.makeTopic(), as: .json, qos: .exactlyOnce)
            let count = Int.random(in: 1...4, using: &random)
            let messages = try await stage.retrying("subscribing to \(topic.name)") { () async throws(MQTTError) in
                try await receiver.subscribe(to: topic, qos: .exactlyOnce)
            }
            for number in 0...count {
                switch number % 3 {
                case 0: try await sender.publish(Reading(number: number), to: topic)
                case 1: try await sender.publish(Reading(number: number), to: topic.name, qos: .exactlyOnce)
                default: try await sender.publish(MQTTOutgoingMessage(Reading(number: number), to: topic))
                }
            }
            var read: [Int] = []
            for try await value in messages {
                read.append(try value.value.number)
                if read.last == count { break }
            }
            stage.require(read == Array(0...count), "\(topic.name) received the values \(read) of 0 to \(count)")
            try await stage.retrying("unsubscribing from \(topic.name)") { () async throws(MQTTError) in
                try await messages.unsubscribe()
            }
        },
        Act(name: "retained messages", calls: []) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let handling =
                [MQTTSubscriptionRequest.RetainHandling.sendAtSubscribe, .doNotSend, .sendIfNew]
                .randomElement(using: &random) ?? .sendAtSubscribe
            let asPublished = stage.is5 && Bool.random(using: &random)
            try await sender.publish("old", to: "\(topic)/r", qos: .exactlyOnce, retain: true)
            try await sender.publish("kept", to: "\(topic)/r", qos: .exactlyOnce, retain: true)
            var attempts = 0
            let messages = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                attempts += 1
                return try await receiver.subscribe(
                    to: "\(topic)/#", qos: .exactlyOnce, retainAsPublished: asPublished,
                    retainHandling: stage.is5 ? handling : .sendAtSubscribe)
            }
            try await sender.publish("new", to: "\(topic)/r", qos: .exactlyOnce, retain: true)
            // Empty, so that nothing stays.
            try await sender.publish("", to: "\(topic)/r", qos: .exactlyOnce, retain: true)
            try await publish([end(topic)], 2, sender, stage)
            let read = try await stage.read(messages, topic)
            // As the server has it when it answers a SUBSCRIBE, which may be repeated.
            let retained = read.filter { $0.isRetained && !(asPublished && $0.text == "new") }.map { $0.text ?? "" }
            let live = read.filter { $0.text == "new" && (asPublished || !$0.isRetained) }
            let isWanted = !stage.is5 || handling != .doNotSend
            // A call that ended without an answer may have made the subscription, which then is not new.
            if stage.is5, handling == .sendIfNew, attempts > 1, retained.isEmpty { return }
            stage.require(
                isWanted ? retained.first == "kept" : retained.allSatisfy { $0 == "" },
                "\(topic) received the retained messages \(retained) with \(handling)")
            // One that is retained as it was published cannot be told from what a further SUBSCRIBE brought.
            let mayRepeat = asPublished && stage.configuration.resubscribesWithSessionPresent
            stage.require(
                live.count == 1 || mayRepeat && live.count > 1, "\(topic) received \(read.map { $0.text ?? "" })")
            stage.require(live.first?.isRetained == asPublished, "\(topic) received RETAIN \(!asPublished)")
            try await stage.retrying("unsubscribing from \(topic)") { () async throws(MQTTError) in
                try await messages.unsubscribe()
            }
        },
        Act(
            name: "not its own messages", calls: ["MQTTClient: func unsubscribe(from filter: String"], versions: [.v5_0]
        ) {
            stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let messages = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                try await receiver.subscribe(to: "\(topic)/#", qos: .exactlyOnce, noLocal: true)
            }
            let (own, other) = (
                MQTTOutgoingMessage("own", to: "\(topic)/0", qos: .exactlyOnce),
                MQTTOutgoingMessage("other", to: "\(topic)/1", qos: .exactlyOnce)
            )
            let code = try await receiver.publish(own).reasonCode
            stage.require(
                [.success, .noMatchingSubscribers, .packetIdentifierNotFound].contains(code),
                "publishing to itself returned \(code)")
            try await publish([other, end(topic)], 2, sender, stage)
            stage.compare(try await stage.read(messages, topic), with: [other], granted: .exactlyOnce, topic)
            let codes = try await stage.retrying("unsubscribing") { () async throws(MQTTError) in
                try await messages.unsubscribe()
                return try await receiver.unsubscribe(from: "\(topic)/#").reasonCodes
            }
            stage.require(codes == [.noSubscriptionExisted] || codes.isEmpty, "unsubscribing again returned \(codes)")
        },
        Act(
            name: "a filter that nobody has", calls: ["MQTTClient: func unsubscribe(from filters"], versions: [.v5_0]
        ) { stage, random in
            let (_, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let filters = (0..<Int.random(in: 1...12, using: &random)).map { "\(topic)/\($0)" }
            let codes = try await stage.retrying("unsubscribing") { () async throws(MQTTError) in
                try await receiver.unsubscribe(from: filters).reasonCodes
            }
            stage.require(
                // Without a connection no server is asked.
                codes == filters.map { _ in .noSubscriptionExisted } || codes.isEmpty,
                "unsubscribing from \(filters) returned \(codes)")
        },
        Act(name: "a shared subscription", calls: [], versions: [.v5_0]) { stage, random in
            let drawn = stage.clients.shuffled(using: &random)
            let topic = stage.makeTopic()
            var members: [MQTTSubscription] = []
            for client in drawn.prefix(2) {
                members.append(
                    try await stage.retrying("joining \(topic)") { () async throws(MQTTError) in
                        try await client.subscribe(to: "$share/group/\(topic)", qos: .exactlyOnce)
                    })
            }
            let count = Int.random(in: 2...8, using: &random)
            for number in 0..<count { try await drawn[2].publish("\(number)", to: topic, qos: .exactlyOnce) }
            let start = stage.world.clock.now
            let readings = members.map { member in
                Task {
                    var texts: [String] = []
                    for try await message in member { texts.append(message.text ?? "") }
                    return texts
                }
            }
            // Until everything has been delivered, and what would be too much.
            try await stage.world.clock.sleep(until: start.advanced(by: .seconds(200)))
            for member in members {
                try await stage.retrying("leaving \(topic)") { () async throws(MQTTError) in
                    try await member.unsubscribe()
                }
            }
            var texts: [String] = []
            for reading in readings { texts += try await reading.value }
            stage.require(
                texts.sorted() == (0..<count).map { "\($0)" }.sorted(),
                "the members of \(topic) received \(texts.sorted()) of \(count) messages")
        },
        Act(name: "overlapping filters", calls: []) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            // With identifiers that it knows, the app can tell for which filter a message was sent.
            let identifies = stage.is5 && Bool.random(using: &random)
            if identifies { try await sender.publish("kept", to: "\(topic)/0", qos: .exactlyOnce, retain: true) }
            var all: [(messages: MQTTSubscription, identifier: UInt32)] = []
            for (filter, identifier) in zip(["\(topic)/#", "\(topic)/+", "\(topic)/0"], UInt32(1)...) {
                let properties: MQTTProperties = identifies ? [.subscriptionIdentifier(identifier)] : []
                let messages = try await stage.retrying("subscribing to \(filter)") { () async throws(MQTTError) in
                    try await receiver.subscribe(to: filter, qos: .exactlyOnce, properties: properties)
                }
                all.append((messages, identifier))
            }
            let messages = (0..<3).map { MQTTOutgoingMessage("\($0)", to: "\(topic)/0", qos: .exactlyOnce) }
            let last = MQTTOutgoingMessage("end", to: "\(topic)/0", qos: .exactlyOnce)
            try await publish(messages + [last], 2, sender, stage)
            for (subscription, identifier) in all {
                let read = try await stage.read(subscription, subscription.filter)
                for message in read where identifies {
                    let found = message.properties.subscriptionIdentifiers
                    stage.require(
                        found.contains(identifier),
                        "\(subscription.filter) received \(message.text ?? "") with the identifiers \(found)")
                }
                let texts = read.map { $0.text ?? "" }.filter { $0 != "kept" }
                let first = texts.indices.filter { !texts[..<$0].contains(texts[$0]) }.map { texts[$0] }
                stage.require(first == ["0", "1", "2"], "\(subscription.filter) received \(texts)")
            }
            for (subscription, _) in all {
                try await stage.retrying("unsubscribing") { () async throws(MQTTError) in
                    try await subscription.unsubscribe()
                }
            }
        },
        Act(name: "two subscriptions of one filter", calls: []) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            var both: [MQTTSubscription] = []
            for _ in 0..<2 {
                both.append(
                    try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                        try await receiver.subscribe(to: "\(topic)/#", qos: .exactlyOnce)
                    })
            }
            let published = makeMessages(to: topic, stage, &random, qos: [.exactlyOnce])
            try await publish(published + [end(topic)], 2, sender, stage)
            for subscription in both {
                stage.compare(
                    try await stage.read(subscription, topic), with: published, granted: .exactlyOnce, topic)
            }
            both.shuffle(using: &random)
            let (ended, kept) = (both[0], both[1])
            try await stage.retrying("ending one of two") { () async throws(MQTTError) in
                try await ended.unsubscribe()
            }
            let later = makeMessages(to: topic, stage, &random, qos: [.exactlyOnce])
            try await publish(later + [end(topic)], 2, sender, stage)
            stage.compare(try await stage.read(kept, topic), with: later, granted: .exactlyOnce, "\(topic), the other")
            for try await message in ended { stage.broke("\(topic) received \(message) after its end") }
            try await stage.retrying("unsubscribing") { () async throws(MQTTError) in try await kept.unsubscribe() }
        },
        Act(name: "an identifier of the app", calls: [], versions: [.v5_0]) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let identifier = UInt32.random(in: 1...100_000, using: &random)
            let messages = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                try await receiver.subscribe(
                    to: "\(topic)/#", qos: .exactlyOnce, properties: [.subscriptionIdentifier(identifier)])
            }
            var published: [MQTTOutgoingMessage] = []
            for number in 0..<4 {
                let pause = Duration.milliseconds(Int.random(in: 0...20_000, using: &random))
                try await stage.world.clock.sleep(for: pause)
                let message = MQTTOutgoingMessage("\(number)", to: "\(topic)/\(number)", qos: .exactlyOnce)
                try await publish([message], 2, sender, stage)
                published.append(message)
            }
            try await publish([end(topic)], 2, sender, stage)
            let read = try await stage.read(messages, topic)
            stage.compare(read, with: published, granted: .exactlyOnce, topic)
            for message in read {
                let found = message.properties.subscriptionIdentifiers
                stage.require(
                    found == [identifier],
                    "\(topic) received \(message.text ?? "") with the identifiers \(found), and asked for \(identifier)"
                )
            }
            try await stage.retrying("unsubscribing") { () async throws(MQTTError) in try await messages.unsubscribe() }
        },
        Act(
            name: "requests and replies",
            calls: [
                "MQTTClient: func request(_ payload: some Sequence<UInt8>, to topic: String, qos",
                "MQTTClient: func request(_ text: String, to topic: String, qos",
                "MQTTClient: func reply(to request: MQTTMessage, with payload",
                "MQTTClient: func reply(to request: MQTTMessage, with text",
            ], versions: [.v5_0]
        ) { stage, random in
            let (client, server) = stage.pair(&random)
            let topic = stage.makeTopic()
            let requests = try await stage.retrying("serving \(topic)") { () async throws(MQTTError) in
                try await server.subscribe(to: topic, qos: .exactlyOnce)
            }
            let serving = Task {
                for try await request in requests {
                    let answer = "answer to \(request.text ?? "")"
                    if answer.count % 2 == 0 {
                        _ = try? await server.reply(to: request, with: answer, qos: .exactlyOnce)
                    } else {
                        _ = try? await server.reply(to: request, with: Array(answer.utf8), qos: .exactlyOnce)
                    }
                }
            }
            for number in 0..<Int.random(in: 1...3, using: &random) {
                do throws(MQTTError) {
                    let text = "\(topic) \(number)"
                    let answer =
                        number % 2 == 0
                        ? try await client.request(text, to: topic, qos: .exactlyOnce, timeout: .seconds(60))
                        : try await client.request(Array(text.utf8), to: topic, timeout: .seconds(60))
                    stage.require(answer.text == "answer to \(text)", "'\(text)' was answered by \(answer)")
                } catch {
                    let passes: [MQTTError.Code] = [.timedOut, .connectionLost, .notConnected, .expired]
                    stage.require(passes.contains(error.code), "a request failed: \(error)")
                }
            }
            try await stage.retrying("serving no longer") { () async throws(MQTTError) in
                try await requests.unsubscribe()
            }
            try? await serving.value
        },
        Act(
            name: "requests with a topic for the reply",
            calls: [
                "MQTTClient: func request(_ payload: some Sequence<UInt8>, to topic: String, responseTopic",
                "MQTTClient: func request(_ text: String, to topic: String, responseTopic",
            ]
        ) { stage, random in
            let (client, server) = stage.pair(&random)
            let topic = stage.makeTopic()
            let requests = try await stage.retrying("serving \(topic)") { () async throws(MQTTError) in
                try await server.subscribe(to: "\(topic)/+", qos: .exactlyOnce)
            }
            let serving = Task {
                for try await request in requests {
                    _ = try? await server.publish(
                        "answer to \(request.text ?? "")", to: "reply/\(topic)/\(request.captures.first ?? "")",
                        qos: .exactlyOnce)
                }
            }
            let text = "\(Int.random(in: 0...9, using: &random))"
            do throws(MQTTError) {
                let answer =
                    text < "5"
                    ? try await client.request(
                        text, to: "\(topic)/{id}", responseTopic: "reply/\(topic)/{id}", timeout: .seconds(60))
                    : try await client.request(
                        Array(text.utf8), to: "\(topic)/{id}", responseTopic: "reply/\(topic)/{id}",
                        timeout: .seconds(60))
                stage.require(answer.text == "answer to \(text)", "'\(text)' was answered by \(answer)")
            } catch {
                let passes: [MQTTError.Code] = [.timedOut, .connectionLost, .notConnected, .expired]
                stage.require(passes.contains(error.code), "a request failed: \(error)")
            }
            try await stage.retrying("serving no longer") { () async throws(MQTTError) in
                try await requests.unsubscribe()
            }
            try? await serving.value
        },
        Act(
            name: "withdraw messages",
            calls: [
                "MQTTClient.Confirmation: func withdraw", "MQTTClient.EnqueuedMessage: func withdraw",
                "MQTTOutgoingMessage: init(_ payload",
            ]
        ) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let messages = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                try await receiver.subscribe(to: "\(topic)/#", qos: .exactlyOnce)
            }
            var expected: [MQTTOutgoingMessage] = []
            for number in 0..<4 {
                let message = MQTTOutgoingMessage(Array("\(number)".utf8), to: "\(topic)/\(number)", qos: .exactlyOnce)
                let patience = Duration.milliseconds(Int.random(in: 0...200, using: &random))
                let wasWithdrawn: Bool
                if Bool.random(using: &random) {
                    let enqueued = try await sender.enqueue(message)
                    try await stage.world.clock.sleep(for: patience)
                    wasWithdrawn = enqueued.withdraw()
                } else {
                    let confirmation = try await sender.publishForConfirmation(message)
                    try await stage.world.clock.sleep(for: patience)
                    wasWithdrawn = confirmation.withdraw()
                    do throws(MQTTError) {
                        try await confirmation.confirmed()
                        stage.require(!wasWithdrawn, "a message that was withdrawn was acknowledged")
                    } catch {
                        stage.require(wasWithdrawn && error.code == .cancelled, "\(topic) \(number) failed: \(error)")
                    }
                }
                if !wasWithdrawn { expected.append(message) }
            }
            try await publish([end(topic)], 2, sender, stage)
            stage.compare(try await stage.read(messages, topic), with: expected, granted: .exactlyOnce, topic)
            try await stage.retrying("unsubscribing") { () async throws(MQTTError) in
                try await messages.unsubscribe()
            }
        },
        Act(
            name: "acknowledge by hand", calls: ["MQTTMessage: func acknowledge", "MQTTMessage: func with(payload"]
        ) { stage, random in
            let (sender, receiver) = stage.pair(&random)
            let topic = stage.makeTopic()
            let messages = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                try await receiver.subscribe(to: "\(topic)/#", qos: .exactlyOnce, acknowledgement: .manual)
            }
            let published = makeMessages(to: topic, stage, &random, qos: [.exactlyOnce])
            try await publish(published + [end(topic)], 4, sender, stage)
            var (read, open) = ([String](), [MQTTMessage]())
            for try await message in messages {
                let copy = message.with(payload: message.payload)
                stage.require(
                    copy.topic == message.topic && copy.bytes == message.bytes, "a copy of \(message) differs")
                open.append(message)
                // In any order, but not the last one late.
                open.shuffle(using: &random)
                if message.text == "end" { break }
                read.append(message.text ?? "")
                // With a small Receive Maximum the server would wait for those that are left.
                let mustAcknowledge = min(stage.configuration.receiveMaximum, stage.maximumInFlight) < 100
                if mustAcknowledge || Bool.random(using: &random) { open.popLast()?.acknowledge() }
            }
            for message in open { message.acknowledge() }
            stage.require(
                read == published.map { String(decoding: $0.payload, as: UTF8.self) },
                "\(topic) received \(read.map { $0.prefix(1) }) of \(published.count) messages")
            try await stage.retrying("unsubscribing") { () async throws(MQTTError) in
                try await messages.unsubscribe()
            }
        },
        Act(
            name: "a client for a time",
            calls: [
                "MQTTClient: func disconnect(reason", "MQTTClient: func disconnect() async",
                "MQTTClient: func discardSession", "MQTTClient: func suspend", "MQTTClient: init(_ urls: String...",
            ], versions: [.v5_0]
        ) { stage, random in
            let topic = stage.makeTopic()
            let (_, receiver) = stage.pair(&random)
            let wills = try await stage.retrying("subscribing to \(topic)/#") { () async throws(MQTTError) in
                try await receiver.subscribe(to: "\(topic)/#", qos: .exactlyOnce)
            }
            var configuration = stage.configuration
            configuration.will = MQTTWill("end", to: "\(topic)/will", qos: .exactlyOnce)
            let name = String(topic.map { $0 == "/" ? "-" : $0 })
            let client = MQTTClient(
                stage.url, clientID: name, configuration: configuration, clock: stage.world.clock)
            await client.start()
            while !client.state.isConnected { try await stage.world.clock.sleep(for: .milliseconds(500)) }
            // Without a connection the will was published when it ended.
            do throws(MQTTError) {
                try await client.disconnect(reason: .disconnectWithWillMessage)
            } catch {
                stage.broke("disconnecting: \(error)")
            }
            _ = try await stage.read(wills, topic)
            try await stage.retrying("unsubscribing") { () async throws(MQTTError) in try await wills.unsubscribe() }
            try await discard(client, name, stage)
            await client.disconnect()
            try await stage.world.requireEnd(of: client)
        },
    ]

    /// What no world uses, with the reason.
    static let unused: [String: String] = [
        "MQTTClient: init(_ url: String,": "Worlds have a clock of their own.",
        "MQTTClient: init(_ urls: [String],": "Worlds have a clock of their own.",
        "MQTTClient: func reauthenticate": "The broker knows no authentication method.",
        "MQTTConfiguration: var authentication": "The broker knows no authentication method.",
        "MQTTConfiguration: var followsRedirects": "The broker refers to no other server.",
        "MQTTConfiguration: var network": "A simulated network has no interfaces to choose from.",
        "MQTTConfiguration: var proxy": "A world has no proxies.",
        "MQTTConfiguration: var serviceClass": "It is a mark on packets of the system.",
        "MQTTConfiguration: var threadCount": "A world has one thread.",
        "MQTTConfiguration: var threadQuality": "A world has one thread.",
        "MQTTConfiguration: var tls": "The random numbers of TLS do not follow from the seed.",
        "MQTTConfiguration: init": "It sets the client identifier, which clients of a world have in their own call.",
        "MQTTConfiguration: var clientID": "It is what clients of a world have in their own call.",
        "MQTTClient: func reply(to request: MQTTMessage, with value": "It encodes, and replies with bytes.",
        "MQTTClient: func request<": "It encodes, requests with bytes, and decodes.",
        "MQTTClient: func subscription(to filter: String, as text": "Its `subscribe` is used.",
        "MQTTClient: func subscription<": "Its `subscribe` is used.",
        "MQTTClient: func unmatchedMessages": "Nothing tells when a message of a kept session becomes unmatched.",
    ]

    static let options: [Option] = [
        Option(name: "acknowledgementTimeout") {
            $0.acknowledgementTimeout = .seconds(Int.random(in: 20...90, using: &$1))
        },
        Option(name: "connectProperties") { configuration, _ in
            if configuration.version == .v5_0 { configuration.connectProperties = [.userProperty("name", "value")] }
        },
        Option(name: "connectProvider") { configuration, _ in
            configuration.connectProvider = { options in options.keepAlive = .seconds(50) }
        },
        Option(name: "connectTimeout") { $0.connectTimeout = .seconds(Int.random(in: 5...20, using: &$1)) },
        Option(name: "credentials") { configuration, _ in
            configuration.credentials = Credentials(userName: "ann", password: "key")
        },
        Option(name: "credentialsProvider") { configuration, _ in
            configuration.credentialsProvider = { _ in Credentials(userName: "ann", password: "key") }
        },
        Option(name: "dropsInvalidMessages") { configuration, _ in configuration.dropsInvalidMessages.toggle() },
        Option(name: "enforcesReceiveMaximum") { configuration, _ in configuration.enforcesReceiveMaximum.toggle() },
        Option(name: "fallbackVersions") { configuration, _ in configuration.fallbackVersions = [.v3_1_1] },
        Option(name: "keepAlive") { $0.keepAlive = .seconds(Int.random(in: 20...60, using: &$1)) },
        Option(name: "maximumControlPacketSize") {
            $0.maximumControlPacketSize = Int.random(in: 2_000...9_000, using: &$1)
        },
        Option(name: "maximumFiltersPerRequest") { $0.maximumFiltersPerRequest = Int.random(in: 1...5, using: &$1) },
        Option(name: "maximumInFlight") { $0.maximumInFlight = [1, 2, 5].randomElement(using: &$1) },
        Option(name: "maximumOutboxBytes") { $0.maximumOutboxBytes = Int.random(in: 500...5_000, using: &$1) },
        Option(name: "maximumPacketSize") { $0.maximumPacketSize = Int.random(in: 2_000...9_000, using: &$1) },
        Option(name: "maximumPublishedBytesPerSecond") { configuration, random in
            configuration.maximumPublishedBytesPerSecond = Int.random(in: 2_000...9_000, using: &random)
        },
        Option(name: "maximumPublishesPerSecond") { $0.maximumPublishesPerSecond = Int.random(in: 2...9, using: &$1) },
        Option(name: "maximumQueuedBytes") { configuration, random in
            configuration.maximumQueuedBytes = Int.random(in: 2_000...9_000, using: &random)
            configuration.queueOverflow = .wait
        },
        Option(name: "maximumQueuedMessages") { configuration, random in
            configuration.maximumQueuedMessages = Int.random(in: 2...9, using: &random)
            configuration.queueOverflow = .wait
        },
        Option(name: "maximumUnreadBytes") { $0.maximumUnreadBytes = Int.random(in: 20_000...50_000, using: &$1) },
        Option(name: "outboundTopicAliasMaximum") {
            $0.outboundTopicAliasMaximum = UInt16.random(in: 0...3, using: &$1)
        },
        Option(name: "pingTimeout") { $0.pingTimeout = .seconds(Int.random(in: 5...10, using: &$1)) },
        Option(name: "queueOverflow") { configuration, _ in configuration.queueOverflow = .wait },
        Option(name: "queuesQoS0WhileOffline") { configuration, _ in configuration.queuesQoS0WhileOffline.toggle() },
        Option(name: "receiveMaximum") { $0.receiveMaximum = UInt16.random(in: 1...4, using: &$1) },
        Option(name: "reconnect") { configuration, random in
            configuration.reconnect = ReconnectPolicy(
                initialDelay: .milliseconds(Int.random(in: 100...2_000, using: &random)), maximumDelay: .seconds(20),
                multiplier: 1.5, jitter: 0.2, stableAfter: .seconds(5))
            configuration.reconnect.maximumConnectionAge = .seconds(Int.random(in: 10...60, using: &random))
        },
        Option(name: "republishesAfterSessionLoss") { configuration, _ in
            configuration.republishesAfterSessionLoss.toggle()
        },
        Option(name: "requestTimeout") { $0.requestTimeout = .seconds(Int.random(in: 5...30, using: &$1)) },
        Option(name: "resubscribesWithSessionPresent") { configuration, _ in
            configuration.resubscribesWithSessionPresent.toggle()
        },
        Option(name: "serverOrder") { configuration, _ in configuration.serverOrder = .shuffled },
        Option(name: "topicAliasMaximum") { $0.topicAliasMaximum = UInt16.random(in: 0...3, using: &$1) },
        Option(name: "unmatchedMessagePolicy") { configuration, _ in
            configuration.unmatchedMessagePolicy = MQTTUnmatchedMessagePolicy(maximumMessages: 5)
        },
        Option(name: "usesNetworkMonitor") { configuration, _ in configuration.usesNetworkMonitor.toggle() },
        Option(name: "webSocket") { configuration, _ in configuration.webSocket.headers = [("X-Name", "value")] },
        Option(name: "will") { configuration, _ in configuration.will = MQTTWill("gone", to: "will") },
    ]

    /// Set in each of these worlds, or in others.
    static let alwaysUsed = [
        "MQTTConfiguration: var cleanStart", "MQTTConfiguration: var messageHook",
        "MQTTConfiguration: var sessionExpiry",
        "MQTTConfiguration: var sessionStore", "MQTTConfiguration: var version",
    ]
}

extension MQTTError {
    /// Whether the acknowledgement of a message was not read, because another act has not read its subscription for long. The
    /// message arrives all the same.
    fileprivate var isUnread: Bool { code == .timedOut && message.contains("readingPaused") }
}

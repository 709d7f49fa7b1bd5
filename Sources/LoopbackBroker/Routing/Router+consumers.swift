import MessagingWire
package import STOMPCore

extension Router {
    package mutating func openSTOMP(_ connection: ConnectionID, clientID: String?) {
        stompConnections[connection] = STOMPConnectionRecord(clientID: clientID)
    }

    /// A connection is over: its transactions are aborted, and what it had not acknowledged goes back to its queues
    /// (STOMP 1.2 "ABORT", "ACK").
    package mutating func closeSTOMP(_ connection: ConnectionID, at now: Int64, into effects: inout RouterEffects) {
        guard let record = stompConnections.removeValue(forKey: connection) else { return }
        removeConsumers(record.consumers, at: now, into: &effects)
        for name in record.queues { removeQueue(name) }
    }

    package mutating func subscribe(
        _ connection: ConnectionID, _ request: STOMPSubscribeRequest, at now: Int64, into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        guard stompConnections[connection] != nil else { return }
        guard let destination = Destination(request.destination) else {
            throw STOMPRefusal(message: "'\(request.destination)' names no destination")
        }
        if let id = request.id, stompConnections[connection]?.consumersByID[ByteKey(id)] != nil {
            throw STOMPRefusal(message: "the subscription id '\(request.id ?? "")' is in use already")
        }
        var consumer = Consumer(
            connection: connection, id: request.id, destination: destination, ackMode: request.ackMode,
            prefetch: limits.maximumPrefetch)
        if let text = request.selector {
            guard let selector = Selector(text) else {
                throw STOMPRefusal(
                    message: "the selector \(text) is not supported: use x = 'text', x IN ('a', 'b') and AND")
            }
            consumer.selector = selector
        }
        if let text = request.headers["prefetch-count"], let count = Int(text), count > 0 {
            consumer.prefetch = min(count, limits.maximumPrefetch)
        }
        if destination.kind == .topic, let name = request.headers["durable-subscription-name"] {
            consumer.durable = try makeDurable(
                name, stompConnections[connection]?.clientID, destination, consumer.selector)
        }
        let index = add(consumer)
        stompConnections[connection]?.consumers.append(index)
        if let id = request.id { stompConnections[connection]?.consumersByID[ByteKey(id)] = index }
        forgetRoutes()
        if consumer.consumesQueues {
            try connectToQueues(index, at: now, into: &effects)
        } else {
            topicConsumers.insert(index, destination)
        }
    }

    package mutating func unsubscribe(
        _ connection: ConnectionID, _ request: STOMPUnsubscribeRequest, at now: Int64, into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        let index =
            if let id = request.id {
                stompConnections[connection]?.consumersByID[ByteKey(id)]
            } else {
                // 1.0 may name the destination instead (STOMP 1.0 "UNSUBSCRIBE").
                stompConnections[connection]?.consumers.last { index in
                    consumers[index]?.destination.text.hasSameBytes(as: request.destination ?? "") ?? false
                }
            }
        guard let index else {
            throw STOMPRefusal(message: "there is no subscription '\(request.id ?? request.destination ?? "")'")
        }
        let durable = consumers[index]?.durable
        if let id = consumers[index]?.id { stompConnections[connection]?.consumersByID[ByteKey(id)] = nil }
        removeConsumers([index], at: now, into: &effects)
        stompConnections[connection]?.consumers.removeAll { $0 == index }
        if let durable, queues[durable]?.consumers.isEmpty != false,
            request.headers.contains("durable-subscription-name")
        {
            // As with Artemis: named again it is left for good, otherwise it is kept for the next consumer.
            removeQueue(durable)
        }
    }

    // MARK: Parts

    private mutating func add(_ consumer: Consumer) -> Int {
        // A slot is never reused, so a stale `ack` header cannot match another message.
        nextConsumer += 1
        consumers[nextConsumer] = consumer
        return nextConsumer
    }

    private mutating func makeDurable(
        _ name: String, _ clientID: String?, _ destination: Destination, _ selector: Selector?
    ) throws(STOMPRefusal) -> ByteKey {
        guard let clientID else {
            throw STOMPRefusal(message: "a durable subscription needs a client-id in CONNECT")
        }
        let queue = ByteKey(Self.durablePrefix(clientID) + name)
        if let old = queues[queue] {
            let isForDestination = old.topics?.text.hasSameBytes(as: destination.text) == true
            if isForDestination, old.selector?.text == selector?.text { return queue }
            guard old.consumers.isEmpty else {
                let use = isForDestination ? "with another selector" : "for another destination"
                throw STOMPRefusal(message: "the durable subscription '\(name)' is in use \(use)")
            }
            // As with JMS: it is left, and another one begins.
            removeQueue(queue)
        }
        try makeQueue(queue, collecting: destination, selector)
        return queue
    }

    private static func durablePrefix(_ clientID: String) -> String {
        "\(ownQueuePrefix)durable \(clientID.utf8.count) \(clientID) "
    }

    /// Begins the names of queues that belong to subscriptions to topics. No client can send to them or consume them: such a
    /// name is that of a topic.
    private static let ownQueuePrefix = Destination.topicPrefix

    /// Ends the durable subscriptions of a client that is not connected; returns whether there were any.
    mutating func forgetDurableSubscriptions(of clientID: String) -> Bool {
        let prefix = Self.durablePrefix(clientID)
        let mine = queues.filter { name, queue in
            queue.topics != nil && queue.consumers.isEmpty && name.text.utf8.starts(with: prefix.utf8)
        }
        for name in mine.keys { removeQueue(name) }
        return !mine.isEmpty
    }

    /// Makes a consumer known to the queues that it consumes.
    private mutating func connectToQueues(
        _ index: Int, at now: Int64, into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        guard let consumer = consumers[index] else { return }
        if consumer.destination.hasWildcards && consumer.destination.kind != .topic {
            wildcardConsumers.append(index)
            for name in queueNames(where: { name, _ in isMatch(consumer, name) }) {
                connect(index, to: name)
                dispatch(name, at: now, into: &effects)
            }
            return
        }
        let name: ByteKey
        if consumer.hasOwnQueue {
            name = ByteKey("\(Self.ownQueuePrefix)\(index)")
            try makeQueue(name, collecting: consumer.destination, consumer.selector)
        } else {
            name = consumer.durable ?? queueName(consumer.destination, for: consumer.connection)
            if queues[name] == nil { try makeQueue(consumer.destination, name, for: consumer.connection) }
        }
        connect(index, to: name)
        dispatch(name, at: now, into: &effects)
    }

    mutating func connect(_ index: Int, to name: ByteKey) {
        queues[name]?.add(index, consumers[index]?.selector)
        consumers[index]?.queues.insert(name)
    }

    /// Whether a pattern stands for a queue: for no temporary and no durable one, which belong to one client each.
    func isMatch(_ consumer: Consumer, _ queue: ByteKey) -> Bool {
        guard queue.text.utf8.starts(with: Destination.queuePrefix.utf8), let name = Destination(queue.text) else {
            return false
        }
        return consumer.destination.matches(name.name)
    }

    /// Forgets consumers and gives back what they hold.
    private mutating func removeConsumers(_ indexes: [Int], at now: Int64, into effects: inout RouterEffects) {
        var held: [Unacknowledged] = []
        var names: Set<ByteKey> = []
        forgetRoutes()
        for index in indexes {
            guard var consumer = consumers.removeValue(forKey: index) else { continue }
            if consumer.consumesQueues {
                wildcardConsumers.removeAll { $0 == index }
            } else {
                topicConsumers.remove(index, consumer.destination)
            }
            held += consumer.held.removeAll()
            for name in consumer.queues { queues[name]?.remove(index) }
            for name in consumer.queues where consumer.hasOwnQueue { removeQueue(name) }
            names.formUnion(consumer.queues)
        }
        giveBack(held.map { ($0.entry, $0.queue) })
        for name in names.sorted() { dispatch(name, at: now, into: &effects) }
    }
}

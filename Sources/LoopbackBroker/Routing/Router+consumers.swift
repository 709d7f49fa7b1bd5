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
        for (name, queue) in queues where queue.owner == connection { queues[name] = nil }
    }

    package mutating func subscribe(
        _ connection: ConnectionID, _ request: STOMPSubscribeRequest, at now: Int64, into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        guard let record = stompConnections[connection] else { return }
        guard let destination = Destination(request.destination) else {
            throw STOMPRefusal(message: "'\(request.destination)' names no destination")
        }
        let isKnown = record.consumers.contains { index in
            guard let id = request.id, let other = consumers[index]?.id else { return false }
            return id.hasSameBytes(as: other)
        }
        if isKnown { throw STOMPRefusal(message: "the subscription id '\(request.id ?? "")' is in use already") }
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
            consumer.durable = try makeDurable(name, record, destination, consumer.selector)
        }
        let index = add(consumer)
        stompConnections[connection]?.consumers.append(index)
        forgetRoutes()
        if consumer.consumesQueues {
            try connectToQueues(index, at: now, into: &effects)
        } else {
            topicConsumers.append(index)
        }
    }

    package mutating func unsubscribe(
        _ connection: ConnectionID, _ request: STOMPUnsubscribeRequest, at now: Int64, into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        let index = stompConnections[connection]?.consumers.last { index in
            guard let consumer = consumers[index] else { return false }
            // 1.0 may name the destination instead (STOMP 1.0 "UNSUBSCRIBE").
            if let id = request.id { return consumer.id.hasSameBytes(as: id) }
            return consumer.destination.text.hasSameBytes(as: request.destination ?? "")
        }
        guard let index else {
            throw STOMPRefusal(message: "there is no subscription '\(request.id ?? request.destination ?? "")'")
        }
        let durable = consumers[index]?.durable
        removeConsumers([index], at: now, into: &effects)
        stompConnections[connection]?.consumers.removeAll { $0 == index }
        if let durable, queues[durable]?.consumers.isEmpty != false,
            request.headers.contains("durable-subscription-name")
        {
            // As with Artemis: named again it is left for good, otherwise it is kept for the next consumer.
            queues[durable] = nil
            forgetRoutes()
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
        _ name: String, _ record: STOMPConnectionRecord, _ destination: Destination, _ selector: Selector?
    ) throws(STOMPRefusal) -> ByteKey {
        guard let clientID = record.clientID else {
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
            queues[queue] = nil
        }
        try makeQueue(queue)
        queues[queue]?.topics = destination
        queues[queue]?.selector = selector
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
        for name in mine.keys { queues[name] = nil }
        forgetRoutes()
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
                queues[name]?.consumers.append(index)
                dispatch(name, at: now, into: &effects)
            }
            return
        }
        let name: ByteKey
        if consumer.hasOwnQueue {
            name = ByteKey("\(Self.ownQueuePrefix)\(index)")
            try makeQueue(name)
            queues[name]?.topics = consumer.destination
            queues[name]?.selector = consumer.selector
        } else {
            name = consumer.durable ?? queueName(consumer.destination, for: consumer.connection)
            if queues[name] == nil { try makeQueue(consumer.destination, name, for: consumer.connection) }
        }
        consumers[index]?.queue = name
        queues[name]?.consumers.append(index)
        dispatch(name, at: now, into: &effects)
    }

    /// Whether a pattern stands for a queue: for no temporary and no durable one, which belong to one client each.
    func isMatch(_ consumer: Consumer, _ queue: ByteKey) -> Bool {
        guard queue.text.utf8.starts(with: Destination.queuePrefix.utf8), let name = Destination(queue.text) else {
            return false
        }
        return consumer.destination.matches(name.name)
    }

    /// The queues that a consumer consumes.
    func queueNames(of consumer: Consumer, _ index: Int) -> [ByteKey] {
        if let queue = consumer.queue { return [queue] }
        guard consumer.destination.hasWildcards else { return [] }
        return queueNames { _, queue in queue.consumers.contains(index) }
    }

    /// Forgets consumers and gives back what they hold.
    private mutating func removeConsumers(_ indexes: [Int], at now: Int64, into effects: inout RouterEffects) {
        var held: [Unacknowledged] = []
        var names: [ByteKey] = []
        forgetRoutes()
        for index in indexes {
            guard let consumer = consumers.removeValue(forKey: index) else { continue }
            topicConsumers.removeAll { $0 == index }
            wildcardConsumers.removeAll { $0 == index }
            held += consumer.unacknowledged
            for name in queueNames(of: consumer, index) {
                queues[name]?.consumers.removeAll { $0 == index }
                if !names.contains(name) { names.append(name) }
            }
            if consumer.hasOwnQueue, let queue = consumer.queue { queues[queue] = nil }
        }
        giveBack(held.map { ($0.entry, $0.queue) })
        for name in names { dispatch(name, at: now, into: &effects) }
    }
}

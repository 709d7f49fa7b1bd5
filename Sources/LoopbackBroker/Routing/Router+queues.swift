import MessagingWire
package import STOMPCore

extension Router {
    /// A message for a destination: to a topic's subscribers of both protocols, or into a queue.
    package mutating func send(
        _ connection: ConnectionID, _ message: Message, to text: String, transaction: String?, at now: Int64,
        into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        guard let destination = Destination(text), !destination.hasWildcards else {
            throw STOMPRefusal(message: "'\(text)' is not a destination that accepts messages")
        }
        guard let transaction else {
            return try send(connection, message, to: destination, at: now, into: &effects)
        }
        try addStep(
            .send(message, destination: destination), size: message.size + text.utf8.count, to: transaction,
            of: connection)
    }

    private mutating func send(
        _ connection: ConnectionID, _ message: Message, to destination: Destination, at now: Int64,
        into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        guard destination.kind != .topic else {
            publish(message, at: now, into: &effects)
            return
        }
        let name = queueName(destination, for: connection)
        if queues[name] == nil {
            try refuseIfGone(destination)
            try makeQueue(destination, name, for: connection)
        }
        enqueue(message, in: name, at: now, into: &effects)
    }

    /// ACK or NACK.
    package mutating func answer(
        _ connection: ConnectionID, _ request: STOMPAckRequest, accepts: Bool, at now: Int64,
        into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        // An answer to what is not held any more (answered before, or given back) does no harm.
        guard let (consumer, delivery) = find(connection, request) else { return }
        let requeues = request.headers["requeue"].map { $0.utf8.elementsEqual("true".utf8) }
        guard let transaction = request.transaction else {
            return endDeliveries(consumer, delivery, accepts: accepts, requeues: requeues, at: now, into: &effects)
        }
        let step = Transaction.Step.answer(
            delivery: delivery, consumer: consumer, accepts: accepts, requeues: requeues)
        try addStep(step, size: 64, to: transaction, of: connection)
    }

    // MARK: Transactions

    package mutating func begin(_ connection: ConnectionID, _ transaction: String) throws(STOMPRefusal) {
        let name = ByteKey(transaction)
        guard stompConnections[connection]?.transactions[name] == nil else {
            throw STOMPRefusal(message: "the transaction '\(transaction)' has begun already")
        }
        guard (stompConnections[connection]?.transactions.count ?? 0) < 1_000 else {
            throw STOMPRefusal(message: "1000 transactions are open already; end some")
        }
        stompConnections[connection]?.transactions[name] = Transaction()
    }

    package mutating func commit(
        _ connection: ConnectionID, _ transaction: String, at now: Int64, into effects: inout RouterEffects
    ) throws(STOMPRefusal) {
        let steps = try take(transaction, of: connection).steps
        // Whole or not at all (STOMP 1.2 "COMMIT").
        defer { committedQueues = [] }
        try makeQueues(for: steps, of: connection)
        for step in steps {
            switch step {
            case .send(let message, let destination):
                try send(connection, message, to: destination, at: now, into: &effects)
            case .answer(let delivery, let consumer, let accepts, let requeues):
                endDeliveries(consumer, delivery, accepts: accepts, requeues: requeues, at: now, into: &effects)
            }
        }
    }

    /// Makes the queues for the messages of a transaction that have none, or none of them.
    private mutating func makeQueues(for steps: [Transaction.Step], of connection: ConnectionID) throws(STOMPRefusal) {
        var missing: [ByteKey: Destination] = [:]
        for case .send(_, let destination) in steps where destination.kind != .topic {
            let name = queueName(destination, for: connection)
            committedQueues.insert(name)
            guard queues[name] == nil else { continue }
            try refuseIfGone(destination)
            missing[name] = destination
        }
        try makeRoom(forQueues: missing.count)
        for (name, destination) in missing { try makeQueue(destination, name, for: connection) }
    }

    /// A temporary queue of another connection is made by that one alone.
    private func refuseIfGone(_ destination: Destination) throws(STOMPRefusal) {
        if destination.text.utf8.starts(with: Self.remotePrefix.utf8) {
            throw STOMPRefusal(message: "the temporary queue '\(destination.text)' is gone")
        }
    }

    /// Forgets what was sent and answered in a transaction; messages answered there are still held.
    package mutating func abort(_ connection: ConnectionID, _ transaction: String) throws(STOMPRefusal) {
        _ = try take(transaction, of: connection)
    }

    private mutating func take(
        _ transaction: String, of connection: ConnectionID
    ) throws(STOMPRefusal) -> Transaction {
        let found = stompConnections[connection]?.transactions.removeValue(forKey: ByteKey(transaction))
        guard let found else { throw STOMPRefusal(message: "there is no transaction '\(transaction)'") }
        return found
    }

    private mutating func addStep(
        _ step: Transaction.Step, size: Int, to transaction: String, of connection: ConnectionID
    ) throws(STOMPRefusal) {
        let name = ByteKey(transaction)
        let open = stompConnections[connection]?.transactions[name].map { ($0.steps.count, $0.bytes) }
        guard let (count, bytes) = open else {
            throw STOMPRefusal(message: "there is no transaction '\(transaction)'; BEGIN comes first")
        }
        guard count < limits.maximumQueueMessages, bytes + size <= limits.maximumQueueBytes else {
            throw STOMPRefusal(
                message:
                    "the transaction '\(transaction)' is larger than \(limits.maximumQueueMessages) frames or \(limits.maximumQueueBytes) bytes"
            )
        }
        stompConnections[connection]?.transactions[name]?.steps.append(step)
        stompConnections[connection]?.transactions[name]?.bytes += size
    }

    // MARK: Queues

    static let remotePrefix = "/remote-temp-queue/"

    /// The key of a queue. A temporary one is named after its connection, so that others can answer to it.
    func queueName(_ destination: Destination, for connection: ConnectionID) -> ByteKey {
        switch destination.kind {
        case .temporaryQueue: ByteKey("\(Self.remotePrefix)\(connection):\(destination.name)")
        default: ByteKey(destination.text)
        }
    }

    /// The name under which everybody can send to a client's `reply-to`.
    package func globalReplyTo(_ text: String, of connection: ConnectionID) -> String {
        guard let destination = Destination(text), destination.kind == .temporaryQueue else { return text }
        return queueName(destination, for: connection).text
    }

    /// A queue of that name; a temporary one belongs to the connection.
    mutating func makeQueue(
        _ destination: Destination, _ name: ByteKey, for connection: ConnectionID
    ) throws(STOMPRefusal) {
        try makeQueue(name)
        guard destination.kind == .temporaryQueue else { return }
        queues[name]?.owner = connection
        stompConnections[connection]?.queues.append(name)
    }

    /// A queue of that name.
    ///
    /// - Parameters:
    ///   - topics: the topics whose messages it collects; nil for a queue that clients send to.
    ///   - selector: which of these messages it collects.
    mutating func makeQueue(
        _ name: ByteKey, collecting topics: Destination? = nil, _ selector: Selector? = nil
    ) throws(STOMPRefusal) {
        try makeRoom(forQueues: 1)
        var queue = QueueRecord()
        queue.topics = topics
        queue.selector = selector
        queues[name] = queue
        if let topics {
            topicQueues.insert(name, topics)
            forgetRoutes()
        }
        for index in wildcardConsumers {
            if let consumer = consumers[index], isMatch(consumer, name) { connect(index, to: name) }
        }
    }

    /// Removes a queue with what waits there.
    mutating func removeQueue(_ name: ByteKey) {
        guard let queue = queues.removeValue(forKey: name) else { return }
        for index in queue.consumers {
            consumers[index]?.queues.remove(name)
            consumers[index]?.passedOver.removeAll { $0 == name }
        }
        guard let topics = queue.topics else { return }
        topicQueues.remove(name, topics)
        forgetRoutes()
    }

    private mutating func makeRoom(forQueues count: Int) throws(STOMPRefusal) {
        if queues.count + count > limits.maximumSessions { removeIdleQueues() }
        guard queues.count + count <= limits.maximumSessions else {
            throw STOMPRefusal(message: "\(limits.maximumSessions) queues exist already")
        }
    }

    private mutating func removeIdleQueues() {
        // What has not been acknowledged comes back to its queue.
        let held = consumers.values.reduce(into: Set()) { $0.formUnion($1.held.queues) }
        let idle = queues.filter { name, queue in
            !committedQueues.contains(name) && !held.contains(name) && queue.isEmpty && queue.topics == nil
                && queue.owner == nil && queue.consumers.allSatisfy { wildcardConsumers.contains($0) }
        }
        for name in idle.keys { removeQueue(name) }
    }

    mutating func enqueue(_ message: Message, in name: ByteKey, at now: Int64, into effects: inout RouterEffects) {
        nextMessage += 1
        queues[name]?.insert(QueuedMessage(message: message, number: nextMessage))
        dispatch(name, at: now, into: &effects)
        effects.dropped += queues[name]?.dropExcess(over: limits) ?? 0
    }

    /// Returns messages to their places in the queues that they were taken from.
    mutating func giveBack(_ entries: [(entry: QueuedMessage, queue: ByteKey)]) {
        for (entry, name) in entries { queues[name]?.insert(entry) }
    }

    /// Hands messages to consumers in turns, as long as any has room.
    mutating func dispatch(_ name: ByteKey, at now: Int64, into effects: inout RouterEffects) {
        guard var queue = queues[name], !queue.isEmpty else { return }
        // The dictionary lets go, so that the queue is changed in place.
        queues[name] = QueueRecord()
        var passedOver: [Int] = []
        while let (entry, consumer) = queue.next(passedOver: &passedOver, where: { hasRoom($0) }) {
            if entry.message.expiry <= now {
                effects.dropped += 1
            } else {
                deliver(entry, to: consumer, from: name, into: &effects)
            }
        }
        queues[name] = queue
        for consumer in passedOver { consumers[consumer]?.passedOver.append(name) }
    }

    /// A consumer has room again: it gets its turn in the queues that have passed it over, as long as it has room.
    private mutating func resumeTurns(of index: Int, at now: Int64, into effects: inout RouterEffects) {
        while hasRoom(index), let name = consumers[index]?.passedOver.popFirst() {
            queues[name]?.addTurn(of: index)
            dispatch(name, at: now, into: &effects)
        }
    }

    private func hasRoom(_ index: Int) -> Bool {
        guard let connection = consumers[index]?.connection else { return false }
        return consumers[index]?.hasCredit == true && stompConnections[connection]?.isFull == false
    }

    /// Hands one message to one consumer.
    mutating func deliver(
        _ entry: QueuedMessage, to index: Int, from queue: ByteKey?, into effects: inout RouterEffects
    ) {
        guard let consumer = consumers[index] else { return }
        var entry = entry
        entry.deliveries += 1
        var number: UInt64 = 0
        // What is acknowledged always comes from a queue.
        let isHeld = consumer.ackMode != .auto && queue != nil
        if isHeld {
            nextDelivery += 1
            number = nextDelivery
        }
        let destination =
            switch consumer.destination.kind {
            case .temporaryQueue: consumer.destination.text
            case .queue: entry.message.topic
            case .topic: TopicNaming.destination(ofTopic: entry.message.topic)
            }
        effects.messages.append(
            STOMPDelivery(
                connection: consumer.connection, consumer: index, subscriptionID: consumer.id,
                destination: destination, entry: entry, delivery: number, queue: queue))
        if isHeld, let queue { hold(Unacknowledged(delivery: number, entry: entry, queue: queue), by: index) }
    }

    // A function of its own: a copy of the consumer would make this one copy all that it holds.
    private mutating func hold(_ message: Unacknowledged, by index: Int) { consumers[index]?.held.append(message) }

    // MARK: Room

    /// A connection could not take messages that were for it: those of queues wait there again, or go to others.
    package mutating func takeBack(_ refused: [STOMPDelivery], at now: Int64, into effects: inout RouterEffects) {
        var names: Set<ByteKey> = []
        var entries: [(QueuedMessage, ByteKey)] = []
        for delivery in refused {
            if delivery.delivery != 0 {
                _ = consumers[delivery.consumer]?.held.remove(delivery.delivery)
            }
            guard let queue = delivery.queue, queues[queue] != nil else {
                effects.dropped += 1
                continue
            }
            stompConnections[delivery.connection]?.isFull = true
            var entry = delivery.entry
            entry.deliveries -= 1
            entries.append((entry, queue))
            names.insert(queue)
        }
        giveBack(entries)
        for name in names.sorted() { dispatch(name, at: now, into: &effects) }
    }

    /// A connection has room again.
    package mutating func hasRoomAgain(_ connection: ConnectionID, at now: Int64, into effects: inout RouterEffects) {
        guard stompConnections[connection]?.isFull == true else { return }
        stompConnections[connection]?.isFull = false
        for index in stompConnections[connection]?.consumers ?? [] {
            resumeTurns(of: index, at: now, into: &effects)
        }
    }

    // MARK: Acknowledgements

    /// The message that an ACK or NACK means, in the terms of each version.
    private func find(_ connection: ConnectionID, _ request: STOMPAckRequest) -> (consumer: Int, delivery: UInt64)? {
        if let id = request.id {
            let parts = id.utf8.split(separator: UInt8(ascii: "-")).map { UInt64(String(Substring($0))) }
            if parts.count == 2, let first = parts[0], let delivery = parts[1], let consumer = Int(exactly: first),
                consumers[consumer]?.connection == connection
            {
                return (consumer, delivery)
            }
        }
        guard let number = request.messageID.flatMap(STOMPDelivery.number(ofMessageID:)) else { return nil }
        func find(in consumer: Int) -> (consumer: Int, delivery: UInt64)? {
            consumers[consumer]?.held.delivery(ofMessage: number).map { (consumer, $0) }
        }
        guard let id = request.subscription else {
            return stompConnections[connection]?.consumers.lazy.compactMap(find(in:)).first
        }
        return stompConnections[connection]?.consumersByID[ByteKey(id)].flatMap(find(in:))
    }

    /// The queue that rejected messages are moved to. It is made if there is room for it; otherwise this is nil.
    private var deadLetterQueue: ByteKey? {
        mutating get {
            guard case .deadLetterQueue(let text) = refused else { return nil }
            let name = ByteKey(text)
            if queues[name] == nil { try? makeQueue(name) }
            return queues[name] == nil ? nil : name
        }
    }

    /// Carries out an ACK or NACK.
    private mutating func endDeliveries(
        _ index: Int, _ delivery: UInt64, accepts: Bool, requeues: Bool?, at now: Int64,
        into effects: inout RouterEffects
    ) {
        // In mode client the answer is for all up to this one (STOMP 1.2 "ACK").
        let settled =
            consumers[index]?.ackMode == .client
            ? consumers[index]?.held.removeAll(through: delivery)
            : consumers[index]?.held.remove(delivery).map { [$0] }
        guard let settled, !settled.isEmpty else { return }
        var names: Set<ByteKey> = []
        if !accepts {
            let comesBack = { [refused] (held: Unacknowledged) in
                requeues ?? (refused == .redeliverOnce && !held.entry.wasRejected)
            }
            for held in settled.lazy.filter(comesBack) {
                var entry = held.entry
                entry.wasRejected = true
                giveBack([(entry, held.queue)])
                names.insert(held.queue)
            }
            for held in settled where !comesBack(held) {
                if let dead = deadLetterQueue, dead != held.queue {
                    enqueue(held.entry.message.moved(to: dead.text), in: dead, at: now, into: &effects)
                } else {
                    effects.dropped += 1
                }
            }
        }
        // Others may take what came back.
        for name in names.sorted() { dispatch(name, at: now, into: &effects) }
        resumeTurns(of: index, at: now, into: &effects)
    }
}

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
        try addStep(.send(message, destination: destination), size: message.size, to: transaction, of: connection)
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
        guard let open = stompConnections[connection]?.transactions[name] else {
            throw STOMPRefusal(message: "there is no transaction '\(transaction)'; BEGIN comes first")
        }
        guard open.steps.count < limits.maximumQueueMessages, open.bytes + size <= limits.maximumQueueBytes else {
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
        if destination.kind == .temporaryQueue { queues[name]?.owner = connection }
    }

    mutating func makeQueue(_ name: ByteKey) throws(STOMPRefusal) {
        try makeRoom(forQueues: 1)
        var queue = QueueRecord()
        for index in wildcardConsumers {
            if let consumer = consumers[index], isMatch(consumer, name) { queue.consumers.append(index) }
        }
        queues[name] = queue
    }

    private mutating func makeRoom(forQueues count: Int) throws(STOMPRefusal) {
        if queues.count + count > limits.maximumSessions { removeIdleQueues() }
        guard queues.count + count <= limits.maximumSessions else {
            throw STOMPRefusal(message: "\(limits.maximumSessions) queues exist already")
        }
    }

    private mutating func removeIdleQueues() {
        // What has not been acknowledged comes back to its queue.
        let held = Set(consumers.values.flatMap { $0.unacknowledged.map(\.queue) })
        let idle = queues.filter { name, queue in
            !committedQueues.contains(name) && !held.contains(name) && queue.messages.isEmpty && queue.topics == nil
                && queue.owner == nil && queue.consumers.allSatisfy { wildcardConsumers.contains($0) }
        }
        for name in idle.keys { queues[name] = nil }
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
        guard var queue = queues[name], !queue.messages.isEmpty, !queue.consumers.isEmpty else { return }
        // The dictionary lets go, so that the queue is changed in place.
        queues[name]?.messages = []
        var kept: [QueuedMessage] = []
        var next = 0
        while next < queue.messages.count {
            let entry = queue.messages[next]
            if entry.message.expiry <= now {
                effects.dropped += 1
            } else {
                let turns = queue.consumers.indices.map { (queue.cursor + $0) % queue.consumers.count }
                let ready = turns.filter { hasRoom(queue.consumers[$0]) }
                guard !ready.isEmpty else { break }
                guard let turn = ready.first(where: { consumers[queue.consumers[$0]]?.accepts(entry.message) ?? false })
                else {
                    kept.append(entry)
                    next += 1
                    continue
                }
                queue.cursor = (turn + 1) % queue.consumers.count
                deliver(entry, to: queue.consumers[turn], from: name, into: &effects)
            }
            queue.bytes -= entry.message.size
            next += 1
        }
        queue.messages.removeFirst(next)
        if !kept.isEmpty { queue.messages.insert(contentsOf: kept, at: 0) }
        queues[name] = queue
    }

    private func hasRoom(_ index: Int) -> Bool {
        guard let consumer = consumers[index] else { return false }
        return consumer.hasCredit && stompConnections[consumer.connection]?.isFull == false
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
        if consumer.ackMode != .auto, let queue {
            nextDelivery += 1
            number = nextDelivery
            consumers[index]?.unacknowledged.append(Unacknowledged(delivery: number, entry: entry, queue: queue))
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
    }

    // MARK: Room

    /// A connection could not take messages that were for it: those of queues wait there again, or go to others.
    package mutating func takeBack(_ refused: [STOMPDelivery], at now: Int64, into effects: inout RouterEffects) {
        var names: [ByteKey] = []
        var entries: [(QueuedMessage, ByteKey)] = []
        for delivery in refused {
            if delivery.delivery != 0 {
                consumers[delivery.consumer]?.unacknowledged.removeAll { $0.delivery == delivery.delivery }
            }
            guard let queue = delivery.queue, queues[queue] != nil else {
                effects.dropped += 1
                continue
            }
            stompConnections[delivery.connection]?.isFull = true
            var entry = delivery.entry
            entry.deliveries -= 1
            entries.append((entry, queue))
            if !names.contains(queue) { names.append(queue) }
        }
        giveBack(entries)
        for name in names { dispatch(name, at: now, into: &effects) }
    }

    /// A connection has room again.
    package mutating func hasRoomAgain(_ connection: ConnectionID, at now: Int64, into effects: inout RouterEffects) {
        guard stompConnections[connection]?.isFull == true else { return }
        stompConnections[connection]?.isFull = false
        for index in stompConnections[connection]?.consumers ?? [] {
            guard let consumer = consumers[index], consumer.consumesQueues else { continue }
            for name in queueNames(of: consumer, index) { dispatch(name, at: now, into: &effects) }
        }
    }

    // MARK: Acknowledgements

    /// The message that an ACK or NACK means, in the terms of each version.
    private func find(_ connection: ConnectionID, _ request: STOMPAckRequest) -> (consumer: Int, delivery: UInt64)? {
        let mine = stompConnections[connection]?.consumers ?? []
        if let id = request.id {
            let parts = id.utf8.split(separator: UInt8(ascii: "-")).map { UInt64(String(Substring($0))) }
            if parts.count == 2, let first = parts[0], let delivery = parts[1], let consumer = Int(exactly: first),
                mine.contains(consumer)
            {
                return (consumer, delivery)
            }
        }
        guard let messageID = request.messageID else { return nil }
        for index in mine {
            guard let consumer = consumers[index] else { continue }
            if let id = request.subscription, !consumer.id.hasSameBytes(as: id) { continue }
            let held = consumer.unacknowledged.first {
                "loopback-\($0.entry.number)".hasSameBytes(as: messageID)
            }
            if let held { return (index, held.delivery) }
        }
        return nil
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
        guard let consumer = consumers[index] else { return }
        // In mode client the answer is for all up to this one (STOMP 1.2 "ACK").
        let isMeant = { (held: Unacknowledged) in
            consumer.ackMode == .client ? held.delivery <= delivery : held.delivery == delivery
        }
        let settled = consumer.unacknowledged.filter(isMeant)
        guard !settled.isEmpty else { return }
        consumers[index]?.unacknowledged.removeAll(where: isMeant)
        if !accepts {
            let comesBack = { [refused] (held: Unacknowledged) in
                requeues ?? (refused == .redeliverOnce && !held.entry.wasRejected)
            }
            giveBack(
                settled.filter(comesBack).map { held in
                    var entry = held.entry
                    entry.wasRejected = true
                    return (entry, held.queue)
                })
            for held in settled where !comesBack(held) {
                if let dead = deadLetterQueue, dead != held.queue {
                    enqueue(held.entry.message.moved(to: dead.text), in: dead, at: now, into: &effects)
                } else {
                    effects.dropped += 1
                }
            }
        }
        for name in queueNames(of: consumer, index) { dispatch(name, at: now, into: &effects) }
    }
}

import MessagingWire
import STOMPCore

/// The messages of one connection that a client may answer.
struct DeliveredMessages: Sendable {
    /// A message that waits for ACK or NACK.
    struct Waiting: Sendable {
        let subscription: ByteKey
        /// Deliveries that are unanswered.
        var count = 1
        /// The open transaction in which it was answered.
        var transaction: ByteKey?
    }

    /// By what an answer names.
    var waiting: [ByteKey: Waiting] = [:]
    /// Those of one subscription in the order of their delivery.
    var order: [ByteKey: [ByteKey]] = [:]
    var answered: Set<ByteKey> = []
    /// The last messages that need no answer.
    var automatic: [ByteKey] = []

    private static let remembered = 50_000

    mutating func add(_ key: ByteKey, of subscription: ByteKey) {
        answered.remove(key)
        if waiting[key]?.transaction == nil, waiting[key] != nil {
            waiting[key]?.count += 1
        } else {
            waiting[key] = Waiting(subscription: subscription)
            order[subscription, default: []].append(key)
        }
    }

    mutating func addAutomatic(_ key: ByteKey) {
        automatic.append(key)
        if automatic.count > 100 { automatic.removeFirst() }
    }

    /// Answers a message, and all that were delivered before it if `isCumulative`.
    mutating func answer(_ key: ByteKey, isCumulative: Bool, in transaction: ByteKey?) {
        guard let message = waiting[key], let list = order[message.subscription] else { return }
        guard let place = list.firstIndex(of: key) else { return }
        for key in isCumulative ? list[...place] : list[place...place] where waiting[key]?.transaction == nil {
            if let transaction { waiting[key]?.transaction = transaction } else { remove(key) }
        }
    }

    private mutating func remove(_ key: ByteKey) {
        guard var message = waiting[key] else { return }
        message.count -= 1
        waiting[key] = message.count > 0 ? message : nil
        guard message.count == 0 else { return }
        order[message.subscription]?.removeAll { $0 == key }
        if answered.count >= Self.remembered { answered = [] }
        answered.insert(key)
    }

    /// A transaction has ended, and what was answered in it has been, or waits again.
    mutating func end(_ transaction: ByteKey, isCommitted: Bool) {
        for (key, message) in waiting where message.transaction == transaction {
            waiting[key]?.transaction = nil
            if isCommitted { remove(key) }
        }
    }
}

/// Subscriptions, messages and transactions.
extension STOMPJudgedConnection {
    // MARK: Subscriptions

    /// What names a subscription: its id, or in 1.0 its destination.
    private func key(of frame: STOMPFrame) -> ByteKey? {
        if let id = frame.headers["id"] { return ByteKey("i" + id) }
        return version == .v10 ? frame.headers["destination"].map { ByteKey("d" + $0) } : nil
    }

    mutating func judge(subscribe frame: STOMPFrame) {
        let destination = frame.headers["destination"]
        if destination == nil { broke(.destinationMissing, "The header destination is missing.") }
        var mode = STOMPAckMode.auto
        if let name = frame.headers["ack"] {
            let known = STOMPAckMode(name)
            if known == nil || known == .clientIndividual && version == .v10 {
                broke(.ackModeUnknown, "STOMP \(version) has no ack mode '\(OneLine.text(name, limit: 40))'.")
            }
            mode = known ?? .auto
        }
        guard let key = key(of: frame) else {
            if version != .v10 { broke(.subscriptionIDMissing, "The header id is missing.") }
            return
        }
        if subscriptions[key] != nil, frame.headers["id"] != nil {
            broke(.subscriptionIDInUse, "A subscription of this connection has the same id.")
        }
        subscriptions[key] = Subscription(destination: destination ?? "", mode: mode)
    }

    mutating func judge(unsubscribe frame: STOMPFrame) {
        guard let key = key(of: frame) else {
            return broke(.subscriptionIDMissing, "The header id is missing.")
        }
        if subscriptions.removeValue(forKey: key) == nil {
            broke(.subscriptionUnknown, "The connection has no such subscription.")
        }
    }

    // MARK: Messages

    mutating func delivered(_ frame: STOMPFrame) {
        guard let id = frame.headers["message-id"] else { return }
        let subscription =
            frame.headers["subscription"].map { ByteKey("i" + $0) }
            ?? ByteKey("d" + (frame.headers["destination"] ?? ""))
        let key = Self.key(
            version, ack: frame.headers["ack"] ?? id, message: id, subscription: frame.headers["subscription"] ?? "")
        // Without a subscription of this name its mode is not known.
        if subscriptions[subscription]?.mode == .auto {
            messages.addAutomatic(key)
        } else {
            messages.add(key, of: subscription)
        }
    }

    /// What ACK and NACK of a version name.
    private static func key(_ version: STOMPVersion, ack: String, message: String, subscription: String) -> ByteKey {
        switch version {
        case .v10: ByteKey(message)
        case .v11: ByteKey(subscription + "\0" + message)
        case .v12: ByteKey(ack)
        }
    }

    mutating func judge(answer frame: STOMPFrame) {
        if frame.command == .nack, version == .v10 { broke(.nackInVersion10, "STOMP 1.0 has no NACK.") }
        let transaction = checkTransaction(of: frame)
        let (id, message, subscription) =
            (frame.headers["id"], frame.headers["message-id"], frame.headers["subscription"])
        let needed: [String?] =
            switch version {
            case .v10: [message]
            case .v11: [message, subscription]
            case .v12: [id]
            }
        guard needed.allSatisfy({ $0 != nil }) else {
            let names = version == .v12 ? "id" : version == .v11 ? "message-id and subscription" : "message-id"
            return broke(.ackHeaderMissing, "STOMP \(version) needs the header \(names).")
        }
        let key = Self.key(version, ack: id ?? "", message: message ?? "", subscription: subscription ?? "")
        guard let found = messages.waiting[key] else {
            if messages.automatic.contains(key) {
                return broke(.ackInAutoMode, "The message is of a subscription in the mode auto.")
            }
            return messages.answered.contains(key)
                ? broke(.ackTwice, "The message was answered before.")
                : broke(.ackOfUnknownMessage, "The server has delivered no such message on this connection.")
        }
        if found.transaction != nil {
            return broke(.ackTwice, "The message was answered in a transaction that is open.")
        }
        let isCumulative = subscriptions[found.subscription]?.mode == .client
        messages.answer(key, isCumulative: isCumulative, in: transaction)
    }

    // MARK: Transactions

    /// The transaction that a SEND, ACK or NACK is part of.
    @discardableResult
    mutating func checkTransaction(of frame: STOMPFrame) -> ByteKey? {
        guard let name = frame.headers["transaction"] else { return nil }
        if transactions.contains(ByteKey(name)) { return ByteKey(name) }
        broke(.transactionUnknown, "The connection has no such transaction open.")
        return nil
    }

    mutating func judge(transaction frame: STOMPFrame) {
        guard let key = frame.headers["transaction"].map({ ByteKey($0) }) else {
            return broke(.transactionMissing, "The header transaction is missing.")
        }
        if frame.command == .begin {
            if !transactions.insert(key).inserted {
                broke(.transactionInUse, "The transaction is open.")
            } else if !begun.insert(key).inserted {
                broke(.transactionReused, "An earlier transaction of this connection had the same name.")
            }
        } else if transactions.remove(key) == nil {
            broke(.transactionUnknown, "The connection has no such transaction open.")
        } else {
            messages.end(key, isCommitted: frame.command == .commit)
        }
    }
}

import MessagingWire

/// What a consumer has been given and has not acknowledged. Each message is found by the number of its delivery, which its
/// `ack` header has, or by its own number, which its `message-id` has.
struct HeldMessages: Sendable {
    private var byDelivery: [UInt64: Unacknowledged] = [:]
    /// The deliveries by the numbers of their messages: a consumer holds a message once.
    private var deliveries: [UInt64: UInt64] = [:]
    /// The deliveries in their order, with some that have ended.
    private var order = Ring<UInt64>()

    var count: Int { byDelivery.count }
    /// The queues that the messages came from.
    var queues: Set<ByteKey> { Set(byDelivery.values.map(\.queue)) }

    func delivery(ofMessage number: UInt64) -> UInt64? { deliveries[number] }

    mutating func append(_ message: Unacknowledged) {
        byDelivery[message.delivery] = message
        deliveries[message.entry.number] = message.delivery
        order.append(message.delivery)
        if order.count > 2 * count + 64 { order.removeAll { byDelivery[$0] == nil } }
    }

    mutating func remove(_ delivery: UInt64) -> Unacknowledged? {
        guard let message = byDelivery.removeValue(forKey: delivery) else { return nil }
        deliveries[message.entry.number] = nil
        return message
    }

    /// Removes the messages up to a delivery, oldest first; all of them without one.
    mutating func removeAll(through last: UInt64 = .max) -> [Unacknowledged] {
        var removed: [Unacknowledged] = []
        while let delivery = order.first, delivery <= last {
            _ = order.popFirst()
            if let message = remove(delivery) { removed.append(message) }
        }
        return removed
    }
}

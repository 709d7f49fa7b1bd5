import MQTTCore

/// Received messages whose acknowledgement waits for their subscriptions: until those with automatic acknowledgement have
/// room in their buffers, so that the server sends no more than the receivers can take, and until those with manual
/// acknowledgement that share the message have ended. Part of ``MQTTMachine``, under the link's lock; on the loop's thread,
/// which is the only one that may ask a route whether it has room.
struct MQTTWithheldMessages: Sendable {
    private struct Message: Sendable {
        let delivery: UInt64
        /// The subscriptions that received it and have not ended; one at least has automatic acknowledgement.
        var routes: [MQTTRoute]

        var waits: Bool { routes.contains { $0.acknowledgement == .manual || $0.isFull } }
    }

    private var messages: [Message] = []

    var isEmpty: Bool { messages.isEmpty }

    /// Acknowledges a message, unless a receiver does it manually or has no room. The engine writes the acknowledgements
    /// of one read together.
    mutating func acknowledge(
        _ delivery: UInt64, for routes: [MQTTRoute], _ engine: inout MQTTEngine, at now: Int64
    ) {
        let message = Message(delivery: delivery, routes: routes)
        guard message.waits else { return engine.markAcknowledged(delivery, at: now) }
        // If all receivers acknowledge manually, they decide when.
        guard routes.contains(where: { $0.acknowledgement == .automatic }) else { return }
        if messages.count >= 1024, messages.count == messages.capacity {
            // Remove messages that a subscription with manual acknowledgement has acknowledged meanwhile; the next time
            // when there are twice as many.
            removeAcknowledged(engine)
            messages.reserveCapacity(2 * messages.count)
        }
        messages.append(message)
    }

    /// A receiver has room again: acknowledges the messages that waited for it.
    mutating func acknowledge(_ engine: inout MQTTEngine, at now: Int64) {
        messages.removeAll { message in
            if message.waits { return false }
            engine.markAcknowledged(message.delivery, at: now)
            return true
        }
        engine.writeAnswers(at: now)
    }

    /// A subscription has ended: its messages wait for the others that received them.
    mutating func subscriptionEnded(_ route: MQTTRoute) {
        for index in messages.indices { messages[index].routes.removeAll { $0 === route } }
    }

    /// The messages that wait for subscriptions with automatic acknowledgement.
    var deliveries: Set<UInt64> { Set(messages.lazy.map(\.delivery)) }

    /// The connection has closed: the server sends messages of QoS 1 again. Messages of QoS 2 were delivered, and the
    /// engine does not deliver a repetition: it is acknowledged when there is room.
    mutating func connectionClosed(_ engine: borrowing MQTTEngine) { removeAcknowledged(engine) }

    private mutating func removeAcknowledged(_ engine: borrowing MQTTEngine) {
        messages = messages.filter { engine.awaitsAnswer($0.delivery) }
    }
}

import MQTTCore

/// Received messages whose acknowledgement waits until a subscription's buffer has room, so that the server sends no
/// more than the receivers can take. Part of ``MQTTMachine``, under the link's lock.
struct MQTTWithheldMessages: Sendable {
    private struct Message: Sendable {
        let delivery: UInt64
        /// The subscriptions that have to have room.
        let routes: [MQTTRoute]
    }

    private var messages: [Message] = []

    /// Acknowledges a message, unless a receiver does it manually or has no room. The engine writes the acknowledgements
    /// of one read together.
    mutating func acknowledge(
        _ delivery: UInt64, for routes: [MQTTRoute], _ engine: inout MQTTEngine, at now: Int64
    ) {
        for route in routes {
            if route.acknowledgement == .manual { return }
            if route.isFull {
                messages.append(Message(delivery: delivery, routes: routes))
                return
            }
        }
        engine.markAcknowledged(delivery, at: now)
    }

    /// A receiver has room again: acknowledges the messages that waited for it.
    mutating func acknowledge(_ engine: inout MQTTEngine, at now: Int64) {
        messages.removeAll { message in
            if message.routes.contains(where: { $0.isFull }) { return false }
            engine.markAcknowledged(message.delivery, at: now)
            return true
        }
        engine.writeAnswers(at: now)
    }

    /// The connection has closed: the server sends them again.
    mutating func removeAll() { messages.removeAll() }
}

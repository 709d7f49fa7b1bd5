package import MQTTCore
import Wire

/// A message as one MQTT subscriber is to get it.
package struct OutgoingPublish: Sendable {
    package var message: Message
    /// The lower of the message's and the subscription's quality of service.
    package var qos: QoS
    /// The RETAIN flag for this subscriber.
    package var retain: Bool
    /// The subscription identifiers of all its subscriptions that matched; 5.0 only.
    package var identifiers: [UInt32] = []
}

/// Messages that wait for one MQTT session: bounded by count and bytes, in order within QoS 0 and within QoS 1 and 2.
///
/// When it is full the oldest QoS 0 message is dropped, or the new message if no QoS 0 message is queued.
package struct SessionQueue: Sendable {
    private struct Entry {
        var number: UInt64
        var item: OutgoingPublish
    }

    private var unreliable = Ring<Entry>()
    private var reliable = Ring<Entry>()
    private var nextNumber: UInt64 = 0
    private let countLimit: Int
    private let byteLimit: Int
    private(set) var bytes = 0
    /// The number of messages that were dropped since the last call.
    private var dropped = 0

    package init(countLimit: Int, byteLimit: Int) {
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    package var count: Int { unreliable.count + reliable.count }
    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ item: OutgoingPublish) {
        while count >= countLimit || bytes + item.message.size > byteLimit {
            dropped += 1
            guard let victim = unreliable.popFirst() else { return }
            bytes -= victim.item.message.size
        }
        let entry = Entry(number: nextNumber, item: item)
        nextNumber += 1
        bytes += item.message.size
        if item.qos == .atMostOnce { unreliable.append(entry) } else { reliable.append(entry) }
    }

    /// Takes the oldest message out for which `canTake` holds, of those at the two heads.
    package mutating func popFirst(where canTake: (QoS) -> Bool) -> OutgoingPublish? {
        let reliableFirst = (reliable.first?.number ?? .max) < (unreliable.first?.number ?? .max)
        for takesReliable in [reliableFirst, !reliableFirst] {
            guard let head = takesReliable ? reliable.first : unreliable.first, canTake(head.item.qos) else { continue }
            _ = takesReliable ? reliable.popFirst() : unreliable.popFirst()
            bytes -= head.item.message.size
            return head.item
        }
        return nil
    }

    /// Forgets the QoS 0 messages, which do not outlive a connection.
    package mutating func removeUnreliable() {
        while let victim = unreliable.popFirst() { bytes -= victim.item.message.size }
    }

    /// How many messages were dropped since the last call.
    package mutating func takeDropped() -> Int {
        defer { dropped = 0 }
        return dropped
    }
}

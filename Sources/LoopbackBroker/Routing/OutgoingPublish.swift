package import MQTTCore
import MessagingWire

/// A message as one MQTT subscriber is to get it.
package struct OutgoingPublish: Sendable {
    package var message: Message
    /// The lower of the message's and the subscription's quality of service.
    package var qos: QoS
    /// The RETAIN flag for this subscriber.
    package var retain: Bool
    /// The subscription identifiers of all its subscriptions that matched; 5.0 only.
    package var identifiers: [UInt32] = []

    /// What it counts against the bound on a session's bytes.
    var size: Int { message.size + identifiers.count * MemoryLayout<UInt32>.size }
}

/// Messages that wait for one MQTT session: bounded by count and bytes, in order within QoS 0 and within QoS 1 and 2.
///
/// When it is full the oldest QoS 0 message is dropped, or the new message if no QoS 0 message is queued. A message that has
/// expired counts until its turn comes.
package struct SessionQueue: Sendable {
    private typealias Lane = Ring<(number: UInt64, item: OutgoingPublish)>

    private var unreliable = Lane()
    private var reliable = Lane()
    private var nextNumber: UInt64 = 0
    private let countLimit: Int
    private let byteLimit: Int
    package private(set) var count = 0
    private(set) var bytes = 0
    /// The number of messages that were dropped since the last call.
    private var dropped = 0

    package init(countLimit: Int, byteLimit: Int) {
        self.countLimit = countLimit
        self.byteLimit = byteLimit
    }

    package var isEmpty: Bool { count == 0 }

    package mutating func append(_ item: OutgoingPublish) {
        while !hasRoom(for: item) {
            dropped += 1
            guard let victim = unreliable.popFirst()?.item else { return }
            forget(victim)
        }
        if item.qos == .atMostOnce {
            unreliable.append((nextNumber, item))
        } else {
            reliable.append((nextNumber, item))
        }
        nextNumber += 1
        count += 1
        bytes += item.size
    }

    /// Takes the oldest message out for which `canTake` holds, of those at the two heads.
    package mutating func popFirst(where canTake: (QoS) -> Bool) -> OutgoingPublish? {
        let reliableFirst = (reliable.first?.number ?? .max) < (unreliable.first?.number ?? .max)
        for takesReliable in [reliableFirst, !reliableFirst] {
            let head = takesReliable ? reliable.first : unreliable.first
            guard let qos = head?.item.qos, canTake(qos) else { continue }
            let item = (takesReliable ? reliable.popFirst() : unreliable.popFirst())?.item
            if let item { forget(item) }
            return item
        }
        return nil
    }

    /// Forgets the QoS 0 messages, which do not outlive a connection.
    package mutating func removeUnreliable() {
        while let victim = unreliable.popFirst() { forget(victim.item) }
    }

    /// How many messages were dropped since the last call.
    package mutating func takeDropped() -> Int {
        defer { dropped = 0 }
        return dropped
    }

    // MARK: Parts

    private func hasRoom(for item: OutgoingPublish) -> Bool {
        count < countLimit && bytes + item.size <= byteLimit
    }

    private mutating func forget(_ item: OutgoingPublish) {
        count -= 1
        bytes -= item.size
    }
}

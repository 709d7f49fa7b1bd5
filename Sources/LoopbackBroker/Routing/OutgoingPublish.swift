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
/// When it is full the messages that have expired are dropped, then the oldest QoS 0 message, or the new message if no QoS 0
/// message is queued.
package struct SessionQueue: Sendable {
    private var unreliable = Lane()
    private var reliable = Lane()
    private var nextNumber: UInt64 = 0
    /// The numbers of messages that expire, also of some that have left the queue.
    private var expiries = Expiries<UInt64>()
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

    package mutating func append(_ item: OutgoingPublish, at now: Int64) {
        if !hasRoom(for: item) { removeExpired(at: now) }
        while !hasRoom(for: item) {
            dropped += 1
            guard let victim = unreliable.popFirst() else { return }
            forget(victim)
        }
        if item.qos == .atMostOnce {
            unreliable.append(item, number: nextNumber)
        } else {
            reliable.append(item, number: nextNumber)
        }
        expiries.insert(nextNumber, expiry: item.message.expiry)
        nextNumber += 1
        count += 1
        bytes += item.message.size
        if max(unreliable.length + reliable.length, expiries.count) > 2 * count + 64 { compact() }
    }

    /// Takes the oldest message out for which `canTake` holds, of those at the two heads.
    package mutating func popFirst(where canTake: (QoS) -> Bool) -> OutgoingPublish? {
        let reliableFirst = (reliable.first?.number ?? .max) < (unreliable.first?.number ?? .max)
        for takesReliable in [reliableFirst, !reliableFirst] {
            let head = takesReliable ? reliable.first : unreliable.first
            guard let qos = head?.item?.qos, canTake(qos) else { continue }
            let item = takesReliable ? reliable.popFirst() : unreliable.popFirst()
            if let item { forget(item) }
            return item
        }
        return nil
    }

    /// Forgets the QoS 0 messages, which do not outlive a connection.
    package mutating func removeUnreliable() {
        while let victim = unreliable.popFirst() { forget(victim) }
    }

    /// How many messages were dropped since the last call.
    package mutating func takeDropped() -> Int {
        defer { dropped = 0 }
        return dropped
    }

    // MARK: Parts

    private func hasRoom(for item: OutgoingPublish) -> Bool {
        count < countLimit && bytes + item.message.size <= byteLimit
    }

    private mutating func forget(_ item: OutgoingPublish) {
        count -= 1
        bytes -= item.message.size
    }

    private mutating func removeExpired(at now: Int64) {
        while let number = expiries.popExpired(at: now) {
            guard let item = reliable.remove(number) ?? unreliable.remove(number) else { continue }
            forget(item)
            dropped += 1
        }
    }

    /// Forgets what is left of messages that are gone.
    private mutating func compact() {
        reliable.compact()
        unreliable.compact()
        expiries = Expiries()
        for item in [reliable.items, unreliable.items].joined() {
            expiries.insert(item.number, expiry: item.expiry)
        }
    }

    /// Messages in the order of their numbers.
    private struct Lane: Sendable {
        struct Entry {
            var number: UInt64
            /// Nil once it was removed from the middle; never at the head.
            var item: OutgoingPublish?
        }

        private var entries = Ring<Entry>()

        var length: Int { entries.count }
        var first: Entry? { entries.first }
        var items: [(number: UInt64, expiry: Int64)] {
            (0..<entries.count).compactMap { position in
                entries[position].item.map { (entries[position].number, $0.message.expiry) }
            }
        }

        mutating func append(_ item: OutgoingPublish, number: UInt64) {
            entries.append(Entry(number: number, item: item))
        }

        mutating func popFirst() -> OutgoingPublish? {
            let item = entries.popFirst()?.item
            removeHead()
            return item
        }

        mutating func remove(_ number: UInt64) -> OutgoingPublish? {
            var (low, high) = (0, entries.count)
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].number < number { low = middle + 1 } else { high = middle }
            }
            guard low < entries.count, entries[low].number == number else { return nil }
            let item = entries[low].item
            entries[low].item = nil
            removeHead()
            return item
        }

        mutating func compact() {
            var left = Ring<Entry>()
            while let entry = entries.popFirst() {
                if entry.item != nil { left.append(entry) }
            }
            entries = left
        }

        private mutating func removeHead() {
            while let head = entries.first, head.item == nil { _ = entries.popFirst() }
        }
    }
}

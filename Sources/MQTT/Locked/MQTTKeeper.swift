import MQTTCore
import Messaging

/// Messages that were acknowledged and that nobody has subscribed to yet, oldest first; under the link's lock.
final class MQTTKeeper: @unchecked Sendable {
    // Sendable because it is only ever touched under the lock.
    struct Message: Sendable {
        let sequence: UInt64
        let topic: String
        /// As they are in PUBLISH, without their length.
        let properties: [UInt8]
        let payload: [UInt8]
        /// DUP, QoS and RETAIN as they came.
        let flags: UInt8
        let packetID: UInt16
        /// When it is too old, by the monotonic clock.
        let deadline: Int64
        /// The subscription that has it and has not confirmed it. Gone without that, the message is free again.
        weak var holder: MQTTRoute?

        var size: Int { topic.utf8.count + properties.count + payload.count }
    }

    struct Drop: Sendable {
        let sequence: UInt64
        let topic: String
        let reason: MQTTUnmatchedMessagePolicy.DropReason
    }

    /// Set in the delivery tokens of kept messages; the rest is the sequence.
    static let deliveryBit: UInt64 = 1 << 63

    let policy: MQTTUnmatchedMessagePolicy
    private(set) var messages: [Message] = []
    private(set) var bytes = 0
    /// When the first message that nobody holds is too old; `Int64.max` for never.
    private(set) var nextDeadline = Int64.max
    private var lastSequence: UInt64 = 0

    init(policy: MQTTUnmatchedMessagePolicy) {
        self.policy = policy
    }

    func nextSequence() -> UInt64 {
        lastSequence += 1
        return lastSequence
    }

    /// Adds a message; returns those that gave way to it, and the message itself if it is too large.
    func add(_ message: Message) -> [Drop] {
        lastSequence = max(lastSequence, message.sequence)
        guard message.size <= policy.maximumBytes else {
            return [Drop(sequence: message.sequence, topic: message.topic, reason: .bytes)]
        }
        var drops: [Drop] = []
        while !messages.isEmpty, messages.count >= policy.maximumMessages || bytes + message.size > policy.maximumBytes
        {
            let oldest = messages.removeFirst()
            bytes -= oldest.size
            // Who has it already misses nothing.
            guard oldest.holder == nil else { continue }
            let reason: MQTTUnmatchedMessagePolicy.DropReason =
                messages.count + 1 >= policy.maximumMessages ? .count : .bytes
            drops.append(Drop(sequence: oldest.sequence, topic: oldest.topic, reason: reason))
        }
        messages.append(message)
        bytes += message.size
        nextDeadline = min(nextDeadline, message.deadline)
        return drops
    }

    /// Takes out what is too old.
    func expire(at now: Int64) -> [Drop] {
        guard now >= nextDeadline else { return [] }
        var drops: [Drop] = []
        remove { message in
            guard message.holder == nil, message.deadline <= now else { return false }
            drops.append(Drop(sequence: message.sequence, topic: message.topic, reason: .age))
            return true
        }
        return drops
    }

    /// Gives a route what it matches and nobody holds; it stays here until that is confirmed.
    func hand(to route: MQTTRoute, _ matches: (String) -> Bool) -> [Message] {
        var handed: [Message] = []
        for index in messages.indices where messages[index].holder == nil && matches(messages[index].topic) {
            messages[index].holder = route
            handed.append(messages[index])
        }
        if !handed.isEmpty { findDeadline() }
        return handed
    }

    /// A route has its messages for good: returns their sequences.
    func confirm(_ route: MQTTRoute) -> [UInt64] {
        guard !messages.isEmpty else { return [] }
        return remove { $0.holder === route }
    }

    /// Somebody acknowledged a message.
    func confirm(_ sequence: UInt64) -> [UInt64] {
        remove { $0.sequence == sequence }
    }

    func removeAll() {
        remove { _ in true }
    }

    @discardableResult
    private func remove(_ isDone: (Message) -> Bool) -> [UInt64] {
        var removed: [UInt64] = []
        messages.removeAll { message in
            guard isDone(message) else { return false }
            removed.append(message.sequence)
            bytes -= message.size
            return true
        }
        findDeadline()
        return removed
    }

    private func findDeadline() {
        nextDeadline = messages.reduce(.max) { $1.holder == nil ? min($0, $1.deadline) : $0 }
    }
}

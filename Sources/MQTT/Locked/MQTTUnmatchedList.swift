import MQTTCore
import MessagingShell
import MessagingWire

/// The messages of ``MQTTUnmatchedMessages``, oldest first; those that are kept within the bounds of their policy.
final class MQTTUnmatchedList: @unchecked Sendable {
    // Sendable because it is used under the link's lock only.
    struct Message: Sendable {
        /// Until when a message is not acknowledged, and whose it was.
        struct Claim: Sendable {
            var deadline: Int64
            var filters: [String]
        }

        let sequence: UInt64
        let topic: String
        /// As in PUBLISH, without their length.
        let properties: [UInt8]
        let payload: [UInt8]
        let packetID: UInt16
        /// When it expires once it is kept, by the monotonic clock.
        let deadline: Int64
        /// DUP, QoS and RETAIN as received; DUP also if a receiver has taken the message.
        var flags: MQTTPublishFlags
        /// The engine's token; 0 for a message of an earlier process.
        var delivery: UInt64 = 0
        /// Nil once the message is acknowledged.
        var claim: Claim?
        /// Whether a subscription had it before.
        var wasLeft = false
        /// Whether a receiver of an earlier subscription took it.
        var isTaken = false
        /// The subscription that was handed the message and has not confirmed it. If it is released without that, the
        /// message is free again.
        weak var holder: MQTTRoute?
        /// The place of the message in a batch of the holder.
        weak var batch: MQTTBatch?
        var place = 0

        var isUnclaimed: Bool { claim != nil }
        var size: Int { topic.utf8.count + properties.count + payload.count }

        mutating func markTaken() {
            isTaken = true
            flags = MQTTPublishFlags(flags.qos, retain: flags.isRetained, isDuplicate: true)
        }

    }

    struct Drop: Sendable {
        let sequence: UInt64
        let topic: String
        let reason: MQTTUnmatchedMessagePolicy.DropReason
    }

    private let policy: MQTTUnmatchedMessagePolicy
    private(set) var messages: [Message] = []
    /// The bytes of all messages.
    private var bytes = 0
    /// The count and the bytes of acknowledged messages.
    private var keptCount = 0
    private var keptBytes = 0
    /// How many messages an earlier subscription has left.
    private var leftCount = 0
    /// When the first message without a holder expires or is acknowledged; `Int64.max` for never.
    private(set) var nextDeadline = Int64.max
    /// Until when the messages of a resumed session are unclaimed.
    var claimEnd = Int64.min
    private var lastSequence: UInt64 = 0

    init(policy: MQTTUnmatchedMessagePolicy) { self.policy = policy }

    var hasUnclaimed: Bool { keptCount < messages.count }
    var hasLeft: Bool { leftCount > 0 }

    // MARK: Messages

    /// The message of a record, with the next number.
    func makeMessage(_ record: MQTTMessageRecord, of bytes: RawSpan, topic: String, at now: Int64) -> Message {
        var properties = MQTTProperties()
        var deadline = now.advanced(byNanoseconds: policy.timeToLive.inNanoseconds)
        if !record.properties.isEmpty {
            properties = record.decodeProperties(in: bytes)
            properties.topicAlias = nil
            if let expiry = properties.messageExpiryInterval {
                deadline = min(deadline, now.advanced(byNanoseconds: Int64(expiry) * 1_000_000_000))
            }
        }
        return Message(
            sequence: max(lastSequence, MQTTStoreRecord.sequence(at: now)) + 1, topic: topic,
            properties: properties.publishBytes, payload: bytes.bytes(in: record.payload), packetID: record.packetID,
            deadline: deadline, flags: record.flags, delivery: record.delivery)
    }

    /// The same for a message that a subscription leaves behind.
    func makeMessage(_ left: MQTTManualMessages.Message, at now: Int64) -> Message {
        // A constant that is read in place. The bytes of an array of bytes: nothing to reinterpret.
        let bytes = left.batch.bytes
        return unsafe makeMessage(
            left.batch.records[left.place], of: bytes.span.bytes, topic: left.batch.topic(at: left.place), at: now)
    }

    /// Whether the bounds allow another message that is not acknowledged.
    func hasRoom(for message: Message) -> Bool {
        messages.count < policy.maximumMessages && bytes + message.size <= policy.maximumBytes
    }

    /// Adds a message; ``keepBounds()`` follows for a message that is acknowledged.
    func add(_ message: Message) {
        lastSequence = max(lastSequence, message.sequence)
        messages.append(message)
        bytes += message.size
        if message.wasLeft { leftCount += 1 }
        if !message.isUnclaimed { count(message, by: 1) }
        nextDeadline = min(nextDeadline, message.claim?.deadline ?? message.deadline)
    }

    private func count(_ kept: Message, by change: Int) {
        keptCount += change
        keptBytes += change * kept.size
    }

    /// Removes what the bounds do not allow: messages that are too large, and the oldest. Returns those that no subscription
    /// has received.
    func keepBounds() -> [Drop] {
        var drops: [Drop] = []
        func drop(_ isDone: (Message) -> MQTTUnmatchedMessagePolicy.DropReason?) {
            guard keptCount > policy.maximumMessages || keptBytes > policy.maximumBytes else { return }
            remove { message in
                guard !message.isUnclaimed, let reason = isDone(message) else { return false }
                // Its holder has received it.
                if message.holder == nil {
                    drops.append(Drop(sequence: message.sequence, topic: message.topic, reason: reason))
                }
                return true
            }
        }
        drop { [policy] in $0.size > policy.maximumBytes ? .bytes : nil }
        drop { [self] _ in
            keptCount > policy.maximumMessages ? .count : keptBytes > policy.maximumBytes ? .bytes : nil
        }
        return drops
    }

    /// Takes out the acknowledged messages that are too old.
    func expire(at now: Int64) -> [Drop] {
        guard now >= nextDeadline else { return [] }
        var drops: [Drop] = []
        remove { message in
            guard !message.isUnclaimed, message.holder == nil, message.deadline <= now else { return false }
            drops.append(Drop(sequence: message.sequence, topic: message.topic, reason: .age))
            return true
        }
        return drops
    }

    // MARK: Claims

    /// Ends the claims of the messages that no subscription has received.
    func endClaims() {
        for index in messages.indices where messages[index].isUnclaimed && !messages[index].wasLeft {
            messages[index].claim?.deadline = .min
        }
        findDeadline()
    }

    /// Ends the claims that are due, and returns their messages as they were.
    ///
    /// - Parameter keeping: whether the messages remain here, as acknowledged ones.
    func takeUnclaimed(at now: Int64, keeping: Bool) -> [Message] {
        var taken: [Message] = []
        for index in messages.indices {
            guard messages[index].holder == nil, let claim = messages[index].claim, claim.deadline <= now else {
                continue
            }
            taken.append(messages[index])
            guard keeping else { continue }
            messages[index].claim = nil
            count(messages[index], by: 1)
        }
        if !keeping, !taken.isEmpty {
            let sequences = Set(taken.map(\.sequence))
            remove { sequences.contains($0.sequence) }
        }
        findDeadline()
        return taken
    }

    // MARK: Subscriptions

    /// Makes a route the holder of the messages that match it and have no holder, and returns them.
    func hand(to route: MQTTRoute, _ matches: (String) -> Bool) -> [Message] {
        var handed: [Message] = []
        for index in messages.indices where messages[index].holder == nil && matches(messages[index].topic) {
            messages[index].holder = route
            messages[index].place = handed.count
            handed.append(messages[index])
        }
        if !handed.isEmpty { findDeadline() }
        return handed
    }

    /// The batch in which the holder of messages has them.
    func handed(_ batch: MQTTBatch) {
        for index in messages.indices where messages[index].holder === batch.route { messages[index].batch = batch }
    }

    /// A subscription has ended: the messages that it was handed and has not confirmed are free again.
    ///
    /// - Parameters:
    ///   - deadline: until when they are unclaimed if they are not acknowledged. Nil does not change that.
    ///   - filters: of the subscription.
    func release(_ route: MQTTRoute, claimedUntil deadline: Int64?, _ filters: [String]) {
        for index in messages.indices where messages[index].holder === route {
            let isUntaken = messages[index].batch.map { $0.place.index <= messages[index].place } ?? false
            messages[index].holder = nil
            messages[index].batch = nil
            if !isUntaken { messages[index].markTaken() }
            if let deadline, messages[index].isUnclaimed {
                messages[index].claim = .init(deadline: min(deadline, messages[index].deadline), filters: filters)
            }
        }
        findDeadline()
    }

    func removeAll() { remove { _ in true } }

    func remove(_ isDone: (Message) -> Bool) {
        messages.removeAll { message in
            guard isDone(message) else { return false }
            bytes -= message.size
            if message.wasLeft { leftCount -= 1 }
            if !message.isUnclaimed { count(message, by: -1) }
            return true
        }
        findDeadline()
    }

    private func findDeadline() {
        nextDeadline = messages.reduce(.max) { next, message in
            message.holder == nil ? min(next, message.claim?.deadline ?? message.deadline) : next
        }
    }
}

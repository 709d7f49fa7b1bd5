import MQTTCore
import Messaging
import Transport
import Wire

/// Messages of QoS 1 and 2 that were acknowledged although no subscription matched them, retained for the next
/// subscription that does. Part of ``MQTTMachine``, under the link's lock.
///
/// With a session store every end of such a message is noted there; the caller hands the engine's records to the journal
/// (``MQTTMachine/flushRecords()``).
struct MQTTUnmatchedMessages: Sendable {
    typealias Drop = MQTTUnmatchedList.Drop
    typealias Message = MQTTUnmatchedList.Message

    /// Set in the delivery tokens of these messages; the rest is the sequence number.
    static let deliveryBit: UInt64 = 1 << 63

    private let policy: Shared<MQTTUnmatchedMessagePolicy>
    /// Made for the first message.
    private var known: MQTTUnmatchedList?

    init(_ policy: Shared<MQTTUnmatchedMessagePolicy>) { self.policy = policy }

    var isOn: Bool { policy.value.isOn }
    var isEmpty: Bool { known?.messages.isEmpty ?? true }
    var count: Int { known?.messages.count ?? 0 }

    /// When the first of them expires; `Int64.max` for never.
    var nextDeadline: Int64 { known?.nextDeadline ?? .max }

    private var list: MQTTUnmatchedList {
        mutating get {
            if let known { return known }
            let made = MQTTUnmatchedList(policy: policy.value)
            known = made
            return made
        }
    }

    /// Retains a message and acknowledges it once it is stored. Returns the messages that were dropped for it.
    mutating func retain(
        _ record: MQTTMessageRecord, of bytes: RawSpan, topic: String, _ engine: inout MQTTEngine, at now: Int64
    ) -> [Drop] {
        let payload = bytes.bytes(in: record.payload)
        var properties = MQTTProperties()
        var deadline = now.advanced(byNanoseconds: policy.value.timeToLive.inNanoseconds)
        if !record.properties.isEmpty {
            properties = record.decodeProperties(in: bytes)
            properties.topicAlias = nil
            if let expiry = properties.messageExpiryInterval {
                deadline = min(deadline, now.advanced(byNanoseconds: Int64(expiry) * 1_000_000_000))
            }
        }
        let message = Message(
            sequence: list.nextSequence(), topic: topic, properties: properties.publishBytes, payload: payload,
            flags: record.flags, packetID: record.packetID, deadline: deadline)
        let drops = list.expire(at: now) + list.add(message)
        if engine.options.value.persists {
            let wallClock = deadline.advanced(byNanoseconds: engine.options.value.wallClockOffset) / 1_000_000
            engine.acknowledge(
                record.delivery,
                storing: .kept(
                    .init(
                        sequence: message.sequence, packetID: record.packetID, topic: topic, payload: payload,
                        qos: record.flags.qos, retain: record.flags.isRetained, properties: properties, time: wallClock)
                ), at: now)
        } else {
            engine.acknowledge(record.delivery, at: now)
        }
        noteEnds(drops.map(\.sequence), &engine)
        return drops
    }

    /// Takes out the messages that are too old.
    mutating func expire(at now: Int64, _ engine: inout MQTTEngine) -> [Drop] {
        let drops = known?.expire(at: now) ?? []
        noteEnds(drops.map(\.sequence), &engine)
        return drops
    }

    /// Gives a subscription the messages that match its filters; all of them without a filter. They stay here until
    /// they are confirmed.
    mutating func hand(to route: MQTTRoute) -> [Message] {
        guard let known, !known.messages.isEmpty else { return [] }
        let filters = route.requests.map { MQTTTopicFilter.shared($0.filter)?.filter ?? $0.filter }
        return known.hand(to: route) { topic in
            filters.isEmpty || filters.contains { MQTTTopicFilter.matches($0, topic: topic) }
        }
    }

    /// A subscription owns the messages that it was handed: forgets them.
    mutating func confirm(_ route: MQTTRoute, _ engine: inout MQTTEngine) {
        if let known { noteEnds(known.confirm(route), &engine) }
    }

    /// A message was acknowledged by its receiver: forgets it.
    mutating func confirm(delivery: UInt64, _ engine: inout MQTTEngine) {
        if let known { noteEnds(known.confirm(delivery & ~Self.deliveryBit), &engine) }
    }

    func removeAll() { known?.removeAll() }

    /// Restores what an earlier process retained, within the bounds of this one.
    mutating func restore(_ records: [MQTTStoreRecord], _ engine: inout MQTTEngine, at now: Int64) -> [Drop] {
        var drops: [Drop] = []
        for case .kept(let message) in records {
            // The wall clock may have been changed: no message is retained for longer than this process would.
            let longest = max(0, policy.value.timeToLive.inNanoseconds)
            let present = now.advanced(byNanoseconds: engine.options.value.wallClockOffset) / 1_000_000
            let (left, isFar) = max(0, message.time).subtractingReportingOverflow(present)
            let nanoseconds = isFar || left > longest / 1_000_000 ? longest : max(0, left) * 1_000_000
            drops += list.add(
                Message(
                    sequence: message.sequence, topic: message.topic, properties: message.properties.publishBytes,
                    payload: message.payload, flags: MQTTPublishFlags(message.qos, retain: message.retain),
                    packetID: message.packetID,
                    deadline: now.advanced(byNanoseconds: nanoseconds)))
        }
        drops += known?.expire(at: now) ?? []
        noteEnds(drops.map(\.sequence), &engine)
        return drops
    }

    /// Notes in the store that messages are retained no longer.
    private func noteEnds(_ sequences: [UInt64], _ engine: inout MQTTEngine) {
        guard engine.options.value.persists else { return }
        for sequence in sequences { engine.note(.keptFinished(sequence: sequence)) }
    }
}

/// The messages of ``MQTTUnmatchedMessages``, oldest first, within the bounds of their policy.
final class MQTTUnmatchedList: @unchecked Sendable {
    // Sendable because it is used under the link's lock only.
    struct Message: Sendable {
        let sequence: UInt64
        let topic: String
        /// As in PUBLISH, without their length.
        let properties: [UInt8]
        let payload: [UInt8]
        /// DUP, QoS and RETAIN as received.
        let flags: MQTTPublishFlags
        let packetID: UInt16
        /// When it expires, by the monotonic clock.
        let deadline: Int64
        /// The subscription that was handed the message and has not confirmed it. If it is released without that, the
        /// message is free again.
        weak var holder: MQTTRoute?

        var size: Int { topic.utf8.count + properties.count + payload.count }
    }

    struct Drop: Sendable {
        let sequence: UInt64
        let topic: String
        let reason: MQTTUnmatchedMessagePolicy.DropReason
    }

    private let policy: MQTTUnmatchedMessagePolicy
    private(set) var messages: [Message] = []
    private var bytes = 0
    /// When the first message without a holder expires; `Int64.max` for never.
    private(set) var nextDeadline = Int64.max
    private var lastSequence: UInt64 = 0

    init(policy: MQTTUnmatchedMessagePolicy) { self.policy = policy }

    func nextSequence() -> UInt64 {
        lastSequence += 1
        return lastSequence
    }

    /// Adds a message; returns the older ones that it displaced, and the message itself if it is too large.
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
            // Its holder has received it.
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

    /// Takes out the messages that are too old.
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

    /// Makes a route the holder of the messages that match it and have no holder, and returns them.
    func hand(to route: MQTTRoute, _ matches: (String) -> Bool) -> [Message] {
        var handed: [Message] = []
        for index in messages.indices where messages[index].holder == nil && matches(messages[index].topic) {
            messages[index].holder = route
            handed.append(messages[index])
        }
        if !handed.isEmpty { findDeadline() }
        return handed
    }

    /// Removes the messages of a holder; returns their sequence numbers.
    func confirm(_ route: MQTTRoute) -> [UInt64] {
        guard !messages.isEmpty else { return [] }
        return remove { $0.holder === route }
    }

    /// Removes the message with a sequence number; returns that number if the message was here.
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

import MessagingWire

/// Everything we sent, or still have to send, that has a packet identifier or waits for one.
///
/// Slots live in one array that is used over and over and are chained by their indexes, so that a publish in the
/// steady state takes no memory but the references to its topic and payload.
struct OutboundSlot: Sendable {
    enum Kind: UInt8, Sendable {
        case free
        /// Waits in the queue; with an identifier only if a store has recorded that.
        case queued
        /// Waits in the queue, and was sent in a session that the server has lost.
        case requeued
        /// PUBLISH was sent, PUBACK or PUBREC is awaited.
        case published
        /// PUBREC came, PUBCOMP is awaited.
        case received
    }

    var kind: Kind = .free
    /// The reason code of PUBREC, once that came.
    var received: UInt8 = 0
    var head = PublishHead(topic: "", flags: MQTTPublishFlags(.atMostOnce))
    var previous: Int32 = -1
    var next: Int32 = -1
    var token: UInt64 = 0
    /// When it came in.
    var time: Int64 = 0
    /// Increases with each message. Messages are ordered by it: as they were published or, where the newest is sent first, as
    /// they were sent.
    var sequence: UInt64 = 0
    /// The connection on which it holds a place of the window; 0 for none.
    var connection: UInt32 = 0
    /// The message may be sent when this ticket of the session store is done; 0 for none.
    var ticket: UInt64 = 0
    var payload: [UInt8] = []
    var properties = MQTTProperties()

    var isInQueue: Bool { kind == .queued || kind == .requeued }
    var isInFlight: Bool { kind == .published || kind == .received }

    /// What a queued message counts against the limit of bytes.
    var queuedBytes: Int { Self.queuedBytes(head, payload, properties) }

    /// When a message that waits to be sent expires; `Int64.max` for never. The time in the queue counts
    /// [MQTT 5.0 3.3.2-6]; with an interval of 0 seconds it may leave within the first second.
    var expiry: Int64 {
        guard !properties.isEmpty, let interval = properties.messageExpiryInterval else { return .max }
        return time.advanced(byNanoseconds: Int64(max(1, interval)) * 1_000_000_000)
    }

    /// The whole seconds that a message has been here for.
    func age(at now: Int64) -> UInt32 { UInt32(clamping: (now - time) / 1_000_000_000) }

    /// What it counts against the bytes that may leave in a second.
    var messageBytes: Int { head.topic.utf8.count + payload.count }

    /// Properties count as the bytes that they have in the packet.
    static func queuedBytes(_ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties) -> Int {
        head.topic.utf8.count + payload.count + properties.byteCount
    }

    // Fields that change together are set in one access to the array that holds the slot.

    mutating func fill(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, sequence: UInt64, token: UInt64,
        at now: Int64
    ) {
        self.sequence = sequence
        self.head = head
        self.token = token
        ticket = 0
        time = now
        self.payload = payload
        if !properties.isEmpty { self.properties = properties }
    }

    /// PUBLISH is written on this connection.
    mutating func markPublished(on connection: UInt32) {
        kind = .published
        self.connection = connection
    }

    mutating func clear() {
        kind = .free
        head.topic = ""
        payload = []
        if !properties.isEmpty { properties = MQTTProperties() }
    }
}

/// A chain of slots: first in, first out, with removal anywhere.
struct SlotChain: Sendable {
    private(set) var first: Int32 = -1
    private(set) var last: Int32 = -1
    // Small, because every engine has three chains.
    private var slotCount: Int32 = 0

    var count: Int { Int(slotCount) }

    mutating func append(_ index: Int32, _ slots: inout [OutboundSlot]) {
        slots[Int(index)].previous = last
        slots[Int(index)].next = -1
        if last >= 0 { slots[Int(last)].next = index } else { first = index }
        last = index
        slotCount += 1
    }

    mutating func prepend(_ index: Int32, _ slots: inout [OutboundSlot]) {
        slots[Int(index)].previous = -1
        slots[Int(index)].next = first
        if first >= 0 { slots[Int(first)].previous = index } else { last = index }
        first = index
        slotCount += 1
    }

    mutating func remove(_ index: Int32, _ slots: inout [OutboundSlot]) {
        let previous = slots[Int(index)].previous
        let next = slots[Int(index)].next
        if previous >= 0 { slots[Int(previous)].next = next } else { first = next }
        if next >= 0 { slots[Int(next)].previous = previous } else { last = previous }
        slotCount -= 1
    }

    /// The slots of the chain, first to last.
    func indices(_ slots: [OutboundSlot]) -> [Int32] {
        var found: [Int32] = []
        var index = first
        while index >= 0 {
            found.append(index)
            index = slots[Int(index)].next
        }
        return found
    }
}

extension OutboundSlot {
    /// The record that brings the message back.
    func record(wallClockOffset: Int64) -> MQTTStoreRecord {
        let expires = !properties.isEmpty && properties.messageExpiryInterval != nil
        return .message(
            .init(
                sequence: sequence, packetID: head.packetID, topic: head.topic, payload: payload, qos: head.flags.qos,
                retain: head.flags.isRetained, properties: properties,
                time: expires ? time.advanced(byNanoseconds: wallClockOffset) / 1_000_000 : 0))
    }
}

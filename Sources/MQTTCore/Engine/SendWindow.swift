import MessagingWire

/// The outgoing half of a session: the messages in flight, in the order of their first sending, and the queue behind them. It
/// also gives out the packet identifiers of SUBSCRIBE and UNSUBSCRIBE, which ``FilterTable`` has.
///
/// Three chains share the slots:
/// - `published`: PUBLISH sent, not acknowledged. After a reconnect `resend` walks it, and nothing else is sent before
///   it is through [MQTT 5.0 4.4.0-1, 4.6.0-1], but for messages that others pass.
/// - `received`: PUBREC came, in the order in which PUBREL was sent [MQTT 5.0 4.6.0-4].
/// - `queue`: never sent, behind those that were sent in a lost session. With a store the first of them have an identifier,
///   which is stored before they are sent.
///
/// `used` counts what holds a place of the peer's Receive Maximum on this connection, which includes what was sent
/// again on it [MQTT 5.0 4.9.0-1].
struct SendWindow: Sendable {
    var ids = PacketIDSet()
    /// The slot of each identifier in use; negative for none, see below. Grows up to the largest identifier that was used.
    private(set) var slotOfID: [Int32] = []
    var slots: [OutboundSlot] = []
    private(set) var free: [Int32] = []

    private(set) var published = SlotChain()
    private(set) var received = SlotChain()
    private(set) var queue = SlotChain()
    /// Here because there is room for it.
    var pace = InvariantPace()

    /// The places of the window that are taken on this connection.
    var used: Int {
        get { Int(usedCount) }
        // At most one for each packet identifier.
        set { usedCount = Int32(newValue) }
    }
    /// The bytes of the messages in the queue.
    private(set) var queuedBytes = 0
    private(set) var index = QueueIndex()

    // Small fields stand together, as in the engine.

    private(set) var usedCount: Int32 = 0
    /// The messages that took a place since the output was emptied: they are in it.
    private(set) var untakenCount: Int32 = 0
    /// Counts connections, to know which messages hold a place of the window on this one.
    private(set) var connection: UInt32 = 1
    /// The next message to send again; -1 when all are sent on this connection, or passed.
    private(set) var resend: Int32 = -1
    /// The next message of the queue to send: the first, unless that and others are passed; -1 for none.
    private(set) var pending: Int32 = -1
    /// The messages of QoS 0 in the queue: later ones of QoS 0 must not overtake them.
    private(set) var queuedAtMostOnceCount: Int32 = 0
    /// The first message of the queue that may lack an identifier: those before are of QoS 0 or have one.
    /// -1 if that is all of them.
    private(set) var unidentified: Int32 = -1
    /// The first message of the queue behind those that were sent in a lost session; -1 for none.
    private(set) var firstNew: Int32 = -1
    /// The messages of the queue that have an identifier.
    private(set) var identifiedCount: Int32 = 0
    private(set) var lastSequence: UInt64 = 0

    /// The messages sent and not finally acknowledged.
    var inFlightCount: Int { published.count + received.count }

    /// The message that was sent first of those on this connection that are not finally acknowledged.
    var oldestExchange: (topic: String, qos: QoS)? {
        let oldest = inFlight.first { slots[Int($0)].connection == connection }
        return oldest.map { (slots[Int($0)].head.topic, slots[Int($0)].head.flags.qos) }
    }

    /// Whether the session holds anything that a server could know of.
    var hasProtocolState: Bool { inFlightCount != 0 }

    /// Whether a message in flight is known to have been sent: on a connection of this engine, or because its PUBREC is
    /// stored.
    var hasSent: Bool { received.count > 0 || inFlight.contains { slots[Int($0)].connection != 0 } }

    /// Whether an exchange of QoS 2 that was begun or continued on this connection is not finished.
    var awaitsExactlyOnce: Bool {
        (published.indices(slots) + received.indices(slots)).contains { index in
            slots[Int(index)].connection == connection && slots[Int(index)].head.flags.isExactlyOnce
        }
    }

    // MARK: Slots

    /// The slot of an identifier, or -1.
    func slot(of id: UInt16) -> Int32 {
        Int(id) < slotOfID.count ? slotOfID[Int(id)] : -1
    }

    private mutating func takeSlot() -> Int32 {
        if let index = free.popLast() { return index }
        slots.append(OutboundSlot())
        return Int32(slots.count - 1)
    }

    private mutating func setSlot(of id: UInt16, _ index: Int32) {
        while slotOfID.count <= Int(id) { slotOfID.append(-1) }
        slotOfID[Int(id)] = index
    }

    private mutating func bind(_ id: UInt16, to index: Int32) {
        setSlot(of: id, index)
        slots[Int(index)].head.packetID = id
    }

    private mutating func unbind(_ index: Int32) {
        let id = slots[Int(index)].head.packetID
        guard id != 0 else { return }
        slotOfID[Int(id)] = -1
        ids.release(id)
        slots[Int(index)].head.packetID = 0
    }

    /// Reserves the identifier of a message that is abandoned, so that no other message gets it; nil if it has none.
    mutating func retireID(of index: Int32) -> UInt16? {
        let id = slots[Int(index)].head.packetID
        assert(id != 0, "A message was sent without an identifier.")
        guard id != 0 else { return nil }
        slotOfID[Int(id)] = -1
        slots[Int(index)].head.packetID = 0
        return id
    }

    /// The identifiers of abandoned messages: in use, but without a slot.
    var retiredIDs: [UInt16] { ids.all.filter { slot(of: $0) == Self.noSlot } }

    /// Keeps an identifier of an earlier process from other messages.
    mutating func restoreRetired(_ id: UInt16) { _ = ids.insert(id) }

    /// The peer no longer knows the identifiers of abandoned messages. Returns whether there were any.
    mutating func releaseRetiredIDs() -> Bool {
        let retired = retiredIDs
        for id in retired { ids.release(id) }
        return !retired.isEmpty
    }

    private mutating func giveBack(_ index: Int32) {
        unbind(index)
        slots[Int(index)].clear()
        free.append(index)
    }

    // MARK: Publishing

    /// Puts a message at the end of the queue and returns its slot.
    mutating func enqueue(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, token: UInt64, at now: Int64
    ) -> Int32 {
        let index = take(head, payload, properties, token, now)
        slots[Int(index)].kind = .queued
        queue.append(index, &slots)
        self.index.append(index, slots, count: queue.count)
        if firstNew < 0 { firstNew = index }
        if pending < 0 { pending = index }
        if unidentified < 0 { unidentified = index }
        queuedBytes += slots[Int(index)].queuedBytes
        if head.flags.isAtMostOnce { queuedAtMostOnceCount += 1 }
        return index
    }

    /// Takes an identifier for a message that is about to be written; nil when none is free.
    mutating func reserveID() -> UInt16? { ids.reserve() }

    /// Gives an identifier back that was never written.
    mutating func releaseID(_ id: UInt16) {
        assert(ids.contains(id) && slot(of: id) < 0, "An identifier is given back that was not taken, or is used.")
        ids.release(id)
    }

    /// Records a message of QoS 1 or 2 that was written under a reserved identifier.
    mutating func recordSent(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, token: UInt64, at now: Int64
    ) {
        enterWindow(take(head, payload, properties, token, now), head.packetID)
    }

    private mutating func take(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, _ token: UInt64, _ now: Int64
    ) -> Int32 {
        let index = takeSlot()
        lastSequence += 1
        slots[Int(index)].fill(head, payload, properties, sequence: lastSequence, token: token, at: now)
        return index
    }

    /// Moves a message of the queue, written under a reserved identifier, into the window.
    mutating func recordQueuedSent(_ index: Int32, _ id: UInt16) {
        assert(!slots[Int(index)].head.flags.isAtMostOnce, "A message of QoS 0 enters the window.")
        leaveQueue(index)
        enterWindow(index, id)
    }

    /// The first message of QoS 1 or 2 in the queue that has no identifier; -1 for none.
    mutating func firstUnidentified() -> Int32 {
        while unidentified >= 0,
            slots[Int(unidentified)].head.flags.isAtMostOnce || slots[Int(unidentified)].head.packetID != 0
        {
            unidentified = slots[Int(unidentified)].next
        }
        return unidentified
    }

    /// Gives a message of the queue an identifier before it is sent, because the store must know the identifier by then. In
    /// the order of the queue: what has an identifier is sent first by the next process. False if none is free.
    mutating func identify(_ index: Int32) -> Bool {
        guard let id = ids.reserve() else { return false }
        bind(id, to: index)
        identifiedCount += 1
        return true
    }

    /// The record of a message or of its identifier has this ticket.
    mutating func hold(_ index: Int32, until ticket: UInt64) {
        slots[Int(index)].ticket = ticket
    }

    private mutating func enterWindow(_ index: Int32, _ id: UInt16) {
        slots[Int(index)].markPublished(on: connection)
        bind(id, to: index)
        published.append(index, &slots)
        used += 1
        untakenCount &+= 1
    }

    /// The bytes that were written have left, or were dropped.
    mutating func outputEmptied() { untakenCount = 0 }

    /// The oldest message of the queue that was never sent; nil for none.
    ///
    /// - Parameter topic: the topic of the message; nil for any.
    mutating func firstUnsent(to topic: String?) -> Int32? {
        if let topic { return index.first(to: topic, queue, slots) }
        var index = firstNew
        while index >= 0, slots[Int(index)].kind != .queued { index = slots[Int(index)].next }
        return index < 0 ? nil : index
    }

    /// The message of the queue that has this token and was never sent; nil for none.
    mutating func unsent(_ token: UInt64) -> Int32? {
        guard let index = index.message(token, queue, slots), slots[Int(index)].kind == .queued else { return nil }
        return index
    }

    /// Removes a message from the queue.
    mutating func dropQueued(_ index: Int32) {
        assert(slots[Int(index)].isInQueue, "A message is dropped from the queue that is not in it.")
        leaveQueue(index)
        giveBack(index)
    }

    private mutating func leaveQueue(_ index: Int32) {
        if index == unidentified { unidentified = slots[Int(index)].next }
        if slots[Int(index)].head.packetID != 0 { identifiedCount -= 1 }
        if index == pending { pending = slots[Int(index)].next }
        if index == firstNew { firstNew = slots[Int(index)].next }
        queue.remove(index, &slots)
        self.index.remove(index, slots[Int(index)], isLast: queue.count == 0)
        queuedBytes -= slots[Int(index)].queuedBytes
        if slots[Int(index)].head.flags.isAtMostOnce { queuedAtMostOnceCount -= 1 }
    }

    /// Counts the message at `resend` as sent on this connection and goes to the next one.
    mutating func recordResent() {
        assert(resend >= 0, "A message was sent again that did not wait for it.")
        slots[Int(resend)].connection = connection
        used += 1
        untakenCount &+= 1
        moveResend(behind: resend)
    }

    /// Goes to the next message that was not sent on this connection; others may have passed it.
    private mutating func moveResend(behind index: Int32) {
        resend = slots[Int(index)].next
        while resend >= 0, slots[Int(resend)].connection == connection { resend = slots[Int(resend)].next }
    }

    /// Others go before this message, which is the next to be sent.
    mutating func pass(_ index: Int32) {
        if index == resend { moveResend(behind: index) } else { pending = slots[Int(index)].next }
    }

    /// The messages that are not sent on this connection.
    var notSentHere: [Int32] {
        published.indices(slots).filter { slots[Int($0)].connection != connection } + queue.indices(slots)
    }

    /// Whether messages were passed on this connection.
    var hasPassed: Bool { inFlightCount > used || pending != queue.first }

    /// Goes back to what was passed.
    mutating func rewind() {
        pending = queue.first
        resend = published.first
        if resend >= 0, slots[Int(resend)].connection == connection { moveResend(behind: resend) }
    }

    // MARK: Acknowledgements

    /// PUBREC came: the message waits for PUBCOMP and keeps its place in the window [MQTT 5.0 4.9.0-1].
    mutating func markReceived(_ index: Int32, _ reason: MQTTReasonCode) {
        assert(slots[Int(index)].kind == .published, "PUBREC has come for a message that does not await it.")
        if resend == index { moveResend(behind: index) }
        published.remove(index, &slots)
        slots[Int(index)].kind = .received
        slots[Int(index)].received = reason.rawValue
        received.append(index, &slots)
    }

    /// The message is done: its identifier is free, and its place if it had one on this connection.
    mutating func finish(_ index: Int32) {
        assert(slots[Int(index)].isInFlight, "A message is done that was not in flight.")
        if slots[Int(index)].kind == .received {
            received.remove(index, &slots)
        } else {
            if resend == index { moveResend(behind: index) }
            published.remove(index, &slots)
        }
        if slots[Int(index)].connection == connection { used -= 1 }
        giveBack(index)
    }

    // MARK: Requests

    /// What ``slot(of:)`` is for an identifier that is not in use, and for that of a request, which has no slot.
    static let (noSlot, requestSlot): (Int32, Int32) = (-1, -2)

    var hasFreeIDs: Bool { ids.count < 65_535 }

    /// Takes an identifier for SUBSCRIBE or UNSUBSCRIBE; nil when none is free.
    mutating func reserveRequestID() -> UInt16? {
        guard let id = ids.reserve() else { return nil }
        setSlot(of: id, Self.requestSlot)
        return id
    }

    /// A request has its answer, will never have one, or was not written.
    mutating func releaseRequestID(_ id: UInt16) {
        assert(slot(of: id) == Self.requestSlot, "An answer has come for something else than a request.")
        setSlot(of: id, Self.noSlot)
        ids.release(id)
    }

    // MARK: Connections

    /// The connection is gone: what is in flight waits for the next one.
    mutating func connectionClosed() {
        connection &+= 1
        used = 0
        resend = -1
        pending = queue.first
    }

    /// The session is resumed: messages in flight are sent again. Messages that wait for PUBCOMP occupy the window at
    /// once.
    mutating func resume() {
        var index = received.first
        while index >= 0 {
            slots[Int(index)].connection = connection
            index = slots[Int(index)].next
        }
        used = received.count
        resend = published.first
    }

    /// The session is gone: everything in flight returns to the head of the queue in its original order and without
    /// its identifier [MQTT 5.0 3.2.2-5].
    ///
    /// - Parameter wereSent: false if no server can have had the session.
    mutating func requeueAll(wereSent: Bool) {
        var moved: [Int32] = []
        while published.first >= 0 {
            moved.append(published.first)
            published.remove(published.first, &slots)
        }
        while received.first >= 0 {
            moved.append(received.first)
            received.remove(received.first, &slots)
        }
        moved.sort { slots[Int($0)].sequence < slots[Int($1)].sequence }
        index.forgetPlaces()
        for index in moved.reversed() {
            unbind(index)
            slots[Int(index)].kind = wereSent ? .requeued : .queued
            slots[Int(index)].connection = 0
            queue.prepend(index, &slots)
            queuedBytes += slots[Int(index)].queuedBytes
            self.index.expect(index, slots)
            if !wereSent { firstNew = index }
        }
        unidentified = queue.first
        pending = queue.first
        used = 0
        resend = -1
    }

    /// When the first message of the queue expires; `Int64.max` if none does.
    var firstExpiry: Int64 { mutating get { index.nextExpiry(slots)?.time ?? .max } }

    /// A message of the queue that has expired; nil for none.
    mutating func expired(at now: Int64) -> Int32? {
        guard let next = index.nextExpiry(slots), next.time <= now else { return nil }
        return next.slot
    }

    // MARK: Restoring

    /// A message of an earlier process. A message with an identifier counts as sent.
    mutating func restore(_ message: MQTTStoreRecord.Message, token: UInt64, at time: Int64) -> Int32 {
        let head = PublishHead(
            topic: message.topic, flags: MQTTPublishFlags(message.qos, retain: message.retain))
        let index = enqueue(head, message.payload, message.properties, token: token, at: time)
        slots[Int(index)].sequence = message.sequence
        self.index.expect(index, slots)
        lastSequence = max(lastSequence, message.sequence)
        restoreIdentifier(message.packetID, of: index)
        return index
    }

    /// New messages have numbers that no earlier process gave.
    mutating func beginSequences(at now: Int64) { lastSequence = max(lastSequence, MQTTStoreRecord.sequence(at: now)) }

    /// Sets the identifier of a restored message, unless it is 0 or another one has it.
    mutating func restoreIdentifier(_ id: UInt16, of index: Int32) {
        guard slots[Int(index)].kind != .received, ids.insert(id) else { return }
        let wasQueued = slots[Int(index)].kind == .queued
        if wasQueued { leaveQueue(index) }
        unbind(index)
        bind(id, to: index)
        guard wasQueued else { return }
        slots[Int(index)].kind = .published
        published.append(index, &slots)
    }

    /// The slots in flight in the order in which they came in; without a connection there are no others.
    var inFlight: [Int32] {
        let chained = published.indices(slots) + received.indices(slots)
        return chained.sorted { slots[Int($0)].sequence < slots[Int($1)].sequence }
    }
}

// MARK: - What is unanswered

extension SendWindow {
    /// The places of the first and the last message among those of the session that are unanswered on this connection; nil for
    /// none.
    var unanswered: ClosedRange<UInt64>? {
        let sequences = inFlight.filter { slots[Int($0)].connection == connection }.map { slots[Int($0)].sequence }
        guard let first = sequences.first, let last = sequences.last else { return nil }
        return first...last
    }

    /// The only message that is unanswered on this connection; nil if there are none or others.
    var lone: OutboundSlot? {
        guard used == 1 else { return nil }
        return inFlight.first { slots[Int($0)].connection == connection }.map { slots[Int($0)] }
    }
}

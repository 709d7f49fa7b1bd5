import MessagingWire

/// What outlives a connection: packet identifiers, messages in flight and in the queue, identifiers of received QoS 2
/// messages. A server moves it from the engine of one connection to the engine of the next.
public struct MQTTSession: Sendable {
    /// What we send.
    var window = SendWindow()
    /// What we received and have to acknowledge.
    var inbound = InboundOrder()
    /// QoS 2 messages that were delivered and not released by PUBREL [MQTT 5.0 4.3.3-10].
    var received = PacketIDBits()
    /// QoS 2 messages in `received` that the application has acknowledged, so that a repetition is answered at once.
    var answered = PacketIDBits()
    /// Refusals of messages of an earlier connection, until the peer repeats them and can be answered.
    var refused: [UInt16: UInt8] = [:]
    /// QoS 2 messages whose PUBREC was sent on this connection: they count against our Receive Maximum.
    var awaitingRelease = PacketIDBits()
    /// A server may know of this session: a connection was accepted, and the session was to outlive it.
    var isHeld = false
    /// Whether a store was given the record of `isHeld`.
    var isRecorded = false
    /// Whether this engine gave the store that record, and no connection was accepted since: nothing was sent in the
    /// session.
    var isNew = false
    var doubt = Doubt.none

    /// What a client does not know of the server's session, whatever Session Present says.
    enum Doubt: UInt8 {
        case none
        /// A CONNECT had no answer: the server may have begun a session with it, or may when it reads it, and reports
        /// Session Present from then on.
        case connectUnanswered
        /// The next server is another than the last, and may hold a session of its own.
        case otherServer
        /// That server has reported Session Present since: it may know nothing of earlier connections. The
        /// subscriptions are made again on that connection, so that this is about received messages alone.
        case mayBeAnother
    }

    /// A session in which nothing happened yet.
    public init() {}

    /// The number of messages in the queue.
    public var queuedCount: Int { window.queue.count }
    /// The number of messages sent and not finally acknowledged.
    public var inFlightCount: Int { window.inFlightCount }

    /// Forgets what was received: the peer's side of it is gone.
    mutating func forgetReceived() {
        received.removeAll()
        answered.removeAll()
        awaitingRelease.removeAll()
        refused.removeAll()
        inbound.removeAllCarried()
    }

    /// Whether a QoS 2 message that was not released came on an earlier connection, and not again on this one.
    func cameEarlier(_ id: UInt16) -> Bool {
        received.contains(id) && !awaitingRelease.contains(id) && !inbound.holds(id)
    }

    /// Forgets the QoS 2 messages of earlier connections: the peer's side of them is gone.
    ///
    /// - Returns: the identifiers of those that a store has.
    mutating func forgetEarlierReceived() -> [UInt16] {
        let earlier = received.all.filter { cameEarlier($0) }
        let stored = earlier.filter { answered.contains($0) }
        for id in earlier {
            received.remove(id)
            answered.remove(id)
            refused[id] = nil
        }
        inbound.removeAllCarried()
        return stored
    }

    /// The connection is gone.
    mutating func connectionClosed() {
        window.connectionClosed()
        inbound.connectionClosed()
        awaitingRelease.removeAll()
    }

    /// Forgets everything. Delivery tokens keep counting, so that an old token cannot be mistaken for a new one.
    mutating func reset() {
        window = SendWindow()
        inbound.connectionClosed()
        forgetReceived()
        isHeld = false
        isRecorded = false
        isNew = false
        doubt = .none
    }
}

extension MQTTSession {
    /// The session that a log describes. Records that make no sense, as a damaged store may hold, are passed over.
    ///
    /// Every message that had a packet identifier is taken for sent: whether it left is not known, and sending it again
    /// under its identifier with DUP set is right in both cases.
    /// - Parameters:
    ///   - now: the time of the engine's clock, and `wallClockOffset` what makes wall-clock time of it, so that the time
    ///     between two processes counts against the expiry of messages [MQTT 5.0 3.3.2-6]. New messages get identifiers from
    ///     one on that depends on `now`: the log may lack messages that the server still knows. Their sequence numbers
    ///     also begin at a number that depends on `now`.
    ///   - token: the token that completions of the restored messages carry, from the message's sequence number.
    public init(
        restoring records: [MQTTStoreRecord], at now: Int64 = 0, wallClockOffset: Int64 = 0,
        token: (UInt64) -> UInt64 = { _ in .max }
    ) {
        self.init()
        var slots: [UInt64: Int32] = [:]
        var image = MQTTSessionImage()
        for record in records { image.apply(record) }
        for record in image.records {
            switch record {
            case .established:
                isHeld = true
                isRecorded = true
            case .message(let message):
                guard slots[message.sequence] == nil, message.qos != .atMostOnce else { continue }
                slots[message.sequence] = window.restore(
                    message, token: token(message.sequence), at: Self.time(message.time, now, wallClockOffset))
            case .released(let sequence):
                if let index = slots[sequence], window.slots[Int(index)].kind == .published {
                    window.markReceived(index, .success)
                }
            case .received(let id):
                received.insert(id)
                answered.insert(id)
            case .retired(let id): window.restoreRetired(id)
            case .kept, .keptFinished:
                // The caller's.
                break
            case .filterWanted, .filterEnded, .filterForgotten:
                // The engine's.
                break
            case .identified, .finished, .receivedReleased, .receivedForgotten, .discarded:
                // An image holds the state, not the steps that led to it.
                break
            }
        }
        window.beginSequences(at: now)
        // If an identifier was given, a connection may have been accepted or attempted.
        if window.hasProtocolState || received.count > 0 { isHeld = true }
        guard isHeld else { return }
        // The process before may have ended between its CONNECT and the answer.
        doubt = .connectUnanswered
        // A loss of power or damage may have taken the end of the log.
        window.ids.begin(at: now)
    }

    /// The engine's time for that of a record. A message is at most as old as the longest expiry, and not younger than
    /// now, however the wall clock was set.
    private static func time(_ milliseconds: Int64, _ now: Int64, _ wallClockOffset: Int64) -> Int64 {
        // Not known: it does not age before it is restored.
        guard milliseconds > 0 else { return now }
        let age = (now.advanced(byNanoseconds: wallClockOffset) / 1_000_000).subtractingReportingOverflow(milliseconds)
        let seconds = age.overflow ? 0 : min(max(0, age.partialValue) / 1000, Int64(UInt32.max))
        return now - seconds * 1_000_000_000
    }

    /// The shortest log of this session, for a store that makes its file small again.
    public var records: [MQTTStoreRecord] { records(wallClockOffset: 0) }

    /// The same, with the times of messages by a clock.
    public func records(wallClockOffset: Int64) -> [MQTTStoreRecord] {
        var records: [MQTTStoreRecord] = isHeld ? [.established] : []
        for index in window.inFlight + window.queue.indices(window.slots) {
            let slot = window.slots[Int(index)]
            guard !slot.head.flags.isAtMostOnce else { continue }
            records.append(slot.record(wallClockOffset: wallClockOffset))
            if slot.kind == .received { records.append(.released(sequence: slot.sequence)) }
        }
        for id in answered.all { records.append(.received(packetID: id)) }
        for id in window.retiredIDs { records.append(.retired(packetID: id)) }
        return records
    }
}

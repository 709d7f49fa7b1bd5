import Wire

/// One step of a session, for a store that lets the session survive the process. Read in order, the records are a log:
/// replayed by ``MQTTSession/init(restoring:token:)`` they give the session back.
///
/// The engine emits them into ``MQTTEngine/storeRecords`` if ``MQTTEngineConfiguration/persists`` is on. Record number
/// *n* since the engine was made has ticket *n*. PUBLISH, PUBREC, PUBREL and PUBCOMP of an exchange leave only after
/// the caller said that the record behind them is stored: ``MQTTEngine/persisted(through:at:into:)``.
public enum MQTTStoreRecord: Sendable, Hashable {
    /// The server accepted a connection whose session outlives it: it may hold a session of ours from now on.
    case established
    /// A message of QoS 1 or 2 was accepted. `packetID` is 0 if none was free. `time` says when, in milliseconds since
    /// 1970, for messages that expire; 0 says nothing.
    case message(
        sequence: UInt64, packetID: UInt16, topic: String, payload: [UInt8], qos: QoS, retain: Bool,
        properties: MQTTProperties, time: Int64 = 0)
    /// A message got another packet identifier: the server had lost the session.
    case identified(sequence: UInt64, packetID: UInt16)
    /// PUBREC came: from now on only PUBREL is sent.
    case released(sequence: UInt64)
    /// The message is done, or given up.
    case finished(sequence: UInt64)
    /// A QoS 2 message was taken by the application: its identifier is not delivered again.
    case received(packetID: UInt16)
    /// PUBREL came: the identifier is free again.
    case receivedReleased(packetID: UInt16)
    /// The peer has no session any more: all received identifiers are free.
    case receivedForgotten
    /// The session was discarded.
    case discarded
    /// A received message is kept by the client until somebody subscribes to it, and may be acknowledged; of QoS 2 that
    /// is ``received(packetID:)`` too. `time` says until when it is kept, in milliseconds since 1970.
    case kept(
        sequence: UInt64, packetID: UInt16, topic: String, payload: [UInt8], qos: QoS, retain: Bool,
        properties: MQTTProperties,
        time: Int64)
    /// A kept message was handed over, or given up.
    case keptFinished(sequence: UInt64)
}

extension MQTTSession {
    /// The session that a log describes. Records that make no sense, as a damaged store may hold, are passed over.
    ///
    /// Every message that had a packet identifier is taken for sent: whether it left is not known, and sending it again
    /// under its identifier with DUP set is right in both cases.
    /// - Parameters:
    ///   - now: the time of the engine's clock, and `wallClockOffset` what makes wall-clock time of it, so that the time
    ///     between two processes counts against the expiry of messages [MQTT 5.0 3.3.2-6].
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
            case .established: isHeld = true
            case .message(let sequence, let id, let topic, let payload, let qos, let retain, let properties, let time):
                guard slots[sequence] == nil, qos != .atMostOnce else { continue }
                slots[sequence] = window.restore(
                    sequence: sequence, id: id, topic: topic, payload: payload,
                    flags: qos.rawValue << 1 | (retain ? 1 : 0), properties: properties, token: token(sequence),
                    at: Self.time(time, now, wallClockOffset))
            case .released(let sequence):
                if let index = slots[sequence], window.slots[Int(index)].kind == .published {
                    window.markReceived(index)
                }
            case .received(let id):
                received.insert(id)
                answered.insert(id)
            case .kept, .keptFinished:
                // The caller's.
                break
            case .identified, .finished, .receivedReleased, .receivedForgotten, .discarded:
                // An image says what is, not what became of it.
                break
            }
        }
        // Where an identifier was given, a connection was accepted or attempted.
        if window.hasProtocolState || received.count > 0 { isHeld = true }
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
            guard let qos = QoS(rawValue: slot.qos), qos != .atMostOnce else { continue }
            records.append(slot.record(wallClockOffset: wallClockOffset))
            if slot.kind == .received { records.append(.released(sequence: slot.sequence)) }
        }
        for id in answered.all { records.append(.received(packetID: id)) }
        return records
    }
}

extension OutboundSlot {
    /// The record that brings the message back.
    func record(wallClockOffset: Int64) -> MQTTStoreRecord {
        let expires = !properties.isEmpty && properties.messageExpiryInterval != nil
        return .message(
            sequence: sequence, packetID: packetID, topic: topic, payload: payload,
            qos: QoS(rawValue: qos) ?? .atLeastOnce, retain: flags & 1 != 0, properties: properties,
            time: expires ? time.advanced(byNanoseconds: wallClockOffset) / 1_000_000 : 0)
    }
}

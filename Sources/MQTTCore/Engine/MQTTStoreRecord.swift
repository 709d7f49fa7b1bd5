/// One step of a session, for a store that lets the session survive the process. Read in order, the records are a log:
/// replayed by ``MQTTSession/init(restoring:token:)`` they give the session back.
///
/// The engine emits them into ``MQTTEngine/storeRecords`` if ``MQTTEngineConfiguration/persists`` is on. Record number
/// *n* since the engine was made has ticket *n*. PUBLISH, PUBREC, PUBREL and PUBCOMP of an exchange leave only after
/// the caller said that the record behind them is stored: ``MQTTEngine/persisted(through:at:into:)``.
public enum MQTTStoreRecord: Sendable, Hashable {
    /// The server accepted a connection whose session outlives it: it may hold a session of ours from now on.
    case established
    /// A message of QoS 1 or 2 was accepted. `packetID` is 0 if none was free.
    case message(
        sequence: UInt64, packetID: UInt16, topic: String, payload: [UInt8], qos: QoS, retain: Bool,
        properties: MQTTProperties)
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
}

extension MQTTSession {
    /// The session that a log describes. Records that make no sense, as a damaged store may hold, are passed over.
    ///
    /// Every message that had a packet identifier is taken for sent: whether it left is not known, and sending it again
    /// under its identifier with DUP set is right in both cases.
    /// - Parameter token: the token that completions of the restored messages carry, from the message's sequence number.
    public init(restoring records: [MQTTStoreRecord], token: (UInt64) -> UInt64 = { _ in .max }) {
        self.init()
        var slots: [UInt64: Int32] = [:]
        var image = MQTTSessionImage()
        for record in records { image.apply(record) }
        for record in image.records {
            switch record {
            case .established: isHeld = true
            case .message(let sequence, let id, let topic, let payload, let qos, let retain, let properties):
                guard slots[sequence] == nil, qos != .atMostOnce else { continue }
                slots[sequence] = window.restore(
                    sequence: sequence, id: id, topic: topic, payload: payload,
                    flags: qos.rawValue << 1 | (retain ? 1 : 0), properties: properties, token: token(sequence))
            case .released(let sequence):
                if let index = slots[sequence], window.slots[Int(index)].kind == .published {
                    window.markReceived(index)
                }
            case .received(let id):
                received.insert(id)
                answered.insert(id)
            case .identified, .finished, .receivedReleased, .receivedForgotten, .discarded:
                // An image says what is, not what became of it.
                break
            }
        }
        // Where an identifier was given, a connection was accepted or attempted.
        if window.hasProtocolState || received.count > 0 { isHeld = true }
    }

    /// The shortest log of this session, for a store that makes its file small again.
    public var records: [MQTTStoreRecord] {
        var records: [MQTTStoreRecord] = isHeld ? [.established] : []
        for index in window.inFlight + window.queue.indices(window.slots) {
            let slot = window.slots[Int(index)]
            guard let qos = QoS(rawValue: slot.qos), qos != .atMostOnce else { continue }
            records.append(slot.record)
            if slot.kind == .received { records.append(.released(sequence: slot.sequence)) }
        }
        for id in answered.all { records.append(.received(packetID: id)) }
        return records
    }
}

extension OutboundSlot {
    /// The record that brings the message back.
    var record: MQTTStoreRecord {
        .message(
            sequence: sequence, packetID: packetID, topic: topic, payload: payload,
            qos: QoS(rawValue: qos) ?? .atLeastOnce, retain: flags & 1 != 0, properties: properties)
    }
}

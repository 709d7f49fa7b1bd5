/// What is left of a log of ``MQTTStoreRecord``s: the state that its records add up to, from which a store writes the
/// shortest log of the same meaning.
public struct MQTTSessionImage: Sendable {
    private struct Message: Sendable {
        var record: MQTTStoreRecord
        var size: Int
        /// When PUBREC came, as a number that rises with each; 0 if it did not.
        var release: UInt64 = 0
    }

    private var isEstablished = false
    private var messages: [UInt64: Message] = [:]
    private var lastRelease: UInt64 = 0
    private var received: Set<UInt16> = []

    private var keptMessages: [UInt64: MQTTStoreRecord] = [:]

    /// Kept messages of QoS 2 whose identifier was not released by PUBREL.
    private var keptIdentifiers: [UInt16: UInt64] = [:]

    /// The records of received messages that are kept, oldest first.
    public var kept: [MQTTStoreRecord] { keptMessages.sorted { $0.key < $1.key }.map(\.value) }

    /// The bytes of topics and payloads of the messages that are not done.
    public private(set) var byteCount = 0

    public init() {}

    /// The messages that are not done.
    public var messageCount: Int { messages.count }

    /// Takes a record in. Records that make no sense are passed over.
    public mutating func apply(_ record: MQTTStoreRecord) {
        switch record {
        case .established: isEstablished = true
        case .message(let sequence, _, let topic, let payload, let qos, _, _, _):
            guard messages[sequence] == nil, qos != .atMostOnce else { return }
            let size = topic.utf8.count + payload.count
            messages[sequence] = Message(record: record, size: size)
            byteCount += size
        case .identified(let sequence, let id):
            guard
                case .message(_, _, let topic, let payload, let qos, let retain, let properties, let time) =
                    messages[sequence]?.record
            else { return }
            messages[sequence]?.record = .message(
                sequence: sequence, packetID: id, topic: topic, payload: payload, qos: qos, retain: retain,
                properties: properties, time: time)
            // With a new identifier it is sent from the start again.
            messages[sequence]?.release = 0
        case .released(let sequence):
            guard messages[sequence]?.release == 0,
                case .message(_, let id, _, _, .exactlyOnce, _, _, _) = messages[sequence]?.record, id != 0
            else { return }
            lastRelease += 1
            messages[sequence]?.release = lastRelease
        case .finished(let sequence):
            guard let message = messages.removeValue(forKey: sequence) else { return }
            byteCount -= message.size
        case .received(let id): received.insert(id)
        case .receivedReleased(let id):
            received.remove(id)
            forgetIdentifier(id)
        case .receivedForgotten:
            received = []
            for id in keptIdentifiers.keys { forgetIdentifier(id) }
        case .discarded: self = MQTTSessionImage()
        case .kept(let sequence, let id, _, _, let qos, _, _, _):
            guard keptMessages[sequence] == nil, qos != .atMostOnce else { return }
            keptMessages[sequence] = record
            guard qos == .exactlyOnce, id != 0 else { return }
            forgetIdentifier(id)
            received.insert(id)
            keptIdentifiers[id] = sequence
        case .keptFinished(let sequence): keptMessages[sequence] = nil
        }
    }

    /// PUBREL came: the record of a kept message does not stand for its identifier any more.
    private mutating func forgetIdentifier(_ id: UInt16) {
        guard let sequence = keptIdentifiers.removeValue(forKey: id),
            case .kept(_, _, let topic, let payload, let qos, let retain, let properties, let time)? =
                keptMessages[sequence]
        else { return }
        keptMessages[sequence] = .kept(
            sequence: sequence, packetID: 0, topic: topic, payload: payload, qos: qos, retain: retain,
            properties: properties, time: time)
    }

    /// Sequences of messages whose PUBREC came, in the order of PUBREC: PUBREL is sent in the same one [MQTT-4.6.0-4].
    private var released: [UInt64] {
        messages.lazy.filter { $0.value.release > 0 }.sorted { $0.value.release < $1.value.release }.map(\.key)
    }

    /// The shortest log.
    public var records: [MQTTStoreRecord] {
        (isEstablished ? [.established] : [])
            // Numbers are sorted, and not the records with them.
            + messages.keys.sorted().compactMap { messages[$0]?.record }
            + released.map { .released(sequence: $0) }
            + received.sorted().map { .received(packetID: $0) } + kept
    }
}

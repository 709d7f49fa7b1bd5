/// What is left of a log of ``MQTTStoreRecord``s: the state that its records add up to, from which a store writes the
/// shortest log of the same meaning.
public struct MQTTSessionImage: Sendable {
    private struct Message: Sendable {
        var record: MQTTStoreRecord
        var size: Int
        var isReleased = false
    }

    private var isEstablished = false
    private var messages: [UInt64: Message] = [:]
    /// Sequences of messages whose PUBREC came, in the order of PUBREC.
    private var released: [UInt64] = []
    private var received: Set<UInt16> = []

    /// The bytes of topics and payloads of the messages that are not done.
    public private(set) var byteCount = 0

    public init() {}

    /// The messages that are not done.
    public var messageCount: Int { messages.count }

    /// Takes a record in. Records that make no sense are passed over.
    public mutating func apply(_ record: MQTTStoreRecord) {
        switch record {
        case .established: isEstablished = true
        case .message(let sequence, _, let topic, let payload, let qos, _, _):
            guard messages[sequence] == nil, qos != .atMostOnce else { return }
            let size = topic.utf8.count + payload.count
            messages[sequence] = Message(record: record, size: size)
            byteCount += size
        case .identified(let sequence, let id):
            guard
                case .message(_, _, let topic, let payload, let qos, let retain, let properties) = messages[sequence]?
                    .record
            else { return }
            messages[sequence]?.record = .message(
                sequence: sequence, packetID: id, topic: topic, payload: payload, qos: qos, retain: retain,
                properties: properties)
            // With a new identifier it is sent from the start again.
            if messages[sequence]?.isReleased == true {
                messages[sequence]?.isReleased = false
                released.removeAll { $0 == sequence }
            }
        case .released(let sequence):
            guard messages[sequence]?.isReleased == false,
                case .message(_, let id, _, _, .exactlyOnce, _, _) = messages[sequence]?.record, id != 0
            else { return }
            messages[sequence]?.isReleased = true
            released.append(sequence)
        case .finished(let sequence):
            guard let message = messages.removeValue(forKey: sequence) else { return }
            byteCount -= message.size
            if message.isReleased, let index = released.firstIndex(of: sequence) { released.remove(at: index) }
        case .received(let id): received.insert(id)
        case .receivedReleased(let id): received.remove(id)
        case .receivedForgotten: received = []
        case .discarded: self = MQTTSessionImage()
        }
    }

    /// The shortest log.
    public var records: [MQTTStoreRecord] {
        (isEstablished ? [.established] : [])
            + messages.sorted { $0.key < $1.key }.map(\.value.record)
            + released.map { .released(sequence: $0) }
            + received.sorted().map { .received(packetID: $0) }
    }
}

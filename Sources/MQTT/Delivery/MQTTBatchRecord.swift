import MQTTCore

/// What every receiver asks of a message of a batch. Plain data of 16 bytes: a batch of plain messages has nothing else
/// for each of them.
@usableFromInline
struct MQTTBatchRecord: Sendable {
    /// Where the payload starts in the bytes of the batch.
    @usableFromInline let payloadStart: UInt32
    @usableFromInline let payloadCount: UInt32
    /// The index into the topics of the batch.
    @usableFromInline var topic: UInt32
    /// DUP, QoS and RETAIN.
    @usableFromInline let flags: MQTTPublishFlags

    @inline(__always)
    init(payloadStart: UInt32, payloadCount: UInt32, topic: UInt32, flags: MQTTPublishFlags) {
        self.payloadStart = payloadStart
        self.payloadCount = payloadCount
        self.topic = topic
        self.flags = flags
    }
}

/// What messages of QoS 1 and 2 and messages with properties have beside it.
struct MQTTBatchDetail: Sendable {
    /// The token to acknowledge the message with; 0 for QoS 0.
    let delivery: UInt64
    /// How long the properties are, which end where the payload starts.
    let propertiesCount: UInt32
    let packetID: UInt16

    static let none = MQTTBatchDetail()

    private init() {
        (delivery, propertiesCount, packetID) = (0, 0, 0)
    }

    init(_ message: MQTTMessageRecord) {
        delivery = message.delivery
        propertiesCount = UInt32(truncatingIfNeeded: message.properties.count)
        packetID = message.packetID
    }
}

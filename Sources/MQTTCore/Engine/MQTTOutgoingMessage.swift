/// A message to publish.
public struct MQTTOutgoingMessage: Sendable {
    /// The topic name: 1 to 65,535 bytes of UTF-8 without wildcards.
    public var topic: String
    public var payload: [UInt8]
    public var qos: QoS
    /// Whether the server keeps the message for later subscribers; an empty payload makes it forget the one it has.
    public var retain: Bool
    /// Sent with MQTT 5.0 only.
    public var properties: MQTTProperties

    public init(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }
}

/// Where the bytes of a message without properties lie, which somebody else keeps.
///
/// Taken out of an array, each message would cost three counted references, which is more than encoding it.
@unsafe struct LentMessage {
    let topic: UnsafeRawBufferPointer
    let payload: UnsafeRawBufferPointer
    let qos: QoS
    let retain: Bool

    /// Nil for messages with properties, and for topics that do not lie in memory of their own: up to 15 bytes lie in
    /// the `String` itself.
    ///
    /// The pointers hold as long as the message stays where it is, unchanged.
    @inline(__always)
    init?(_ message: UnsafePointer<MQTTOutgoingMessage>) {
        guard unsafe message.pointee.topic.utf8.count > 15, unsafe message.pointee.properties.isEmpty,
            let topic = unsafe message.pointee.topic.utf8.withContiguousStorageIfAvailable({
                UnsafeRawBufferPointer($0)
            })
        else { return nil }
        unsafe self.topic = unsafe topic
        unsafe payload = unsafe message.pointee.payload.withUnsafeBytes { unsafe $0 }
        unsafe qos = unsafe message.pointee.qos
        unsafe retain = unsafe message.pointee.retain
    }
}

/// A PUBACK, PUBREC, PUBREL or PUBCOMP in the bytes that it came in.
public struct MQTTAcknowledgementView: Sendable, Hashable {
    public let packetID: UInt16
    public let reasonCode: MQTTReasonCode
    /// Where the properties start, as an offset into the bytes that it was read from; not checked yet.
    public let propertiesStart: Int
    public let propertiesCount: Int
}

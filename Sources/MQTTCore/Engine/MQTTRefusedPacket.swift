/// The packet that broke the protocol; equal for a repetition of it under another identifier or with DUP.
public struct MQTTRefusedPacket: Sendable {
    /// The type of the packet.
    public var type: MQTTPacketType
    /// The topic of PUBLISH, with what is not UTF-8 replaced; empty for other packets, and for one that is too large and whose
    /// topic has not arrived. Not compared, since the fingerprint covers it.
    public var topic: String
    /// A hash of what it holds beside its packet identifier; of a packet that is too large, its size.
    public var fingerprint: UInt64
    /// Whether ``MQTTEngineConfiguration/dropsInvalidMessages`` would have dropped it instead of ending the connection.
    public var isDroppable = false
    /// The filters of the SUBSCRIBE that it answers; empty if it answers none. Not compared.
    public var filters: [String] = []
}

extension MQTTRefusedPacket: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        one.type == other.type && one.fingerprint == other.fingerprint
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(fingerprint)
    }
}

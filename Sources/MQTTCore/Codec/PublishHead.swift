/// DUP, QoS and RETAIN of a PUBLISH packet, as in the lower half of its first byte (section 3.3.1).
@frozen
public struct MQTTPublishFlags: RawRepresentable, Sendable, Hashable {
    /// The four bits.
    public var rawValue: UInt8

    /// Flags from their bits; the upper half of the byte is 0.
    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Flags from their meanings.
    @inlinable
    public init(_ qos: QoS, retain: Bool = false, isDuplicate: Bool = false) {
        rawValue = (isDuplicate ? 0b1000 : 0) | qos.rawValue << 1 | (retain ? 0b0001 : 0)
    }

    /// The quality of service; the parser of the fixed header has refused 3.
    @inlinable public var qos: QoS { QoS(rawValue: rawValue >> 1 & 0b11) ?? .exactlyOnce }
    /// Whether the QoS is 0.
    @inlinable public var isAtMostOnce: Bool { rawValue & 0b0110 == 0 }
    /// Whether the QoS is 1.
    @inlinable public var isAtLeastOnce: Bool { rawValue & 0b0110 == 0b0010 }
    /// Whether the QoS is 2.
    @inlinable public var isExactlyOnce: Bool { rawValue & 0b0100 != 0 }
    /// Whether RETAIN is set.
    @inlinable public var isRetained: Bool { rawValue & 0b0001 != 0 }
    /// Whether DUP is set.
    @inlinable public var isDuplicate: Bool { rawValue & 0b1000 != 0 }

    /// Both bits of the QoS are set, which no version allows [MQTT-3.3.1-4].
    var hasInvalidQoS: Bool { rawValue & 0b0110 == 0b0110 }

    /// The flags with DUP set, as a packet has them that is sent again [MQTT 5.0 3.3.1-1].
    var asDuplicate: MQTTPublishFlags { MQTTPublishFlags(rawValue: rawValue | 0b1000) }

    /// RETAIN alone: at QoS 0 DUP has no meaning, although 3.1 allows it.
    var retainOnly: MQTTPublishFlags { MQTTPublishFlags(rawValue: rawValue & 0b0001) }

    /// The first byte of the packet.
    var firstByte: UInt8 { 0x30 | rawValue }
}

/// What a PUBLISH packet carries before its properties and its payload.
package struct PublishHead: Sendable {
    /// The topic name; empty only with an alias that the peer knows.
    package var topic: String
    package var flags: MQTTPublishFlags
    /// Zero at QoS 0, and only there [MQTT-2.2.1-2].
    package var packetID: UInt16
    /// Zero for none; 5.0 only.
    package var alias: UInt16

    package init(
        topic: String, flags: MQTTPublishFlags = MQTTPublishFlags(.atMostOnce), packetID: UInt16 = 0, alias: UInt16 = 0
    ) {
        self.topic = topic
        self.flags = flags
        self.packetID = packetID
        self.alias = alias
    }

    /// Whether it obeys the rules that hold in every version: DUP and a packet identifier only above QoS 0.
    var isConsistent: Bool { flags.isAtMostOnce ? packetID == 0 && !flags.isDuplicate : packetID != 0 }
}

/// One property of a packet of MQTT 5.0: an identifier and a value of the type that belongs to it.
public struct MQTTProperty: Sendable, Hashable {
    /// The value of a property, by its type on the wire.
    public enum Value: Sendable, Hashable {
        /// Byte, Two Byte, Four Byte and Variable Byte Integers alike; the identifier says which.
        case integer(UInt32)
        case string(String)
        case binary([UInt8])
        case pair(MQTTUserProperty)
    }

    public let identifier: MQTTPropertyIdentifier
    public let value: Value

    /// A property as it is; that the value suits the identifier is checked when it is encoded.
    public init(_ identifier: MQTTPropertyIdentifier, _ value: Value) {
        self.identifier = identifier
        self.value = value
    }
}

/// A pair of strings whose meaning is the application's; names may repeat and their order counts [MQTT-3.1.3-10].
public struct MQTTUserProperty: Sendable, Hashable {
    public var name: String
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

extension MQTTPacket {
    /// SUBSCRIBE: one filter or more [MQTT-3.8.3-2].
    public struct Subscribe: Sendable, Hashable {
        public var packetID: UInt16
        public var subscriptions: [MQTTSubscriptionRequest]
        public var properties: MQTTProperties

        public init(packetID: UInt16, subscriptions: [MQTTSubscriptionRequest], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.subscriptions = subscriptions
            self.properties = properties
        }
    }

    /// SUBACK: one code for each filter, in their order [MQTT-3.9.3-1].
    public struct Suback: Sendable, Hashable {
        public var packetID: UInt16
        public var reasonCodes: [MQTTReasonCode]
        public var properties: MQTTProperties

        public init(packetID: UInt16, reasonCodes: [MQTTReasonCode], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.reasonCodes = reasonCodes
            self.properties = properties
        }
    }

    /// UNSUBSCRIBE: one filter or more [MQTT-3.10.3-2].
    public struct Unsubscribe: Sendable, Hashable {
        public var packetID: UInt16
        public var filters: [String]
        public var properties: MQTTProperties

        public init(packetID: UInt16, filters: [String], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.filters = filters
            self.properties = properties
        }
    }

    /// UNSUBACK: one code for each filter in 5.0 [MQTT-3.11.3-1], none before.
    public struct Unsuback: Sendable, Hashable {
        public var packetID: UInt16
        public var reasonCodes: [MQTTReasonCode]
        public var properties: MQTTProperties

        public init(packetID: UInt16, reasonCodes: [MQTTReasonCode] = [], properties: MQTTProperties = []) {
            self.packetID = packetID
            self.reasonCodes = reasonCodes
            self.properties = properties
        }
    }
}

extension MQTTPacket {
    /// PUBLISH: a message.
    public struct Publish: Sendable, Hashable {
        /// Empty only in 5.0 and with a topic alias.
        public var topic: String
        public var payload: [UInt8]
        public var qos: QoS
        public var isRetained: Bool
        /// DUP: this may be a repetition; never at QoS 0 [MQTT-3.3.1-2].
        public var isDuplicate: Bool
        /// Zero at QoS 0, and only there [MQTT-2.2.1-2].
        public var packetID: UInt16
        public var properties: MQTTProperties

        public init(
            topic: String, payload: [UInt8], qos: QoS = .atMostOnce, isRetained: Bool = false,
            isDuplicate: Bool = false,
            packetID: UInt16 = 0, properties: MQTTProperties = []
        ) {
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.isRetained = isRetained
            self.isDuplicate = isDuplicate
            self.packetID = packetID
            self.properties = properties
        }
    }

    /// PUBACK, PUBREC, PUBREL and PUBCOMP, which have the same fields.
    public struct Acknowledgement: Sendable, Hashable {
        public var packetID: UInt16
        /// Success in 3.1 and 3.1.1, which have no reason codes here.
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(packetID: UInt16, reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []) {
            self.packetID = packetID
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }
}

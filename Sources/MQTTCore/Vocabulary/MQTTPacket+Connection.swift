extension MQTTPacket {
    /// CONNECT: a client asks for a session.
    public struct Connect: Sendable, Hashable {
        public var version: MQTTVersion
        public var clientID: String
        /// Clean Start in 5.0, Clean Session before.
        public var cleanStart: Bool
        /// In seconds; 0 turns it off.
        public var keepAlive: UInt16
        public var userName: String?
        /// Without a user name in 5.0 only [MQTT-3.1.2-22, 3.1.1].
        public var password: [UInt8]?
        public var will: MQTTWill?
        public var properties: MQTTProperties

        public init(
            version: MQTTVersion = .v5_0, clientID: String, cleanStart: Bool = true, keepAlive: UInt16 = 60,
            userName: String? = nil, password: [UInt8]? = nil, will: MQTTWill? = nil, properties: MQTTProperties = []
        ) {
            self.version = version
            self.clientID = clientID
            self.cleanStart = cleanStart
            self.keepAlive = keepAlive
            self.userName = userName
            self.password = password
            self.will = will
            self.properties = properties
        }
    }

    /// CONNACK: the server's answer.
    public struct Connack: Sendable, Hashable {
        /// False in 3.1, which has no such flag.
        public var sessionPresent: Bool
        /// The return codes of 3.1 and 3.1.1 appear as the reason codes that say the same.
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(
            sessionPresent: Bool = false, reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []
        ) {
            self.sessionPresent = sessionPresent
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }

    /// DISCONNECT: the last packet; only clients send it in 3.1 and 3.1.1, where it is empty.
    public struct Disconnect: Sendable, Hashable {
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(reasonCode: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = []) {
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }

    /// AUTH: a step of enhanced authentication; 5.0 only.
    public struct Auth: Sendable, Hashable {
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []) {
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }
}

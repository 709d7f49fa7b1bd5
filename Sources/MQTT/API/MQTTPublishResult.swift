public import MQTTCore

/// The server's answer to a message: its reason code, and with 5.0 the properties.
public struct MQTTPublishResult: Sendable, Hashable {
    /// The reason code; `success` where the version of MQTT has none.
    public var reasonCode: MQTTReasonCode
    /// Reason String and user properties; of a QoS 2 message those of PUBREC, then those of PUBCOMP; 5.0 only.
    public var properties: MQTTProperties

    /// Makes a result, for tests.
    public init(_ reasonCode: MQTTReasonCode, properties: MQTTProperties = []) {
        self.reasonCode = reasonCode
        self.properties = properties
    }
}

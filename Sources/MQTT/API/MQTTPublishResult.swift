public import MQTTCore

/// What a server said to a message or a request: its code, and with 5.0 what it added in words.
public struct MQTTPublishResult: Sendable, Hashable {
    /// The reason code; ``MQTTReasonCode/success`` where the version has none.
    public var reasonCode: MQTTReasonCode
    /// Reason String and user properties; of a QoS 2 message those of PUBREC, then those of PUBCOMP.
    public var properties: MQTTProperties

    /// Makes a result, for tests.
    public init(_ reasonCode: MQTTReasonCode, properties: MQTTProperties = []) {
        self.reasonCode = reasonCode
        self.properties = properties
    }
}

extension MQTTProperties {
    /// These and others behind them; what may be there only once keeps its first value.
    func followed(by others: MQTTProperties) -> MQTTProperties {
        if isEmpty { return others }
        var all = self
        for property in others.list where property.identifier == .userProperty || self[property.identifier] == nil {
            all.append(property)
        }
        return all
    }
}

extension MQTTReasonCode {
    /// The code, with the server's own words behind it where it said some.
    func words(_ properties: MQTTProperties) -> String {
        properties.reasonString.map { "\(self): \($0)" } ?? description
    }
}

import MQTTCore

extension MQTTProperties {
    /// These properties, then others; one that is allowed only once keeps its first value.
    func followed(by others: MQTTProperties) -> MQTTProperties {
        if isEmpty { return others }
        var all = self
        for property in others.list where property.identifier == .userProperty || self[property.identifier] == nil {
            all.append(property)
        }
        return all
    }

    /// These properties, with a content type unless they have one.
    func declaring(_ contentType: String) -> MQTTProperties {
        guard self.contentType == nil else { return self }
        var properties = self
        properties.contentType = contentType
        return properties
    }

    /// A reason code, with the Reason String that came with it.
    func text(after code: MQTTReasonCode) -> String { reasonString.map { "\(code): \($0)" } ?? code.description }
}

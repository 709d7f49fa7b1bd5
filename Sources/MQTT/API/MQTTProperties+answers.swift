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

    /// A reason code, with the Reason String that came with it, unless that only repeats the name of the code.
    func text(after code: MQTTReasonCode) -> String {
        guard let reason = reasonString, !reason.isEmpty else { return code.description }
        // Servers spell it differently: `bad_username_or_password`, `Not authorized.`
        let letters = { (text: String) in text.lowercased().filter(\.isLetter) }
        return code.name.map(letters) == letters(reason) ? code.description : "\(code): \(reason)"
    }
}

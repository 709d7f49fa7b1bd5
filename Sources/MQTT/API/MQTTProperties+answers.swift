import MQTTCore
import MessagingWire

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

    /// A reason code, with the Reason String that came with it on one line, unless that only repeats the name of the code.
    func text(after code: MQTTReasonCode) -> String {
        text(after: code, named: code.description)
    }

    /// The same for DISCONNECT, where 0x00 is not called success (MQTT 5.0, 3.14.2.1).
    func text(afterDisconnect code: MQTTReasonCode) -> String {
        text(after: code, named: code == .normalDisconnection ? "normal disconnection (0x00)" : code.description)
    }

    private func text(after code: MQTTReasonCode, named name: String) -> String {
        guard let reason = reasonString, !reason.isEmpty else { return name }
        // Servers spell it differently: `bad_username_or_password`, `Not authorized.`
        let letters = { (text: String) in text.lowercased().filter(\.isLetter) }
        return code.name.map(letters) == letters(reason) ? name : "\(name): \(OneLine.text(reason))"
    }
}

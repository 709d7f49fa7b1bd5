package import MQTTCore
import MessagingWire

/// Packets on one line, for people, without credentials.
package enum MQTTPacketLine {
    package static func text(_ packet: MQTTPacket) -> String {
        switch packet {
        case .connect(let connect):
            let expiry = connect.properties.sessionExpiryInterval.map { " session expiry \($0)" } ?? ""
            let will = connect.will.map { " will to \(quoted($0.topic))" } ?? ""
            return
                "CONNECT \(connect.version) \(quoted(connect.clientID))\(connect.cleanStart ? " clean" : "") keep alive \(connect.keepAlive)\(expiry)\(will)"
        case .publish(let publish):
            let id = publish.packetID == 0 ? "" : " id \(publish.packetID)"
            let flags = (publish.isDuplicate ? " DUP" : "") + (publish.isRetained ? " retained" : "")
            let properties = publish.properties.map { " \(name(of: $0))" }.joined()
            return
                "PUBLISH\(id) \(publish.qos)\(flags) to \(quoted(publish.topic)) \(OneLine.payload(publish.payload[...]))\(OneLine.text(properties, limit: 200))"
        case .puback(let answer), .pubrec(let answer), .pubrel(let answer), .pubcomp(let answer):
            return "\(packet.type) id \(answer.packetID)\(code(answer.reasonCode))"
        case .subscribe(let subscribe):
            let list = subscribe.subscriptions.prefix(8).map { "\(quoted($0.filter)) \($0.qos)" }.joined(
                separator: ", ")
            let identifier = subscribe.properties.subscriptionIdentifiers.first.map { " identifier \($0)" } ?? ""
            return "SUBSCRIBE id \(subscribe.packetID)\(identifier) \(list)"
        case .unsubscribe(let unsubscribe):
            let list = unsubscribe.filters.prefix(8).map(quoted).joined(separator: ", ")
            return "UNSUBSCRIBE id \(unsubscribe.packetID) \(list)"
        case .disconnect(let disconnect): return "DISCONNECT\(code(disconnect.reasonCode))"
        case .auth(let auth): return "AUTH\(code(auth.reasonCode))"
        default: return "\(packet.type)"
        }
    }

    /// A property's name, and its value if that is a number.
    static func name(of property: MQTTProperty) -> String {
        if case .integer(let value) = property.value { return "\(property.identifier) \(value)" }
        return "\(property.identifier)"
    }

    private static func quoted(_ text: String) -> String { "'\(OneLine.text(text, limit: 100))'" }
    private static func code(_ code: MQTTReasonCode) -> String { code == .success ? "" : " \(code)" }
}

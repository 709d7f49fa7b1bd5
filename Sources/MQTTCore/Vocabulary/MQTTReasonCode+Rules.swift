/// The reason codes that each packet of MQTT 5.0 may carry, and which side may send them.
///
/// The one table for the decoder, the encoder and both roles of the engine. A code below 0x80 that it does not list
/// breaks the protocol in every packet: its meaning could be anything. A code from 0x80 on that it does not list is a
/// failure like those that it does, except in AUTH, which reports no failures [MQTT 5.0 4.12].
struct MQTTReasonCodeRule {
    /// What a client may send, in ascending order.
    let fromClient: [UInt8]
    /// What a server may send, in ascending order.
    let fromServer: [UInt8]
    /// Whether codes from 0x80 on that are not listed count as failures.
    let hasFailures: Bool
    let clause: StaticString

    private init(_ both: [UInt8], _ clause: StaticString) {
        self.init(client: both, server: both, clause)
    }

    private init(client: [UInt8], server: [UInt8], hasFailures: Bool = true, _ clause: StaticString) {
        fromClient = client
        fromServer = server
        self.hasFailures = hasFailures
        self.clause = clause
    }

    /// Whether a packet with this code is one that `sender` may send; of either side if `sender` is nil.
    func allows(_ code: UInt8, from sender: MQTTRole?) -> Bool {
        let isClients = fromClient.contains(code)
        let isServers = fromServer.contains(code)
        if !isClients && !isServers { return hasFailures && code >= 0x80 }
        return switch sender {
        case .client: isClients
        case .server: isServers
        case nil: true
        }
    }

    /// The rule of a packet type; nil for packets without reason codes.
    static func rule(for type: MQTTPacketType) -> MQTTReasonCodeRule? {
        switch type {
        case .connack: connack
        case .puback: puback
        case .pubrec: pubrec
        case .pubrel: pubrel
        case .pubcomp: pubcomp
        case .suback: suback
        case .unsuback: unsuback
        case .disconnect: disconnect
        case .auth: auth
        case .connect, .publish, .subscribe, .unsubscribe, .pingreq, .pingresp: nil
        }
    }

    /// MQTT 5.0 3.2.2.2.
    private static let connack = MQTTReasonCodeRule(
        client: [],
        server: [
            0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A,
            0x9B, 0x9C, 0x9D, 0x9F,
        ], "MQTT-3.2.2-8")
    /// MQTT 5.0 3.4.2.1.
    private static let puback = MQTTReasonCodeRule(received, "MQTT-3.4.2-1")
    /// MQTT 5.0 3.5.2.1.
    private static let pubrec = MQTTReasonCodeRule(received, "MQTT-3.5.2-1")
    private static let received: [UInt8] = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
    /// MQTT 5.0 3.6.2.1.
    private static let pubrel = MQTTReasonCodeRule([0x00, 0x92], "MQTT-3.6.2-1")
    /// MQTT 5.0 3.7.2.1.
    private static let pubcomp = MQTTReasonCodeRule([0x00, 0x92], "MQTT-3.7.2-1")
    /// MQTT 5.0 3.9.3.
    private static let suback = MQTTReasonCodeRule(
        client: [], server: [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2], "MQTT-3.9.3-2")
    /// MQTT 5.0 3.11.3.
    private static let unsuback = MQTTReasonCodeRule(
        client: [], server: [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91], "MQTT-3.11.3-2")
    /// MQTT 5.0 3.14.2.1.
    private static let disconnect = MQTTReasonCodeRule(
        client: [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99],
        server: [
            0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
            0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
        ], "MQTT-3.14.2-1")
    /// MQTT 5.0 3.15.2.1.
    private static let auth = MQTTReasonCodeRule(
        client: [0x18, 0x19], server: [0x00, 0x18], hasFailures: false, "MQTT-3.15.2-1")
}

extension MQTTReasonCode {
    /// Reads a code of MQTT 5.0, which has to be one that `sender` may send in this packet.
    init(_ code: UInt8, in type: MQTTPacketType, from sender: MQTTRole?) throws(MQTTProtocolError) {
        self.init(rawValue: code)
        guard let rule = MQTTReasonCodeRule.rule(for: type) else { return }
        // Most are.
        guard code != 0 || type == .auth, !rule.allows(code, from: sender) else { return }
        throw violation(in: type, from: sender, rule.clause)
    }

    @inline(never)
    private func violation(
        in type: MQTTPacketType, from sender: MQTTRole?, _ clause: StaticString
    ) -> MQTTProtocolError {
        let side = sender.map { "a \($0)" } ?? "neither side"
        let verb = sender == nil ? "may send" : "may not send"
        return .protocolError("\(type) has the reason code \(self), which \(side) \(verb).", "\(clause)")
    }

    /// Whether this side may send the code in a packet of this type, of MQTT 5.0.
    func isAllowed(in type: MQTTPacketType, from sender: MQTTRole? = nil) -> Bool {
        MQTTReasonCodeRule.rule(for: type)?.allows(rawValue, from: sender) ?? false
    }
}

extension MQTTReasonCode {
    /// Throws unless one of the two sides may send this code in a packet of this type, of MQTT 5.0.
    func checkSent(in type: MQTTPacketType) throws(MQTTEncodingError) {
        guard !isAllowed(in: type) else { return }
        throw .init(
            .invalidReason, "\(type) has no reason code \(self). Use one of those that the specification lists.")
    }
}

import MessagingWire

/// Bytes from the peer that break the protocol; the connection has to be closed.
public struct MQTTProtocolError: Error, Sendable, Hashable {
    /// The reason code for DISCONNECT (or CONNACK) of MQTT 5.0 before closing; 3.1 and 3.1.1 close without a packet.
    public let reasonCode: MQTTReasonCode
    /// What is wrong: a sentence for people.
    public let message: String
    /// The clause that was broken, such as "MQTT-3.3.1-4", or "2.2.2.2" for prose without an id.
    public let clause: String

    public init(_ reasonCode: MQTTReasonCode, _ message: String, clause: String) {
        self.reasonCode = reasonCode
        self.message = message
        self.clause = clause
    }

    static func malformed(_ message: String, _ clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.malformedPacket, message, clause: clause)
    }

    /// The clause that is broken by what is not a packet at all. A packet that is not CONNACK breaks it as a protocol error.
    private static let clauseOfOtherProtocols = "MQTT-3.2.0-1"

    /// Whether the server answered CONNECT in another protocol than MQTT of any version.
    package var isOtherProtocol: Bool {
        reasonCode == .malformedPacket && clause.hasSameBytes(as: Self.clauseOfOtherProtocols)
    }

    /// Whether the two ends do not agree on the meaning of a topic alias.
    package var isAboutTopicAlias: Bool {
        reasonCode == .topicAliasInvalid || clause.hasSameBytes(as: Self.clauseOfUnknownAlias)
    }

    static let clauseOfUnknownAlias = "MQTT 5.0 3.3.2.3.4"

    static let answersInTLS = malformed(
        "It answers in TLS. Use a URL with TLS (mqtts://, wss://), or the port without.", clauseOfOtherProtocols)

    static func answersInText(_ line: String) -> MQTTProtocolError {
        let other = line == "ERROR" || line == "CONNECTED" ? "STOMP's" : "another protocol's"
        return malformed("It answers with the text \"\(line)\", which is \(other).", clauseOfOtherProtocols)
    }

    static func protocolError(_ message: String, _ clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.protocolError, message, clause: clause)
    }
}

extension MQTTProtocolError: CustomStringConvertible {
    public var description: String { OneLine.escaped("\(message) [\(clause), \(reasonCode)]") }
}

public import MQTTCore
import MessagingWire
public import STOMPCore

/// A kind of packet or frame.
public enum LoopbackPacket: Sendable, Hashable {
    /// A packet of MQTT.
    case mqtt(MQTTPacketType)
    /// A frame of STOMP.
    case stomp(STOMPCommand)
}

extension LoopbackPacket: CustomStringConvertible {
    public var description: String {
        switch self {
        case .mqtt(let type): type.description
        case .stomp(let command): command.description
        }
    }
}

/// Which way a packet or frame travels.
public enum LoopbackDirection: Sendable, Hashable {
    /// From a client to the broker.
    case received
    /// From the broker to a client.
    case sent
}

/// What happens to one packet or frame; see ``LoopbackBroker/LoopbackBroker/inject(_:_:_:number:client:)``.
public enum LoopbackPacketFault: Sendable, Hashable {
    /// It gets lost.
    case drop
    /// It arrives twice.
    case duplicate
    /// The connection is cut in its place, as by a failing network.
    case cut
}

/// A packet or frame that a client has sent to a broker.
public struct LoopbackArrival: Sendable, Hashable {
    /// The name of the client, as in ``LoopbackBroker/LoopbackBroker/clients``.
    public let client: String
    /// What it sent.
    public let packet: LoopbackPacket
    /// The topic of PUBLISH, the first filter of SUBSCRIBE or UNSUBSCRIBE, or the destination of a frame; nil for others.
    public let topic: String?
    /// The payload of PUBLISH, or the body of a frame; empty for others.
    public let payload: [UInt8]

    /// Whether an injected fault dropped it or cut the connection in its place, so that the broker did not process it.
    /// True only with `includesDropped` of ``LoopbackBroker/LoopbackBroker/arrivals(maximumCount:includesDropped:)``.
    public internal(set) var wasDropped = false
    /// DUP of PUBLISH.
    var isDuplicate = false
    /// The packet identifier of PUBREC; 0 for others.
    var packetID: UInt16 = 0
    /// Whether CONNECT has a will.
    var hasWill = false
    /// Whether the connection of MQTT continues a session, as its CONNACK reported.
    var continuesSession = false

    /// The payload as text; bytes that are not UTF-8 are replaced.
    public var text: String { String(decoding: payload, as: UTF8.self) }

    /// Whether client, packet, topic, payload and `wasDropped` are equal.
    public static func == (first: LoopbackArrival, second: LoopbackArrival) -> Bool {
        first.client == second.client && first.packet == second.packet && first.topic == second.topic
            && first.payload == second.payload && first.wasDropped == second.wasDropped
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(client)
        hasher.combine(packet)
        hasher.combine(topic)
        hasher.combine(payload)
    }
}

extension LoopbackArrival: CustomStringConvertible {
    public var description: String {
        "\(packet) of \(client)" + (topic.map { " to \($0)" } ?? "")
            + (payload.isEmpty ? "" : ", \(OneLine.bytes(payload.count))") + (wasDropped ? ", dropped" : "")
    }
}

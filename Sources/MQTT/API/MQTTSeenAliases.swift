import MQTTCore
import Messaging
import Synchronization
import Transport

/// The topic aliases of a connection that is looked at (MQTT 5.0, section 3.3.2.3.4), so that every PUBLISH can be shown
/// with its topic. As many as client and server have allowed each other.
final class MQTTSeenAliases: Sendable {
    private let topics = Lock<[FrameDirection: [UInt16: String]]>([:])

    /// The topic of a PUBLISH; nil when it has only an alias that was set before anybody looked.
    func topic(of packet: MQTTPacket.Publish, _ direction: FrameDirection) -> String? {
        guard let alias = packet.properties.topicAlias else { return packet.topic.isEmpty ? nil : packet.topic }
        return topic(packet.topic, alias: alias, direction)
    }

    /// The topic of a PUBLISH with an alias, whose own topic may be empty.
    func topic(_ topic: String, alias: UInt16, _ direction: FrameDirection) -> String? {
        topics.withLock { topics in
            if !topic.isEmpty { topics[direction, default: [:]][alias] = topic }
            return topics[direction]?[alias]
        }
    }

    /// A new connection has none [MQTT-3.3.2-7].
    func reset() {
        topics.withLock { $0 = [:] }
    }
}

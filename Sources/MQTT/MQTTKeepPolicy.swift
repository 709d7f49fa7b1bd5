/// What becomes of QoS 1 and 2 messages that match no subscription, as those of a session that is resumed before the
/// application has subscribed again.
///
/// They are acknowledged and kept, and the next subscription that matches gets them first, in their order; with a
/// ``MQTTConfiguration/sessionStore`` they are stored before they are acknowledged, and wait over the end of the process.
/// Whatever ends their wait otherwise is told by ``MQTTEvent/keptMessageDropped(topic:reason:)``. QoS 0 is not kept.
public struct MQTTKeepPolicy: Sendable, Equatable {
    /// The most messages; the oldest gives way to the newest.
    public var messages: Int
    /// The most bytes of topics, properties and payloads.
    public var bytes: Int
    /// How long a message is kept at most; its own expiry may come before that.
    public var timeToLive: Duration

    public init(messages: Int = 1000, bytes: Int = 1 << 20, timeToLive: Duration = .seconds(3600)) {
        self.messages = messages
        self.bytes = bytes
        self.timeToLive = timeToLive
    }

    /// Such messages are acknowledged and dropped.
    public static let off = MQTTKeepPolicy(messages: 0, bytes: 0)

    /// Why a kept message was given up.
    public enum DropReason: Sendable, Hashable {
        /// ``MQTTKeepPolicy/messages`` were there.
        case count
        /// ``MQTTKeepPolicy/bytes`` were there, or the message alone is larger.
        case bytes
        /// ``MQTTKeepPolicy/timeToLive`` or the message's own expiry passed.
        case age
    }

    var isOn: Bool { messages > 0 && bytes > 0 }
}

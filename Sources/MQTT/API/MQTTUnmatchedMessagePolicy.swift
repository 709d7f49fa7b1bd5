/// What becomes of QoS 1 and 2 messages that match no subscription, as those of a session that is resumed before the
/// application has subscribed again.
///
/// They are acknowledged and kept, and the next subscription that matches gets them first, in their order; with a
/// ``MQTTConfiguration/sessionStore`` they are stored before they are acknowledged, and wait over the end of the process.
/// Whatever ends their wait otherwise is told by ``MQTTEvent/unmatchedMessageDropped(topic:reason:)``. QoS 0 is not kept.
public struct MQTTUnmatchedMessagePolicy: Sendable, Equatable {
    /// The most messages; the oldest gives way to the newest.
    public var maximumMessages: Int
    /// The most bytes of topics, properties and payloads.
    public var maximumBytes: Int
    /// How long a message is kept at most; its own expiry may come before that.
    public var timeToLive: Duration

    /// Makes a policy.
    public init(maximumMessages: Int = 1000, maximumBytes: Int = 1 << 20, timeToLive: Duration = .seconds(3600)) {
        self.maximumMessages = maximumMessages
        self.maximumBytes = maximumBytes
        self.timeToLive = timeToLive
    }

    /// Such messages are acknowledged and dropped.
    public static let off = MQTTUnmatchedMessagePolicy(maximumMessages: 0, maximumBytes: 0)

    /// Why a kept message was given up.
    public enum DropReason: Sendable, Hashable {
        /// ``MQTTUnmatchedMessagePolicy/maximumMessages`` were there.
        case count
        /// ``MQTTUnmatchedMessagePolicy/maximumBytes`` were there, or the message alone is larger.
        case bytes
        /// ``MQTTUnmatchedMessagePolicy/timeToLive`` or the message's own expiry passed.
        case age
    }

    var isOn: Bool { maximumMessages > 0 && maximumBytes > 0 }
}

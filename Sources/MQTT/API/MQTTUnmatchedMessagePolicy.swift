/// Bounds for QoS 1 and 2 messages that match no subscription and are kept for a later one, such as those of a session
/// that is resumed before the application has subscribed again.
///
/// They are acknowledged and kept, those of a resumed session without a store after ten seconds, and the next subscription that
/// matches gets them first, in their order; with a ``MQTTConfiguration/sessionStore`` they are stored before they are
/// acknowledged, and survive the end of the process. Messages that are dropped are reported as
/// ``MQTTEvent/unmatchedMessageDropped(topic:reason:)``. QoS 0 messages are not kept.
public struct MQTTUnmatchedMessagePolicy: Sendable, Equatable {
    /// The maximum number of messages; the oldest is dropped for the newest. Default: 1,000.
    public var maximumMessages: Int
    /// The maximum number of bytes of topics, properties and payloads. Default: 1 MiB.
    public var maximumBytes: Int
    /// The maximum time that a message is kept; its own expiry may be earlier. Default: 1 hour.
    public var timeToLive: Duration

    /// Makes a policy.
    public init(maximumMessages: Int = 1000, maximumBytes: Int = 1 << 20, timeToLive: Duration = .seconds(3600)) {
        self.maximumMessages = maximumMessages
        self.maximumBytes = maximumBytes
        self.timeToLive = timeToLive
    }

    /// Messages that match no subscription are acknowledged, dropped and reported, each with the reason `count`.
    public static let off = MQTTUnmatchedMessagePolicy(maximumMessages: 0, maximumBytes: 0)

    /// Why a kept message was dropped.
    public enum DropReason: Sendable, Hashable {
        /// There were ``MQTTUnmatchedMessagePolicy/maximumMessages``.
        case count
        /// There were ``MQTTUnmatchedMessagePolicy/maximumBytes``, or the message alone is larger.
        case bytes
        /// ``MQTTUnmatchedMessagePolicy/timeToLive`` or the message's own expiry has passed.
        case age
    }

    var isOn: Bool { maximumMessages > 0 && maximumBytes > 0 }
}

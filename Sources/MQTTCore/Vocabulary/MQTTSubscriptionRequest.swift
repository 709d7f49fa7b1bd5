/// One entry of a SUBSCRIBE packet: a topic filter and how its messages shall come.
public struct MQTTSubscriptionRequest: Sendable, Hashable {
    /// When a new subscription brings the messages that the server retains.
    public enum RetainHandling: UInt8, Sendable, Hashable, CaseIterable {
        case sendAtSubscribe = 0
        case sendIfNew = 1
        case doNotSend = 2
    }

    /// The topic filter, with `$share/name/` in front if the subscription is shared.
    public var filter: String
    /// The highest QoS that messages are delivered with. Default: 2.
    public var qos: QoS
    /// Messages that this connection published do not come back; 5.0 only, never with a shared one [MQTT-3.8.3-4].
    public var noLocal: Bool
    /// Messages keep the RETAIN flag that they were published with; 5.0 only.
    public var retainAsPublished: Bool
    /// 5.0 only.
    public var retainHandling: RetainHandling

    public init(
        filter: String, qos: QoS = .exactlyOnce, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .sendAtSubscribe
    ) {
        self.filter = filter
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
    }
}

/// What a receiver has to know of a PUBLISH packet's properties at once, found without an allocation.
public struct MQTTPublishScan: Sendable, Hashable {
    /// Zero if there is none.
    public var topicAlias: UInt16 = 0
    /// How many subscription identifiers there are.
    public var subscriptionIdentifierCount = 0
    /// The first of them, zero if there is none.
    public var firstSubscriptionIdentifier: UInt32 = 0
    /// In seconds.
    public var messageExpiryInterval: UInt32?
}

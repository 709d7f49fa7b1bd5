/// Typed access to every property that appears once; nil means absent.
extension MQTTProperties {
    /// Payload Format Indicator: whether the payload is UTF-8 text.
    public var payloadFormatIndicator: Bool? {
        get { integer(.payloadFormatIndicator).map { $0 != 0 } }
        set { self[.payloadFormatIndicator] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    /// Message Expiry Interval in seconds.
    public var messageExpiryInterval: UInt32? {
        get { integer(.messageExpiryInterval) }
        set { self[.messageExpiryInterval] = newValue.map { .integer($0) } }
    }

    /// Whether there is a Message Expiry Interval and nothing else.
    var isExpiryAlone: Bool { encoded.count == 5 && messageExpiryInterval != nil }

    /// Content Type, as the application defines it; usually a MIME type.
    public var contentType: String? {
        get { string(.contentType) }
        set { self[.contentType] = newValue.map { .string($0) } }
    }

    /// Response Topic: where an answer is expected.
    public var responseTopic: String? {
        get { string(.responseTopic) }
        set { self[.responseTopic] = newValue.map { .string($0) } }
    }

    /// Correlation Data, which an answer repeats.
    public var correlationData: [UInt8]? {
        get { binary(.correlationData) }
        set { self[.correlationData] = newValue.map { .binary($0) } }
    }

    /// Session Expiry Interval in seconds; 0xFFFFFFFF never expires.
    public var sessionExpiryInterval: UInt32? {
        get { integer(.sessionExpiryInterval) }
        set { self[.sessionExpiryInterval] = newValue.map { .integer($0) } }
    }

    /// Assigned Client Identifier, for a client that sent none [MQTT-3.2.2-16].
    public var assignedClientIdentifier: String? {
        get { string(.assignedClientIdentifier) }
        set { self[.assignedClientIdentifier] = newValue.map { .string($0) } }
    }

    /// Server Keep Alive in seconds, which replaces the client's [MQTT-3.1.2-21].
    public var serverKeepAlive: UInt16? {
        get { integer(.serverKeepAlive).flatMap { UInt16(exactly: $0) } }
        set { self[.serverKeepAlive] = newValue.map { .integer(UInt32($0)) } }
    }

    /// Authentication Method of the enhanced authentication.
    public var authenticationMethod: String? {
        get { string(.authenticationMethod) }
        set { self[.authenticationMethod] = newValue.map { .string($0) } }
    }

    /// Authentication Data, as the method defines it.
    public var authenticationData: [UInt8]? {
        get { binary(.authenticationData) }
        set { self[.authenticationData] = newValue.map { .binary($0) } }
    }

    /// Request Problem Information: whether reason strings are welcome; absent means yes.
    public var requestProblemInformation: Bool? {
        get { integer(.requestProblemInformation).map { $0 != 0 } }
        set { self[.requestProblemInformation] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    /// Will Delay Interval in seconds.
    public var willDelayInterval: UInt32? {
        get { integer(.willDelayInterval) }
        set { self[.willDelayInterval] = newValue.map { .integer($0) } }
    }

    /// Request Response Information: asks the server for Response Information.
    public var requestResponseInformation: Bool? {
        get { integer(.requestResponseInformation).map { $0 != 0 } }
        set { self[.requestResponseInformation] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    /// Response Information: a basis for response topics.
    public var responseInformation: String? {
        get { string(.responseInformation) }
        set { self[.responseInformation] = newValue.map { .string($0) } }
    }

    /// Server Reference: another server to use.
    public var serverReference: String? {
        get { string(.serverReference) }
        set { self[.serverReference] = newValue.map { .string($0) } }
    }

    /// Reason String, for people, not to be parsed.
    public var reasonString: String? {
        get { string(.reasonString) }
        set { self[.reasonString] = newValue.map { .string($0) } }
    }

    /// Receive Maximum: QoS 1 and 2 messages at a time; absent means 65,535.
    public var receiveMaximum: UInt16? {
        get { integer(.receiveMaximum).flatMap { UInt16(exactly: $0) } }
        set { self[.receiveMaximum] = newValue.map { .integer(UInt32($0)) } }
    }

    /// Topic Alias Maximum; absent means none.
    public var topicAliasMaximum: UInt16? {
        get { integer(.topicAliasMaximum).flatMap { UInt16(exactly: $0) } }
        set { self[.topicAliasMaximum] = newValue.map { .integer(UInt32($0)) } }
    }

    /// Topic Alias, 1 and above [MQTT-3.3.2-8].
    public var topicAlias: UInt16? {
        get { integer(.topicAlias).flatMap { UInt16(exactly: $0) } }
        set { self[.topicAlias] = newValue.map { .integer(UInt32($0)) } }
    }

    /// Maximum QoS of the server, 0 or 1; absent means 2.
    public var maximumQoS: QoS? {
        get { integer(.maximumQoS).flatMap { UInt8(exactly: $0).flatMap(QoS.init) } }
        set { self[.maximumQoS] = newValue.map { .integer(UInt32($0.rawValue)) } }
    }

    /// Retain Available; absent means yes.
    public var retainAvailable: Bool? {
        get { integer(.retainAvailable).map { $0 != 0 } }
        set { self[.retainAvailable] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    /// Maximum Packet Size in bytes; absent means no limit but the format's.
    public var maximumPacketSize: UInt32? {
        get { integer(.maximumPacketSize) }
        set { self[.maximumPacketSize] = newValue.map { .integer($0) } }
    }

    /// Wildcard Subscription Available; absent means yes.
    public var wildcardSubscriptionAvailable: Bool? {
        get { integer(.wildcardSubscriptionAvailable).map { $0 != 0 } }
        set { self[.wildcardSubscriptionAvailable] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    /// Subscription Identifier Available; absent means yes.
    public var subscriptionIdentifierAvailable: Bool? {
        get { integer(.subscriptionIdentifierAvailable).map { $0 != 0 } }
        set { self[.subscriptionIdentifierAvailable] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    /// Shared Subscription Available; absent means yes.
    public var sharedSubscriptionAvailable: Bool? {
        get { integer(.sharedSubscriptionAvailable).map { $0 != 0 } }
        set { self[.sharedSubscriptionAvailable] = newValue.map { .integer($0 ? 1 : 0) } }
    }

    private func integer(_ identifier: MQTTPropertyIdentifier) -> UInt32? {
        if case .integer(let value)? = self[identifier] { value } else { nil }
    }

    private func string(_ identifier: MQTTPropertyIdentifier) -> String? {
        if case .string(let value)? = self[identifier] { value } else { nil }
    }

    private func binary(_ identifier: MQTTPropertyIdentifier) -> [UInt8]? {
        if case .binary(let value)? = self[identifier] { value } else { nil }
    }
}

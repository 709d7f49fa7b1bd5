public import STOMPCore

/// What a subscription asks of the broker beyond the specification. Each wish is turned into the headers of the broker
/// that is connected, known from its `server` header; what it cannot do is an error before anything is sent.
public struct STOMPSubscribeOptions: Sendable {
    /// A filter over message headers in the broker's language (ActiveMQ: `country IN ('FR', 'DE')`).
    public var selector: String?
    /// The name under which the broker keeps messages while the client is away; ActiveMQ also wants a `clientID`.
    public var durableName: String?
    /// How many messages the broker sends ahead of their acknowledgements.
    public var prefetch: Int?
    /// Further headers, sent as they are.
    public var headers: STOMPHeaders

    public init(
        selector: String? = nil, durableName: String? = nil, prefetch: Int? = nil, headers: STOMPHeaders = [:]
    ) {
        self.selector = selector
        self.durableName = durableName
        self.prefetch = prefetch
        self.headers = headers
    }

    /// The headers for a kind of broker.
    func headers(
        for profile: STOMPBrokerProfile, acknowledgement: STOMPAckMode, clientID: String?
    ) throws(STOMPError) -> STOMPHeaders {
        var result = headers
        if let selector {
            guard profile.supportsSelectors || profile == .generic else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) passes over selectors: every message would come; filter by destination instead")
            }
            result.add("selector", selector)
        }
        if let durableName {
            guard let more = profile.durableHeaders(name: durableName) else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) is not known to keep durable subscriptions; use its own headers in `headers`")
            }
            if case .named = profile.durable, clientID == nil {
                throw STOMPError(
                    .invalidRequest,
                    "\(profile.name) keeps a durable subscription for a client-id; set `clientID` in the configuration")
            }
            result.fields += more.fields
        }
        if let prefetch {
            guard prefetch > 0 else {
                throw STOMPError(
                    .invalidRequest, "a prefetch of \(prefetch) would let nothing come; it must be positive")
            }
            guard !profile.prefetchNeedsAcknowledgement || acknowledgement != .auto else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) bounds only what is acknowledged: use ack mode client or clientIndividual")
            }
            guard let more = profile.prefetchHeaders(messages: prefetch) else {
                throw STOMPError(
                    .unsupportedByBroker, "\(profile.name) is not known to bound what it sends; leave prefetch out")
            }
            result.fields += more.fields
        }
        return result
    }
}

public import STOMPCore

/// Options of a subscription beyond the specification. Each is translated into the headers of the connected broker, which
/// is known from its `server` header; an option that the broker does not support is an error before anything is sent.
public struct STOMPSubscribeOptions: Sendable {
    /// A filter on message headers in the broker's language (ActiveMQ: `country IN ('FR', 'DE')`). Default: nil.
    public var selector: String?
    /// The name under which the broker stores messages while the client is not connected; ActiveMQ also requires a
    /// ``STOMPConfiguration/clientID``. Default: nil, not durable.
    public var durableName: String?
    /// The number of messages that the broker sends ahead of their acknowledgements. Default: nil, the broker's choice.
    public var prefetch: Int?
    /// More headers, sent unchanged.
    public var headers: STOMPHeaders

    /// Makes options; what is nil is not sent.
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
                    "\(profile.name) ignores selectors, so that every message would arrive. Filter by destination instead."
                )
            }
            result.add("selector", selector)
        }
        if let durableName {
            guard let more = profile.durableHeaders(name: durableName) else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) is not known to support durable subscriptions. Set its own headers in `headers`.")
            }
            if case .named = profile.durable, clientID == nil {
                throw STOMPError(
                    .invalidRequest,
                    "\(profile.name) stores a durable subscription under a client-id. Set `clientID` in the configuration."
                )
            }
            result.fields += more.fields
        }
        if let prefetch {
            guard prefetch > 0 else {
                throw STOMPError(
                    .invalidRequest,
                    "The prefetch is \(prefetch), so that no message would arrive. Set it to 1 or more.")
            }
            guard !profile.prefetchNeedsAcknowledgement || acknowledgement != .auto else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) applies prefetch only to acknowledged messages. Use the ack mode client or clientIndividual."
                )
            }
            guard let more = profile.prefetchHeaders(messages: prefetch) else {
                throw STOMPError(
                    .unsupportedByBroker, "\(profile.name) is not known to support a prefetch. Leave prefetch out.")
            }
            result.fields += more.fields
        }
        return result
    }
}

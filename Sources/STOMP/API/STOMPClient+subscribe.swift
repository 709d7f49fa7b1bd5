public import Messaging
public import STOMPCore
import Synchronization

extension STOMPClient {
    /// Subscribes and returns the messages as a sequence, once the broker has confirmed the subscription.
    ///
    /// The sequence is registered before SUBSCRIBE is sent, so that no message is missed. While the client is
    /// reconnecting, this waits for the next connection.
    ///
    /// By default a slow receiver with `acknowledgement: .auto` loses messages: when the buffer is full the oldest are
    /// dropped, which ``STOMPMessage/droppedBefore`` and ``STOMPSubscription/droppedCount`` count.
    /// `BufferPolicy(overflow: .pauseReading)` loses none. Messages with client acknowledgements are never dropped.
    /// - Parameters:
    ///   - destination: in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    ///   - acknowledgement: whether delivery acknowledges a message, or ``STOMPMessage/acknowledge(in:)``. Default: `auto`.
    ///   - options: selector, durable name, prefetch, further headers. Default: none.
    ///   - buffer: the bounds of the buffer for a slow receiver. Default: see ``BufferPolicy``.
    /// - Throws: ``STOMPError`` with the broker's ERROR when it refuses; the connection ends then, and is opened again.
    public nonisolated(nonsending) func subscribe(
        to destination: String, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(),
        buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPSubscription {
        guard !destination.isEmpty else {
            throw STOMPError(.invalidRequest, "A destination must not be empty. Write for example /queue/orders.")
        }
        let token = core.ids.add(1, ordering: .relaxed).newValue
        let route = STOMPRoute(
            id: options.durableName ?? "sub-\(token)", token: token, destination: destination,
            acknowledgement: acknowledgement,
            options: options, policy: buffer)
        let first = core.firstQueue(of: route)
        try await core.subscriptions.subscribe(route)
        return STOMPSubscription(handle: STOMPSubscriptionHandle(core: core, route: route, first: first))
    }
}

/// Options of a subscription beyond the specification. Each one becomes headers of the connected broker, which its `server`
/// header identifies; an option that this broker does not support is an error before anything is sent.
public struct STOMPSubscribeOptions: Sendable {
    /// A filter over message headers in the broker's language (ActiveMQ: `country IN ('FR', 'DE')`).
    public var selector: String?
    /// The name under which the broker keeps messages while the client is not connected; ActiveMQ also needs a `clientID`.
    public var durableName: String?
    /// The number of messages that the broker sends before they are acknowledged.
    public var prefetch: Int?
    /// Further headers, sent without change.
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
                    "\(profile.name) ignores selectors: every message would arrive. Filter by destination instead.")
            }
            result.add("selector", selector)
        }
        if let durableName {
            guard let more = profile.durableHeaders(name: durableName) else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) is not known to keep durable subscriptions. Use its own headers in `headers`.")
            }
            if case .named = profile.durable, clientID == nil {
                throw STOMPError(
                    .invalidRequest,
                    "\(profile.name) keeps a durable subscription for a client-id. Set `clientID` in the configuration."
                )
            }
            result.fields += more.fields
        }
        if let prefetch {
            guard prefetch > 0 else {
                throw STOMPError(
                    .invalidRequest, "With a prefetch of \(prefetch) no message would arrive. Use a positive number.")
            }
            guard !profile.prefetchNeedsAcknowledgement || acknowledgement != .auto else {
                throw STOMPError(
                    .unsupportedByBroker,
                    "\(profile.name) limits only messages that are acknowledged. Use ack mode client or clientIndividual."
                )
            }
            guard let more = profile.prefetchHeaders(messages: prefetch) else {
                throw STOMPError(
                    .unsupportedByBroker, "\(profile.name) is not known to limit what it sends. Leave prefetch out.")
            }
            result.fields += more.fields
        }
        return result
    }
}

public import MessagingShell
import MessagingWire
public import STOMPCore
import Synchronization

extension STOMPClient {
    /// Subscribes and returns the messages as a sequence, once the broker has confirmed the subscription.
    ///
    /// Keep the sequence: when its last copy and its last iterator are released, the client unsubscribes. It is registered
    /// before SUBSCRIBE is sent, so that no message is missed. While the client is reconnecting, this waits for the next
    /// connection.
    ///
    /// By default a slow receiver with `acknowledgement: .auto` loses messages: when the buffer is full the oldest are
    /// dropped, which ``STOMPMessage/droppedBefore`` and ``STOMPSubscription/droppedCount`` count.
    /// `BufferPolicy(overflow: .pauseReading)` loses none. Messages with client acknowledgements are never dropped.
    /// - Parameters:
    ///   - destination: in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    ///   - acknowledgement: whether delivery acknowledges a message, or ``STOMPMessage/acknowledge(in:)``. Default: `auto`.
    ///   - options: selector, durable name, prefetch, further headers. Default: none.
    ///   - buffer: the bounds of the buffer for a slow receiver. Default: see ``BufferPolicy``.
    /// - Throws: ``STOMPError`` with the broker's ERROR when it refuses; the connection ends then, and is opened again. With
    ///   ``STOMPError/Code/disconnected`` when ``disconnect()`` is called before it has answered; a sequence that was
    ///   returned ends without an error then.
    public nonisolated(nonsending) func subscribe(
        to destination: String, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(),
        buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPSubscription {
        if let mistake = mistake(in: destination) { throw mistake }
        let (route, queue) = makeRoute(destination, acknowledgement, options, buffer)
        try await core.subscriptions.register(route)
        return STOMPSubscription(handle: STOMPSubscriptionHandle(core: core, route: route, queue: queue))
    }

    /// Declares a subscription and returns its messages as a sequence, without waiting for the broker.
    ///
    /// Call this before ``connect()`` or ``start()``: every connection then subscribes before anything else is sent. While
    /// the client is connected, SUBSCRIBE is sent at once. ``STOMPEvent/subscribed(destination:)`` reports the broker's
    /// confirmation. A refusal is thrown by the sequence. Otherwise as ``subscribe(to:acknowledgement:options:buffer:)-(String,_,_,_)``, with
    /// the same parameters; the sequence ends when the client stops connecting, so declare it again after ``disconnect()``.
    public nonisolated func subscription(
        to destination: String, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(), buffer: BufferPolicy = BufferPolicy()
    ) -> STOMPSubscription {
        let (route, queue) = makeRoute(destination, acknowledgement, options, buffer)
        if let mistake = mistake(in: destination) {
            route.finish(.failed(mistake))
        } else {
            core.loop.execute { [core] in core.subscriptions.declare(route) }
        }
        return STOMPSubscription(handle: STOMPSubscriptionHandle(core: core, route: route, queue: queue))
    }

    private nonisolated func mistake(in destination: String) -> STOMPError? {
        guard destination.isEmpty else { return nil }
        return .invalidRequest("A destination must not be empty. Write for example /queue/orders.")
    }

    private nonisolated func makeRoute(
        _ destination: String, _ acknowledgement: STOMPAckMode, _ options: STOMPSubscribeOptions, _ buffer: BufferPolicy
    ) -> (route: STOMPRoute, queue: STOMPRoute.Queue) {
        let token = core.ids.add(1, ordering: .relaxed).newValue
        let route = STOMPRoute(
            id: options.durableName ?? "sub-\(token)", token: token, destination: destination,
            acknowledgement: acknowledgement,
            options: options, policy: buffer)
        return (route, core.makeQueue(of: route))
    }

    /// Deletes a durable subscription that an earlier process left at the broker, with the messages that wait in it.
    ///
    /// A broker deletes only what the client subscribes to, so that this subscribes first, and acknowledges nothing. A
    /// subscription of this client ends with ``STOMPSubscription/unsubscribe()``.
    /// - Parameters:
    ///   - destination: the destination of the durable subscription.
    ///   - durableName: its name, as in ``STOMPSubscribeOptions/durableName``.
    ///   - headers: those of its SUBSCRIBE that name it, such as RabbitMQ's `x-queue-name`. Default: none.
    /// - Throws: ``STOMPError`` when the broker refuses, and ``STOMPError/Code/unsupportedByBroker`` if it is not known to
    ///   support durable subscriptions, or does not delete this one: RabbitMQ deletes those to `/topic/` only.
    public nonisolated(nonsending) func unsubscribe(
        from destination: String, durableName: String, headers: STOMPHeaders = [:]
    ) async throws(STOMPError) {
        var options = STOMPSubscribeOptions(durableName: durableName, headers: headers)
        options.isToBeDeleted = true
        try await subscribe(to: destination, acknowledgement: .client, options: options).unsubscribe()
    }
}

/// Options of a subscription beyond the specification. Each is translated into the headers of the connected broker, which
/// is known from its `server` header; an option that the broker does not support is an error before anything is sent.
public struct STOMPSubscribeOptions: Sendable, Equatable {
    /// A filter on message headers in the broker's language (ActiveMQ: `country IN ('FR', 'DE')`). Default: nil.
    public var selector: String?
    /// The name under which the broker stores messages while the client is not connected; ActiveMQ also requires a
    /// ``STOMPConfiguration/clientID``. Default: nil, not durable.
    public var durableName: String?
    /// The number of messages that the broker sends ahead of their acknowledgements. Default: nil, the broker's choice.
    public var prefetch: Int?
    /// More headers, sent unchanged.
    public var headers: STOMPHeaders
    /// Called before each SUBSCRIBE, the first one and that of each new connection, for headers that replace those of the
    /// same name. Default: nil.
    ///
    /// A subscription that begins at a place which the application knows, such as a stream of RabbitMQ, continues there:
    ///
    ///     options.headersProvider = { ["x-stream-offset": "offset=\(progress.next)"] }
    ///
    /// It is called on the client's thread and must not wait. The headers `id`, `destination`, `ack` and `content-length` are
    /// the client's own: with one of them the subscription fails with ``STOMPError/Code/invalidRequest``.
    public var headersProvider: (@Sendable () -> STOMPHeaders)? {
        get { provider?.value }
        set { provider = newValue.map { Shared($0) } }
    }
    private var provider: Shared<@Sendable () -> STOMPHeaders>?
    /// The declaration of a destination's queue.
    var queue = STOMPQueueOptions()
    /// Whether it is subscribed only to be deleted: nothing of it is acknowledged.
    var isToBeDeleted = false

    /// Makes options; what is nil is not sent.
    public init(
        selector: String? = nil, durableName: String? = nil, prefetch: Int? = nil, headers: STOMPHeaders = [:]
    ) {
        self.selector = selector
        self.durableName = durableName
        self.prefetch = prefetch
        self.headers = headers
    }

    /// Whether both ask for the same; texts are compared by their bytes, and a `headersProvider` equals its copies.
    public static func == (one: Self, other: Self) -> Bool {
        one.selector.hasSameBytes(as: other.selector) && one.durableName.hasSameBytes(as: other.durableName)
            && one.prefetch == other.prefetch && one.headers == other.headers && one.provider === other.provider
            && one.queue == other.queue
    }

    /// The headers for a kind of broker.
    ///
    /// - Parameter replacement: what the `headersProvider` has returned.
    func headers(
        for profile: STOMPBrokerProfile, acknowledgement: STOMPAckMode, clientID: String?,
        replacedBy replacement: STOMPHeaders = [:]
    ) throws(STOMPError) -> STOMPHeaders {
        var result = headers
        result.fields += queue.headers(for: profile, ofSubscription: true).fields
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
                throw .invalidRequest(
                    "\(profile.name) stores a durable subscription under a client-id. Set `clientID` in the configuration."
                )
            }
            result.fields += more.fields
        }
        if let prefetch {
            guard prefetch > 0 else {
                throw .invalidRequest(
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
        if !replacement.isEmpty {
            result.fields.removeAll { replacement.contains($0.name) }
            result.fields += replacement.fields
        }
        return result
    }
}

public import MQTTCore
public import MessagingShell
import Transport

extension MQTTClient {
    /// Subscribes and returns the messages as a sequence, once the server has granted the subscription.
    ///
    /// Keep the sequence: when its last copy and its last iterator are released, the client unsubscribes. It is registered
    /// before SUBSCRIBE is sent, so that no message is missed. While the client is reconnecting, this waits for the next
    /// connection.
    ///
    /// Each call brings the retained messages of its filter, to other sequences that match as well. For a filter that this
    /// client has subscribed already, the server's subscription has the highest QoS of the calls, and the options and
    /// properties of the first call with it. If the server refuses a further call, the other sequences continue.
    ///
    /// By default a slow receiver loses QoS 0 messages: when the buffer is full the oldest are dropped, which
    /// ``MQTTMessage/droppedBefore`` and ``MQTTSubscription/droppedCount`` count.
    /// `BufferPolicy(overflow: .pauseReading)` loses none. QoS 1 and 2 are never dropped.
    /// - Parameters:
    ///   - filter: a topic filter: `+` matches one level, `#` the rest; with `$share/name/` before it the subscription is
    ///     shared.
    ///   - qos: the highest QoS that messages are delivered with. Where a server's Maximum QoS is lower, that is requested
    ///     instead. Default: 1.
    ///   - buffer: the bounds of the buffer for a slow receiver. Default: see ``BufferPolicy``.
    ///   - acknowledgement: whether the client or the receiver acknowledges QoS 1 and 2. Default: the client.
    ///   - noLocal: whether the server sends no messages of this client; 5.0 only. Default: false.
    ///   - retainAsPublished: whether messages keep their RETAIN flag; 5.0 only. Default: false.
    ///   - retainHandling: whether the server sends retained messages; 5.0 only. Unless it is `sendAtSubscribe`, a filter
    ///     that this client has subscribed already with this QoS or a higher one is not sent again. Default: at every
    ///     subscribe.
    ///   - properties: user properties of SUBSCRIBE and a Subscription Identifier, which the server adds to the properties
    ///     of each message that the subscription matches; sent again with each SUBSCRIBE; 5.0 only.
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/refused`` when the server refuses, and with
    ///   ``MQTTError/Code/disconnected`` when ``disconnect()`` is called before it has answered. A sequence that was returned
    ///   ends without an error then.
    public nonisolated(nonsending) func subscribe(
        to filter: String, qos: QoS = .atLeastOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTSubscription {
        let request = MQTTSubscriptionRequest(
            filter: filter, qos: qos, noLocal: noLocal, retainAsPublished: retainAsPublished,
            retainHandling: retainHandling)
        return try await subscribe(
            to: [request], buffer: buffer, acknowledgement: acknowledgement, properties: properties)
    }

    /// Subscribes to several filters and returns their messages as one sequence.
    ///
    /// With MQTT 5.0 and a server that supports Subscription Identifiers, the client gives each filter that overlaps with
    /// another one, of this subscription or of another, an identifier above 134,217,727, unless `properties` has one. A filter
    /// that was subscribed before is subscribed again with it, without retained messages. A message then goes to the filters
    /// whose identifiers it has. If several filters of this subscription match it, the copy for the one with the highest QoS is
    /// delivered, the first if there are several. All copies are delivered where filters are shared, differ in `noLocal` or
    /// `retainHandling`, have `sendIfNew`, or have the same identifier of the caller.
    ///
    /// Without identifiers a server may send one copy for each filter, as Mosquitto does, and each subscription that matches
    /// gets all of them [MQTT-3.3.5-1]. A shared filter then may not overlap with another one of the client.
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/refused`` when the server refuses every filter. If it refuses some,
    ///   ``MQTTSubscription/reasonCodes`` shows which.
    public nonisolated(nonsending) func subscribe(
        to requests: [MQTTSubscriptionRequest], buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTSubscription {
        try check(requests.map(\.filter))
        let route = MQTTRoute(
            requests: requests, properties: properties, policy: buffer, acknowledgement: acknowledgement)
        let queue = core.makeQueue(of: route)
        let answer = try await core.subscriptions.subscribe(route)
        let handle = MQTTSubscriptionHandle(core: core, route: route, queue: queue)
        return MQTTSubscription(handle: handle, reasonCodes: answer.codes, grantProperties: answer.properties)
    }

    /// Declares a subscription and returns its messages as a sequence, without waiting for the server.
    ///
    /// Call this before ``connect()`` or ``start()``: every connection then subscribes before anything else is sent, and
    /// the messages that a resumed session brings with CONNACK come to this sequence. A worker that acknowledges manually
    /// misses none, however late it begins to read:
    ///
    ///     let jobs = client.subscription(to: "jobs/#", acknowledgement: .manual)
    ///     try await client.connect()
    ///     for try await job in jobs { … }
    ///
    /// While the client is connected, SUBSCRIBE is sent at once. ``MQTTSubscription/reasonCodes`` does not hold the server's
    /// answer: ``MQTTEvent/subscribed(filter:_:)`` reports a grant, ``MQTTEvent/subscriptionLost(filter:_:)`` a refusal. The
    /// refusal of its last filter, and an invalid filter, are thrown by the sequence. Otherwise as ``subscribe(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)-(String,_,_,_,_,_,_,_)``,
    /// with the same parameters; the sequence ends when the client stops connecting, so declare it again after
    /// ``disconnect()``.
    public nonisolated func subscription(
        to filter: String, qos: QoS = .atLeastOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) -> MQTTSubscription {
        let request = MQTTSubscriptionRequest(
            filter: filter, qos: qos, noLocal: noLocal, retainAsPublished: retainAsPublished,
            retainHandling: retainHandling)
        return subscription(to: [request], buffer: buffer, acknowledgement: acknowledgement, properties: properties)
    }

    /// Declares a subscription to several filters, whose messages are one sequence; otherwise as
    /// ``subscription(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)-(String,_,_,_,_,_,_,_)``.
    public nonisolated func subscription(
        to requests: [MQTTSubscriptionRequest], buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, properties: MQTTProperties = []
    ) -> MQTTSubscription {
        let route = MQTTRoute(
            requests: requests, properties: properties, policy: buffer, acknowledgement: acknowledgement)
        let queue = core.makeQueue(of: route)
        do throws(MQTTError) {
            try check(requests.map(\.filter))
            core.loop.execute { [core] in core.subscriptions.declare(route) }
        } catch {
            route.finish(.failed(error))
        }
        let handle = MQTTSubscriptionHandle(core: core, route: route, queue: queue)
        return MQTTSubscription(handle: handle, reasonCodes: [], grantProperties: [])
    }

    /// Unsubscribes a filter of a session that an earlier process made, and returns the server's UNSUBACK; otherwise as
    /// ``unsubscribe(from:properties:)-([String],_)``.
    @discardableResult
    public nonisolated(nonsending) func unsubscribe(
        from filter: String, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTUnsubscribeResult {
        try await unsubscribe(from: [filter], properties: properties)
    }

    /// Unsubscribes filters of a session that an earlier process made, and returns the server's UNSUBACK.
    ///
    /// A subscription of this client ends with ``MQTTSubscription/unsubscribe()``, or when its sequence is released.
    /// Without a connection this returns at once, and UNSUBSCRIBE is sent after the next connect, if the server has
    /// kept the session.
    /// - Parameters:
    ///   - filters: as they were subscribed, with `$share/name/`.
    ///   - properties: user properties of UNSUBSCRIBE; 5.0 only.
    /// - Returns: with 5.0 one code for each filter, such as *No subscription existed* (0x11); empty if UNSUBSCRIBE was not
    ///   sent yet.
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/invalidRequest`` for a filter of a subscription of this client;
    ///   otherwise as ``MQTTSubscription/unsubscribe(properties:)``.
    @discardableResult
    public nonisolated(nonsending) func unsubscribe(
        from filters: [String], properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTUnsubscribeResult {
        try check(filters)
        return try await core.subscriptions.unsubscribe(filters, properties: properties)
    }

    private nonisolated func check(_ filters: [String]) throws(MQTTError) {
        guard !filters.isEmpty else {
            throw .invalidRequest("A request needs at least one topic filter [MQTT-3.8.3-2]. Pass one.")
        }
        for filter in filters {
            if let flaw = MQTTTopicFilter.flaw(in: filter) { throw .invalidRequest(flaw) }
        }
    }

    /// The messages that match no subscription: those of a session that an earlier process left, and those that arrive
    /// between the end of a subscription and UNSUBACK. Without a receiver those of QoS 1 and 2 are kept for the next
    /// subscription within the bounds of ``MQTTConfiguration/unmatchedMessagePolicy``; a receiver gets these first.
    ///
    /// Call this before ``connect()`` or ``start()`` to receive every message of a session that the server has kept. There is
    /// one such sequence at a time: a new one ends the one before it.
    public nonisolated(nonsending) func unmatchedMessages(
        buffer: BufferPolicy = BufferPolicy(), acknowledgement: MQTTAcknowledgement = .automatic
    ) async -> MQTTSubscription {
        let route = MQTTRoute(requests: [], policy: buffer, acknowledgement: acknowledgement)
        let queue = core.makeQueue(of: route)
        do throws(MQTTError) {
            try core.supervisor.startLoop()
            await core.loop.result { [core] in core.subscriptions.receiveUnmatched(route) }
        } catch {
            route.finish(.failed(error))
        }
        let handle = MQTTSubscriptionHandle(core: core, route: route, queue: queue)
        return MQTTSubscription(handle: handle, reasonCodes: [], grantProperties: [])
    }
}

public import MQTTCore
public import Messaging
import Transport

extension MQTTClient {
    /// Subscribes and returns the messages as a sequence, once the server has granted it.
    ///
    /// The sequence is registered before SUBSCRIBE leaves, so that no message is missed. While the client is
    /// reconnecting, this waits for the next connection.
    ///
    /// By default a slow receiver loses QoS 0 messages: when the buffer is full the oldest are dropped, which
    /// ``MQTTMessage/droppedBefore`` and ``MQTTSubscription/droppedCount`` count.
    /// `BufferPolicy(overflow: .pauseReading)` loses none. QoS 1 and 2 are never dropped.
    /// - Parameters:
    ///   - filter: a topic filter: `+` stands for one level, `#` for the rest; `$share/name/` in front shares it.
    ///   - qos: the highest QoS that messages shall come with.
    ///   - buffer: what waits for a slow receiver, and what happens then.
    ///   - acknowledgement: who acknowledges QoS 1 and 2.
    ///   - noLocal: messages of this client do not come back; 5.0 only.
    ///   - retainAsPublished: messages keep their RETAIN flag; 5.0 only.
    ///   - retainHandling: whether retained messages come; 5.0 only.
    ///   - properties: user properties of SUBSCRIBE, repeated whenever it is; 5.0 only.
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/refused`` when the server says no.
    public nonisolated(nonsending) func subscribe(
        to filter: String, qos: QoS = .exactlyOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTSubscription {
        let request = MQTTSubscriptionRequest(
            filter: filter, qos: qos, noLocal: noLocal, retainAsPublished: retainAsPublished,
            retainHandling: retainHandling)
        return try await subscribe(
            to: [request], buffer: buffer, acknowledgement: acknowledgement, properties: properties)
    }

    /// Subscribes to several filters; their messages come in one sequence.
    ///
    /// A message that several of the filters match comes once, where that can be told: with MQTT 5.0, a server that
    /// knows Subscription Identifiers, filters that are not shared and differ in neither `noLocal` nor `retainHandling`
    /// (which is not `sendIfNew`), no other subscription of this client with one of these filters, and at most 1,000
    /// filters. The client then gives each filter that overlaps with another one an identifier above 134,217,727, and
    /// delivers the copy for the filter with the highest QoS, the first if there are several. Otherwise, and whenever
    /// `properties` has an identifier, a server may send one copy for each filter (Mosquitto does), and all of them come
    /// [MQTT-3.3.5-1].
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/refused`` when the server refuses every filter. If it refuses some,
    ///   ``MQTTSubscription/reasonCodes`` says which.
    public nonisolated(nonsending) func subscribe(
        to requests: [MQTTSubscriptionRequest], buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTSubscription {
        guard !requests.isEmpty else {
            throw MQTTError(.invalidRequest, "a subscription needs at least one topic filter [MQTT-3.8.3-2]")
        }
        for filter in requests.map(\.filter) where !MQTTTopicFilter.isValid(filter) {
            throw MQTTError(
                .invalidRequest,
                "'\(filter)' is not a topic filter: 1 to 65535 bytes, '+' alone in its level, '#' alone in the last one"
            )
        }
        let route = MQTTRoute(
            requests: requests, properties: properties, policy: buffer, acknowledgement: acknowledgement)
        let first = core.firstQueue(of: route)
        let answer = try await core.subscriptions.subscribe(route)
        let handle = MQTTSubscriptionHandle(core: core, route: route, first: first)
        return MQTTSubscription(handle: handle, reasonCodes: answer.codes, grantProperties: answer.properties)
    }

    /// The messages that match no subscription: of a session that an earlier process left, or between a subscription's
    /// end and the server's knowledge of it. Without a receiver those of QoS 1 and 2 are kept for the next subscription
    /// as ``MQTTConfiguration/unmatchedMessagePolicy`` says, and a receiver gets first what was.
    ///
    /// One sequence has them at a time: a new one ends the one before it.
    public nonisolated(nonsending) func unmatchedMessages(
        buffer: BufferPolicy = BufferPolicy(), acknowledgement: MQTTAcknowledgement = .automatic
    ) async -> MQTTSubscription {
        let route = MQTTRoute(requests: [], policy: buffer, acknowledgement: acknowledgement)
        let first = core.firstQueue(of: route)
        await core.loop.result { [core] in core.subscriptions.receiveUnmatched(route) }
        let handle = MQTTSubscriptionHandle(core: core, route: route, first: first)
        return MQTTSubscription(handle: handle, reasonCodes: [], grantProperties: [])
    }
}

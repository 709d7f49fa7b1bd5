public import MQTTCore
public import Messaging

extension MQTTClient {
    /// Subscribes and returns the messages as a sequence, once the server has granted it.
    ///
    /// The sequence is registered before SUBSCRIBE leaves, so that no message is missed. While the client is
    /// reconnecting, this waits for the next connection.
    /// - Parameters:
    ///   - filter: a topic filter: `+` stands for one level, `#` for the rest; `$share/name/` in front shares it.
    ///   - qos: the highest QoS that messages shall come with.
    ///   - buffer: what waits for a slow receiver, and what happens then.
    ///   - acknowledgement: who acknowledges QoS 1 and 2.
    ///   - noLocal: messages of this client do not come back; 5.0 only.
    ///   - retainAsPublished: messages keep their RETAIN flag; 5.0 only.
    ///   - retainHandling: whether retained messages come; 5.0 only.
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/refused`` when the server says no.
    public nonisolated(nonsending) func subscribe(
        to filter: String, qos: QoS = .exactlyOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe
    ) async throws(MQTTError) -> MQTTSubscription {
        guard MQTTTopicFilter.isValid(filter) else {
            throw MQTTError(
                .invalidRequest,
                "'\(filter)' is not a topic filter: 1 to 65535 bytes, '+' alone in its level, '#' alone in the last one"
            )
        }
        let request = MQTTSubscriptionRequest(
            filter: filter, qos: qos, noLocal: noLocal, retainAsPublished: retainAsPublished,
            retainHandling: retainHandling)
        let route = MQTTRoute(request: request, policy: buffer, acknowledgement: acknowledgement)
        let queue = core.makeQueue(buffer)
        route.add(queue)
        let code = try await core.subscribe(route)
        let handle = MQTTSubscriptionHandle(core: core, route: route, first: queue)
        return MQTTSubscription(handle: handle, grantedQoS: QoS(rawValue: code.rawValue) ?? .atMostOnce)
    }
}

extension MQTTClientCore {
    func makeQueue(_ policy: BufferPolicy) -> MQTTRoute.Queue {
        MQTTRoute.Queue(policy: policy) { [weak self] in self?.drained() }
    }
}

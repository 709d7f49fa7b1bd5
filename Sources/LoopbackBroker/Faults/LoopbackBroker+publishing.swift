public import MQTTCore
import STOMPCore
import Transport

/// Messages that the broker publishes by itself, so that a test needs no second client.
extension LoopbackBroker {
    /// Publishes a message to a topic of MQTT; subscribers of both protocols receive it.
    ///
    /// - Parameters:
    ///   - payload: its bytes.
    ///   - topic: its topic. With wildcards or without any character, nothing is published.
    ///   - qos: the quality of service; each subscriber gets the lower one of this and its own. Default: at least once.
    ///   - retain: whether the topic keeps the message. Default: false.
    ///   - properties: for subscribers of 5.0, the message expiry included. Default: none.
    /// - Returns: whether any client has subscribed to it.
    @discardableResult
    public func publish(
        _ payload: some Sequence<UInt8>, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) async -> Bool {
        guard MQTTTopicName.isValid(topic) else { return false }
        let payload = Array(payload)
        return await hub.loop.result { [hub] in
            let now = hub.loop.now
            let message = Message(
                topic: topic, payload: payload, qos: qos, isRetained: retain, expiring: properties, at: now)
            return hub.route(at: now) { router, effects in router.publish(message, at: now, into: &effects) }
        }
    }

    /// Publishes a text to a topic of MQTT, as ``publish(_:to:qos:retain:properties:)-(Sequence<UInt8>,_,_,_,_)`` does.
    @discardableResult
    public func publish(
        _ text: String, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) async -> Bool {
        await publish(text.utf8, to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Sends a message to a destination of STOMP: a topic, whose subscribers of both protocols receive it, or a queue.
    ///
    /// - Parameters:
    ///   - body: its text.
    ///   - destination: such as `/topic/prices` or `/queue/orders`.
    ///   - headers: what else the frame carries. Default: none.
    /// - Returns: whether a message can be sent to this destination.
    @discardableResult
    public func send(
        _ body: String, to destination: String, headers: KeyValuePairs<String, String> = [:]
    ) async -> Bool {
        var fields = STOMPHeaders()
        for (name, value) in headers { fields.add(name, value) }
        fields["destination"] = destination
        let sent = fields
        return await hub.loop.result { [hub] in
            let now = hub.loop.now
            let message = Message(destination: destination, headers: sent, body: Array(body.utf8), at: now)
            return hub.route(at: now) { router, effects in
                do throws(STOMPRefusal) {
                    try router.send(-1, message, to: destination, transaction: nil, at: now, into: &effects)
                    return true
                } catch {
                    return false
                }
            }
        }
    }
}

public import MQTTCore
import Messaging
import Transport

extension MQTTClient {
    /// Publishes a request and returns the first response to it [MQTT 5.0 4.10]; 5.0 only.
    ///
    /// One subscription, made with the first request, receives the responses to all requests of a client; correlation
    /// data tells them apart.
    /// - Parameters:
    ///   - payload: the payload of the request.
    ///   - topic: the topic that the request is published to.
    ///   - qos: the QoS of the request. Default: 1.
    ///   - timeout: from the call to the response. Default: 10 seconds.
    ///   - properties: response topic and correlation data are set here.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/timedOut`` without a response in time.
    public nonisolated(nonsending) func request(
        _ payload: [UInt8], to topic: String, qos: QoS = .atLeastOnce, timeout: Duration = .seconds(10),
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTMessage {
        guard speaksProperties else {
            throw .invalidRequest("Requests and responses need MQTT 5.0. Set version to 5.0.")
        }
        let core = core
        var random = core.loop.random
        let correlation = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return try await replies.reply(
            correlation: correlation, within: timeout,
            late: core.lateReply(
                "No response to the request to '\(topic)' arrived within \(timeout).",
                advice: "Check that a client answers there, or raise the timeout.")
        ) {
            (address) async throws(MQTTError) in
            var properties = properties
            properties.responseTopic = address
            properties.correlationData = correlation
            try await publish(payload, to: topic, qos: qos, properties: properties)
        }
    }

    /// Publishes a request that is text and returns the first response to it; otherwise as
    /// ``request(_:to:qos:timeout:properties:)-([UInt8],_,_,_,_)``.
    public nonisolated(nonsending) func request(
        _ text: String, to topic: String, qos: QoS = .atLeastOnce, timeout: Duration = .seconds(10),
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTMessage {
        try await request(Array(text.utf8), to: topic, qos: qos, timeout: timeout, properties: properties)
    }

    /// Publishes the response to a request.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the message names no response topic.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with payload: [UInt8], qos: QoS = .atLeastOnce,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTReasonCode {
        let asked = request.properties
        guard let topic = asked.responseTopic else {
            throw .invalidRequest(
                "The message to '\(request.topic)' has no response topic to reply to. Have its sender use request().")
        }
        var properties = properties
        properties.correlationData = asked.correlationData
        return try await publish(payload, to: topic, qos: qos, properties: properties)
    }

    /// Publishes text as the response to a request; otherwise as
    /// ``reply(to:with:qos:properties:)-(MQTTMessage,[UInt8],_,_)``.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with text: String, qos: QoS = .atLeastOnce, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await reply(to: request, with: Array(text.utf8), qos: qos, properties: properties)
    }

    /// Publishes the response to a request that was received with its value; otherwise as
    /// ``reply(to:with:qos:properties:)-(MQTTMessage,[UInt8],_,_)``.
    @discardableResult
    public nonisolated(nonsending) func reply<Value>(
        to request: MQTTDecodedMessage<Value>, with payload: [UInt8], qos: QoS = .atLeastOnce,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await reply(to: request.message, with: payload, qos: qos, properties: properties)
    }

    /// Publishes text as the response to a request that was received with its value; otherwise as
    /// ``reply(to:with:qos:properties:)-(MQTTMessage,[UInt8],_,_)``.
    @discardableResult
    public nonisolated(nonsending) func reply<Value>(
        to request: MQTTDecodedMessage<Value>, with text: String, qos: QoS = .atLeastOnce,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await reply(to: request.message, with: text, qos: qos, properties: properties)
    }

    nonisolated var speaksProperties: Bool { core.link.perform { $0.engine.version.hasProperties } }

    private nonisolated var replies: MQTTClientCore.Replies { core.replies(knownReplies) }
}

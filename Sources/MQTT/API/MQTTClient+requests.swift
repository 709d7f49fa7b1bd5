public import MQTTCore
import Transport

extension MQTTClient {
    /// Publishes a request and returns the first response to it [MQTT 5.0 4.10]; 5.0 only.
    ///
    /// Responses to all requests of a client come over one subscription, made with the first request, and are told apart
    /// by their correlation data.
    /// - Parameters:
    ///   - timeout: from the call to the response.
    ///   - properties: response topic and correlation data are set here.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/timedOut`` without a response in time.
    public nonisolated(nonsending) func request(
        _ payload: [UInt8], to topic: String, qos: QoS = .atLeastOnce, timeout: Duration = .seconds(10),
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTMessage {
        guard speaksProperties else {
            throw MQTTError(.invalidRequest, "requests and responses need MQTT 5.0: set version")
        }
        return try await responses.request(
            payload, to: topic, qos: qos, timeout: timeout, properties: properties, core: core)
    }

    /// Publishes the response to a request.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the message names no topic for a response.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with payload: [UInt8], qos: QoS = .atLeastOnce,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTReasonCode {
        let asked = request.properties
        guard let topic = asked.responseTopic else {
            throw MQTTError(.invalidRequest, "the message to '\(request.topic)' asks for no response")
        }
        var properties = properties
        properties.correlationData = asked.correlationData
        return try await publish(payload, to: topic, qos: qos, properties: properties)
    }

    nonisolated var speaksProperties: Bool { core.link.perform { $0.engine.version.hasProperties } }
}

public import MQTTCore

/// The server's answer to a message: its reason code, and with 5.0 the properties.
public struct MQTTPublishResult: Sendable, Hashable {
    /// The reason code; `success` where the version of MQTT has none.
    public var reasonCode: MQTTReasonCode
    /// Reason String and user properties; of a QoS 2 message those of PUBREC, then those of PUBCOMP; 5.0 only.
    public var properties: MQTTProperties

    /// Makes a result, for tests.
    public init(_ reasonCode: MQTTReasonCode, properties: MQTTProperties = []) {
        self.reasonCode = reasonCode
        self.properties = properties
    }
}

/// The acknowledgement of one message, to be awaited by any number of tasks, now or later; made by
/// ``MQTTClient/publishForConfirmation(_:to:qos:retain:properties:)``.
public struct MQTTConfirmation: Sendable {
    let core: MQTTClientCore
    /// Nil for QoS 0, which has no acknowledgement.
    let batch: MQTTPublishBatch?

    /// Returns the server's answer when it has acknowledged the message, over a reconnect if need be.
    ///
    /// Cancelling the task ends the wait, and never the exchange.
    /// - Returns: with 5.0 also Reason String and user properties, of a QoS 2 message those of PUBCOMP; for QoS 0 success
    ///   at once.
    /// - Throws: ``MQTTError`` as ``MQTTClient/publish(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)`` does.
    @discardableResult
    public nonisolated(nonsending) func confirmed() async throws(MQTTError) -> MQTTPublishResult {
        guard let batch else { return MQTTPublishResult(.success) }
        return try await core.publisher.confirm(batch)
    }
}

/// What outlives a connection: packet identifiers, messages in flight and in the queue, identifiers of received QoS 2
/// messages. A server moves it from the engine of one connection to the engine of the next.
public struct MQTTSession: Sendable {
    /// A session in which nothing happened yet.
    public init() {}
}

extension MQTTEngine {
    /// Puts a session in place of the engine's own, which is returned. Only without an accepted connection: a server
    /// does it between ``MQTTEngineEvent/Kind/connectReceived(_:)`` and
    /// ``acceptConnection(sessionPresent:properties:at:into:)``.
    public mutating func replaceSession(_ session: MQTTSession) -> MQTTSession { session }
}

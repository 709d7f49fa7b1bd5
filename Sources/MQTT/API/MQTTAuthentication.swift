/// An authentication of several steps (SCRAM, Kerberos), for CONNECT and for renewing it [MQTT 5.0 4.12].
public struct MQTTAuthentication: Sendable {
    /// The name that both sides know the method by.
    public var method: String
    /// Makes the data of the first step; asked before each connection and each ``MQTTClient/reauthenticate()``.
    public var begin: @Sendable () async throws -> [UInt8]?
    /// Answers what the server sent. An error ends the connection and is not tried again.
    public var respond: @Sendable (_ challenge: [UInt8]?) async throws -> [UInt8]?

    /// Makes an authentication of a method and its two steps.
    public init(
        method: String, begin: @escaping @Sendable () async throws -> [UInt8]?,
        respond: @escaping @Sendable (_ challenge: [UInt8]?) async throws -> [UInt8]?
    ) {
        self.method = method
        self.begin = begin
        self.respond = respond
    }
}

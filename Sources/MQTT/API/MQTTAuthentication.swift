/// Enhanced authentication, such as SCRAM or Kerberos, in CONNECT and afterwards [MQTT 5.0 4.12].
public struct MQTTAuthentication: Sendable {
    /// The Authentication Method.
    public var method: String
    /// Returns the Authentication Data of the first step; called before each connection, once more at once when the server
    /// refuses the credentials, and by ``MQTTClient/reauthenticate()``. An error fails this attempt only.
    public var begin: @Sendable () async throws -> [UInt8]?
    /// Returns the answer to the Authentication Data of the server. An error ends the connection, which is not opened
    /// again.
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

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
    /// Checks the Authentication Data with which the server completes the authentication, in CONNACK or in the last AUTH
    /// of a renewal, such as the server's signature of SCRAM; nil if it sent none. An error ends the connection, which is
    /// not opened again. Default: nil, which trusts the server.
    ///
    /// Called on the thread of the connection, before the client subscribes and before messages leave: it must not block.
    /// The server has CONNECT by then, with the will, and in a session that continues the client may have written PUBREL.
    public var verify: (@Sendable (_ last: [UInt8]?) throws -> Void)?

    /// Makes an authentication of a method and its steps.
    public init(
        method: String, begin: @escaping @Sendable () async throws -> [UInt8]?,
        respond: @escaping @Sendable (_ challenge: [UInt8]?) async throws -> [UInt8]?,
        verify: (@Sendable (_ last: [UInt8]?) throws -> Void)? = nil
    ) {
        self.method = method
        self.begin = begin
        self.respond = respond
        self.verify = verify
    }
}

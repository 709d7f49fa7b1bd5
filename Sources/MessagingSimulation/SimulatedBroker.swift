package import MQTTCore
package import Transport

/// A broker of a simulation, to which the plan happens; on the loop's thread.
package protocol SimulatedBroker: AnyObject, Sendable {
    /// Closes all connections as a server does that is killed; without its sessions it comes back empty.
    func restart(keepsSessions: Bool)
    /// Falls silent, or speaks again.
    func setSilent(_ isSilent: Bool)
    /// From now on answers leave up to so many nanoseconds late.
    func setAnswerDelay(_ nanoseconds: Int64)
    /// Sets what is granted to connections that begin from now on; nil for all that the broker's options allow.
    func grant(_ limits: GrantedLimits?)
    /// What takes the session of each client of MQTT over that is connected now, in the order in which they connected:
    /// connects as a second device with the same configuration does, and returns that connection, unless it fails.
    func takeovers(in world: SimulatedWorld) -> [@Sendable () -> (any ByteStream)?]
}

/// What a broker of a simulation grants to connections of MQTT 5.0 for a time, less than its options do.
package struct GrantedLimits: Sendable {
    package var receiveMaximum: UInt16
    package var maximumPacketSize: UInt32
    package var maximumQoS: QoS
    package var topicAliasMaximum: UInt16
}

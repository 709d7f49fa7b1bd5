/// A SUBSCRIBE or UNSUBSCRIBE packet of a client.
public struct MQTTFilterRequest: Sendable {
    /// Which packet it is.
    public var isUnsubscribe: Bool { packet == .unsubscribe }
    /// The filters, in the order of the packet.
    public internal(set) var filters: [String]
    /// Increases with each request of the engine.
    public internal(set) var token: UInt64
    var packet: FilterRecord.Packet
    var packetID: UInt16 = 0
    /// Whether messages of a new connection wait for the answer.
    package internal(set) var comesFirst = false
    /// When it was written: a time of the listening clock, and in ``MQTTEngineEvent/Kind/requestFailed(_:)`` the moment in which
    /// the caller's clock would show it, had the two not differed.
    package var time: Int64
}

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
    /// When it was written, and when the answer is late.
    package var time: Int64
    var deadline = Int64.max
    /// How often the answer was waited for once more, because bytes kept arriving.
    var postponements: UInt8 = 0
}

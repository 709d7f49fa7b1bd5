/// What an engine has to know between CONNECT and CONNACK, and not after that.
struct MQTTOpening: Sendable {
    /// Of CONNECT, or assigned by the server.
    var clientID = ""
    /// Whether CONNECT said Clean Start.
    var cleanStart = false
    var keepAlive: UInt16 = 0
    /// PINGREQ that came before a server had answered CONNECT.
    var deferredPings = 0
    /// CONNECT, which waits until it is stored that the server may hold a session of ours; and the ticket of that.
    var heldConnect: [UInt8] = []
    var heldConnectTicket: UInt64 = 0
}

/// Which side of a connection somebody is; clients mask what they send, servers must not (section 5.1).
package enum WebSocketRole: Sendable, Hashable {
    case client
    case server

    /// The other side.
    package var peer: WebSocketRole { self == .client ? .server : .client }
}

/// Limits and habits of one connection after its handshake.
package struct WebSocketConfiguration: Sendable, Hashable {
    /// The largest payload of one incoming frame in bytes; a larger one is refused by its header alone, with 1009.
    package var maximumFrameSize = 16 << 20
    /// The largest incoming message in bytes, over all its fragments; refused by a header alone, with 1009.
    package var maximumMessageSize = 16 << 20
    /// Whether text messages are taken; otherwise they are refused with 1003.
    package var acceptsText = true
    /// Whether binary messages are taken; otherwise they are refused with 1003.
    package var acceptsBinary = true
    /// Whether incoming text has to be UTF-8 (section 8.1 demands it).
    ///
    /// RabbitMQ's STOMP puts bodies that are not UTF-8 into text frames unless told otherwise; a byte stream that has
    /// to bear with that can turn the check off.
    package var validatesText = true
    /// Whether `WebSocketEvents.messages` tells where messages end; a byte stream has no use for it.
    package var reportsMessages = true
    /// Outgoing messages longer than this are split into frames of this many payload bytes.
    package var outgoingFrameSize = Int.max
    /// While more than this many bytes wait in the output, pings are answered later, and only the newest (section
    /// 5.5.3). Below zero the caller answers them with `answerPing` whenever it can write.
    package var pongBacklog = 64 << 10

    package init() {}

    /// For a protocol that ignores frame boundaries, as MQTT and STOMP do.
    ///
    /// Payload is passed on as it arrives and nothing is assembled, so frames may have any size.
    package static func byteStream(acceptsText: Bool) -> WebSocketConfiguration {
        var configuration = WebSocketConfiguration()
        configuration.maximumFrameSize = .max
        configuration.maximumMessageSize = .max
        configuration.acceptsText = acceptsText
        configuration.reportsMessages = false
        configuration.pongBacklog = -1
        return configuration
    }
}

/// A side of a connection. Clients mask what they send, servers must not (section 5.1).
package enum WebSocketRole: Sendable, Hashable {
    case client
    case server

    /// The other side.
    package var peer: WebSocketRole { self == .client ? .server : .client }
}

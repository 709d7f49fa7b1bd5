/// What one or several calls of `receive` found besides payload; the caller empties it, its capacity stays.
package struct WebSocketEvents: Sendable, Hashable {
    /// A whole message: the next `byteCount` bytes of the plaintext that no message before it covers.
    package struct Message: Sendable, Hashable {
        package var kind: WebSocketMessageKind
        /// Over all its fragments; they may have come with several calls.
        package var byteCount: Int
    }

    /// In the order of their ends; empty where the configuration does not ask for it.
    package var messages: [Message] = []
    /// How many pings came.
    package var pings = 0
    /// How many pongs came, asked for or not.
    package var pongs = 0

    package init() {}

    package mutating func removeAll() {
        messages.removeAll(keepingCapacity: true)
        pings = 0
        pongs = 0
    }
}

/// How a connection ended (section 7.1).
package struct WebSocketClosure: Sendable, Hashable {
    /// Who spoke of the end first.
    package enum Initiator: Sendable, Hashable {
        case us
        case peer
    }

    package var initiator: Initiator
    /// What the peer's Close frame said, or ours when we failed the connection; `noStatus` for an empty frame,
    /// `abnormal` when the stream ended without one.
    package var code: WebSocketCloseCode
    /// The words that came with the code; may be empty.
    package var reason: String
    /// Whether both sides sent a Close frame.
    package var isClean: Bool
}

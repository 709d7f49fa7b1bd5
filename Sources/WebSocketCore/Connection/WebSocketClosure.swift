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

/// What is to be done with the stream below, once everything in the output has been written.
package enum WebSocketStreamAction: Sendable, Hashable {
    /// Keep reading and writing.
    case keep
    /// Wait for the peer to end it, for a few seconds: the server is the one to end it first (section 7.1.1).
    case awaitEnd
    /// End it now.
    case close
}

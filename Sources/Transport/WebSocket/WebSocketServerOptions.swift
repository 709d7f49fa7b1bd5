import WebSocketCore

/// Which WebSockets a server takes.
package struct WebSocketServerOptions: Sendable {
    /// Something that can be spoken in a WebSocket.
    package struct Subprotocol: Sendable {
        package var name: String
        /// The length of the first message in what is sent, so that each becomes a WebSocket message of its own: text if
        /// it is UTF-8. Nil for protocols that are binary and ignore where messages end.
        package var textMessageLength: (@Sendable (RawSpan) -> Int)?

        package init(_ name: String, textMessageLength: (@Sendable (RawSpan) -> Int)? = nil) {
            self.name = name
            self.textMessageLength = textMessageLength
        }
    }

    /// A client has to offer one of these.
    package var subprotocols: [Subprotocol]
    /// Origins whose pages may connect, besides those that this machine serves over HTTP.
    package var origins: [String] = []

    package init(_ subprotocols: [Subprotocol]) {
        self.subprotocols = subprotocols
    }

    var policy: WebSocketServerPolicy {
        var policy = WebSocketServerPolicy()
        policy.origins = origins
        policy.acceptsLoopbackOrigins = true
        policy.subprotocols = subprotocols.map(\.name)
        policy.requiresSubprotocol = true
        return policy
    }
}

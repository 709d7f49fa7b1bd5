package import Transport

/// What a client's configuration says about everything below its protocol.
package struct StreamOptions: Sendable {
    package var proxy = Proxy.none
    package var tls = TLSOptions()
    package var webSocket = WebSocketOptions()
    /// Offered in a WebSocket handshake unless the options name others.
    package var subprotocols: [String] = []
    /// Whether the protocol may come in text messages of a WebSocket.
    package var acceptsText = false
    /// What the client's protocol may be reached by.
    package var schemes: [BrokerURL.Scheme] = []

    package init() {}
}

package import Transport

/// What is spoken on the connections of one listener, and through which layers.
package struct Service: Sendable {
    package enum Kind: Sendable {
        case mqtt
        case stomp
    }

    package var kind: Kind
    /// Makes the layers between the stream and the protocol of one connection (TLS, WebSocket); nil for none.
    package var makeLayers: (@Sendable () -> LayerStack?)?

    package init(_ kind: Kind, makeLayers: (@Sendable () -> LayerStack?)? = nil) {
        self.kind = kind
        self.makeLayers = makeLayers
    }
}

import MessagingWire
import STOMPCore
package import Transport

/// What is spoken on the connections of one listener, and through which layers.
package struct Service: Sendable {
    package enum Kind: Sendable {
        case mqtt
        case stomp
    }

    /// What is spoken, unless the WebSocket tells.
    let kind: Kind
    private let tls: TLSContexts?
    private let webSocket: WebSocketServerOptions?

    /// Nanoseconds in which the handshakes of TLS and WebSocket have to be done.
    static let patience: Int64 = 10_000_000_000

    package init(_ kind: Kind, tls: TLSContexts? = nil) {
        self.kind = kind
        self.tls = tls
        webSocket = nil
    }

    /// Both protocols; the sub-protocol that a client offers tells which of them it speaks.
    ///
    /// - Parameter origins: of pages that may connect, besides those that this machine serves over HTTP.
    init(webSocketFor origins: [String], tls: TLSContexts? = nil) {
        let mqtt = ["mqtt", "mqttv3.1"].map { WebSocketServerOptions.Subprotocol($0) }
        // Browsers' clients want to find text, and one frame per message.
        let frames = WebSocketTextMessages("STOMP", lengthOfFirst: STOMPFrame.lengthOfFirst(in:))
        let stomp = Self.stompSubprotocols.map { WebSocketServerOptions.Subprotocol($0, textMessages: frames) }
        var options = WebSocketServerOptions(mqtt + stomp)
        options.origins = origins
        kind = .mqtt
        webSocket = options
        self.tls = tls
    }

    private static let stompSubprotocols = ["v12.stomp", "v11.stomp", "v10.stomp"]

    static func kind(ofSubprotocol name: String?) -> Kind {
        name.map(stompSubprotocols.contains) == true ? .stomp : .mqtt
    }

    /// The layers of one connection, and the one of them that knows what is spoken; nil for none.
    func makeLayers(at now: Int64) throws(TransportError) -> (layers: LayerStack, webSocket: WebSocketServerLayer?)? {
        var layers: [any ByteLayer] = []
        if let tls { layers.append(try TLSLayer(server: tls)) }
        let webSocket = webSocket.map { WebSocketServerLayer($0) }
        if let webSocket { layers.append(webSocket) }
        guard !layers.isEmpty else { return nil }
        let deadline = now.advanced(byNanoseconds: Self.patience)
        let timeout = TransportError(.timedOut, "A client did not finish its handshakes in time.")
        return (LayerStack(layers, deadline: deadline, timeout: timeout), webSocket)
    }
}

import STOMPCore
package import Transport
import Wire

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
        let stomp = Self.stompSubprotocols.map {
            WebSocketServerOptions.Subprotocol($0, textMessageLength: STOMPFrame.lengthOfFirst(in:))
        }
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
    func makeLayers() throws(TransportError) -> (layers: LayerStack, webSocket: WebSocketServerLayer?)? {
        var layers: [any ByteLayer] = []
        if let tls { layers.append(try TLSLayer(server: tls)) }
        let webSocket = webSocket.map { WebSocketServerLayer($0) }
        if let webSocket { layers.append(webSocket) }
        guard !layers.isEmpty else { return nil }
        let deadline = MonotonicClock.now.advanced(byNanoseconds: Self.patience)
        let timeout = TransportError(.timedOut, "a client did not finish its handshakes in time")
        return (LayerStack(layers, deadline: deadline, timeout: timeout), webSocket)
    }
}

/// A stream that can be frozen: nothing is read, written or reported, as with a half-open connection.
final class ServedStream: ByteStream, @unchecked Sendable {
    // Sendable because everything is touched on the loop's thread only: the broker runs its links nowhere else.
    private let inner: any ByteStream
    private var handler: LoopHandler?
    private var interest: Readiness = []
    private(set) var isFrozen: Bool

    init(_ inner: any ByteStream, isFrozen: Bool) {
        self.inner = inner
        self.isFrozen = isFrozen
    }

    var callersMaySend: Bool { true }
    var peerName: String { inner.peerName }
    var progress: StreamProgress { inner.progress }

    func attach(_ handler: LoopHandler, interest: Readiness) {
        self.handler = handler
        self.interest = interest
        if !isFrozen { inner.attach(handler, interest: interest) }
    }

    func setInterest(_ interest: Readiness) {
        self.interest = interest
        if !isFrozen { inner.setInterest(interest) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe isFrozen ? .wouldBlock : inner.read(into: buffer)
    }

    func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        unsafe isFrozen ? .wouldBlock : inner.write(from: buffer)
    }

    func endWriting() { inner.endWriting() }

    func detach() {
        handler = nil
        if !isFrozen { inner.detach() }
    }

    func close() {
        handler = nil
        inner.close()
    }

    /// Freezes or thaws; on the loop's thread. A frozen stream is not watched at all, so that a hang-up is not seen.
    func setFrozen(_ frozen: Bool) {
        guard frozen != isFrozen else { return }
        isFrozen = frozen
        guard let handler else { return }
        if frozen { inner.detach() } else { inner.attach(handler, interest: interest) }
    }
}

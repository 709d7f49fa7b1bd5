import MessagingHTTPCore
import MessagingWebSocketCore

/// The server's side of a WebSocket between a stream and an engine that reads messages as a stream of bytes.
package final class WebSocketServerLayer: ByteLayer {
    private let options: WebSocketServerOptions
    private var parser = HTTPRequestParser()
    /// Since the handshake.
    private var traffic: WebSocketTraffic?
    /// What is spoken, once the layer is open.
    package private(set) var subprotocol: String?

    private static let peerName = "a client"

    package init(_ options: WebSocketServerOptions) {
        self.options = options
    }

    package var isOpen: Bool { subprotocol != nil }
    package var isFinished: Bool { traffic?.isFinished ?? false }

    /// The client speaks first.
    package func opened(at now: Int64, wire: inout [UInt8]) {}

    package func receive(
        _ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]
    ) throws(TransportError) {
        var rest = bytes
        if !isOpen {
            let count = try readRequest(bytes, wire: &wire)
            rest = bytes.extracting(droppingFirst: count)
        }
        guard rest.byteCount > 0 else { return }
        try traffic?.receive(rest, plain: &plain, wire: &wire)
    }

    package func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        try traffic?.send(plain, wire: &wire)
    }

    package var owesAnswer: Bool { traffic?.owesPong ?? false }

    package func answer(wire: inout [UInt8]) {
        traffic?.answerPing(wire: &wire)
    }

    package func close(wire: inout [UInt8]) {
        traffic?.close(wire: &wire)
    }

    package func endReceived() throws(TransportError) {
        guard isOpen else {
            throw TransportError(.webSocketFailed, "\(Self.peerName) left in the middle of the WebSocket handshake.")
        }
        traffic?.streamEnded()
    }

    // MARK: The handshake

    /// Returns how many bytes belong to the request; a refusal is written before it is thrown.
    private func readRequest(_ bytes: RawSpan, wire: inout [UInt8]) throws(TransportError) -> Int {
        let count: Int
        do throws(HTTPError) {
            count = try parser.receive(bytes)
        } catch {
            guard error.code != .notHTTP else {
                throw TransportError(
                    .webSocketFailed, "\(Self.peerName) does not speak HTTP, with which a WebSocket begins.")
            }
            throw refuse(WebSocketRefusal(status: error.code == .headTooLarge ? 431 : 400, error.message), &wire)
        }
        guard let head = parser.request else { return count }
        do throws(WebSocketRefusal) {
            let request = try WebSocketUpgradeRequest(head)
            // Never nil: the policy requires one.
            let name = try options.policy.decide(request) ?? ""
            accept(request, name, &wire)
        } catch {
            throw refuse(error, &wire)
        }
        return count
    }

    private func accept(_ request: WebSocketUpgradeRequest, _ name: String, _ wire: inout [UInt8]) {
        // Refused only for sub-protocols that were not offered.
        try? request.accept(subprotocol: name, into: &wire)
        let textMessages = options.subprotocols.first { $0.name == name }?.textMessages
        traffic = WebSocketTraffic(
            .server, peerName: Self.peerName, acceptsText: textMessages != nil, textMessages: textMessages)
        subprotocol = name
    }

    private func refuse(_ refusal: WebSocketRefusal, _ wire: inout [UInt8]) -> TransportError {
        // Refused only for fields that it has not.
        try? refusal.response.write(into: &wire)
        return TransportError(
            .webSocketRefused, "\(Self.peerName) was refused with status \(refusal.status): \(refusal.message)")
    }
}

/// Which WebSockets a server takes.
package struct WebSocketServerOptions: Sendable {
    /// Something that can be spoken in a WebSocket.
    package struct Subprotocol: Sendable {
        package var name: String
        /// Nil for protocols that are binary and ignore where messages end.
        package var textMessages: WebSocketTextMessages?

        package init(_ name: String, textMessages: WebSocketTextMessages? = nil) {
            self.name = name
            self.textMessages = textMessages
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

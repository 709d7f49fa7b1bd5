import MessagingHTTPCore
import MessagingWebSocketCore
import MessagingWire

/// The client's side of a WebSocket between a stream and an engine that reads messages as a stream of bytes.
package final class WebSocketLayer: ByteLayer {
    private var handshake: WebSocketClientHandshake
    /// The bytes of the handshake's request, until they are sent.
    private var request: [UInt8] = []
    private var traffic: WebSocketTraffic
    private var peerName: String { traffic.peerName }
    package private(set) var isOpen = false
    /// What the server chose among those offered.
    package private(set) var subprotocol: String?

    /// - Parameters:
    ///   - target: path and query.
    ///   - subprotocols: offered unless the options name others.
    ///   - textMessages: those of the protocol, if the options ask for text; nil if none may be text, as MQTT's.
    ///   - random: for the key of the handshake and the masks of frames.
    /// - Throws: `badURL` for what cannot be asked for.
    package init(
        host: String, port: UInt16, isSecure: Bool, target: String, subprotocols: [String],
        options: WebSocketOptions, textMessages: WebSocketTextMessages?, random: LoopRandom = LoopRandom()
    ) throws(TransportError) {
        var request = WebSocketClientRequest(
            host: host, port: port, isSecure: isSecure, target: target, subprotocols: subprotocols)
        for (name, value) in options.headers { request.fields.append(name, value) }
        if let subprotocols = options.subprotocols { request.subprotocols = subprotocols }
        traffic = WebSocketTraffic(
            .client, peerName: "\(Endpoint.host(host, port: port))", acceptsText: textMessages != nil,
            textMessages: options.sendsText ? textMessages : nil, validatesText: options.validatesText,
            maximumFrameSize: options.maximumFrameSize, maximumMessageSize: options.maximumMessageSize, random: random)
        var generator = random
        let key = (0..<WebSocketKey.size).map { _ in UInt8.random(in: 0...255, using: &generator) }
        do throws(WebSocketError) {
            handshake = try WebSocketClientHandshake(request, keyBytes: key)
            // Now, so that a mistake in the options is reported without a server.
            try handshake.writeRequest(into: &self.request)
        } catch {
            throw TransportError(.badURL, "The WebSocket handshake cannot be sent: \(error.message)")
        }
    }

    package var isFinished: Bool { traffic.isFinished }

    package func stopValidatingText() { traffic.stopValidatingText() }

    package func opened(at now: Int64, wire: inout [UInt8]) throws(TransportError) {
        wire += request
        request = []
    }

    package func receive(
        _ bytes: RawSpan, at now: Int64, plain: inout [UInt8], wire: inout [UInt8]
    ) throws(TransportError) {
        var rest = bytes
        if !isOpen {
            let count: Int
            do throws(WebSocketHandshakeError) {
                count = try handshake.receive(bytes)
            } catch {
                throw TransportError(
                    .webSocketFailed, "The WebSocket handshake with \(peerName) failed: \(error.message)")
            }
            try judge()
            rest = bytes.extracting(droppingFirst: count)
        }
        guard isOpen, rest.byteCount > 0 else { return }
        try traffic.receive(rest, plain: &plain, wire: &wire)
    }

    private func judge() throws(TransportError) {
        switch handshake.outcome {
        case nil:
            break
        case .accepted(let subprotocol, _):
            self.subprotocol = subprotocol
            isOpen = true
        case .refused(let response):
            throw RefusedWebSocket(of: handshake.request, by: peerName).error(response)
        }
    }

    package func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        try traffic.send(plain, wire: &wire)
    }

    package var owesAnswer: Bool { traffic.owesPong }

    package func answer(wire: inout [UInt8]) {
        traffic.answerPing(wire: &wire)
    }

    package func close(wire: inout [UInt8]) {
        traffic.close(wire: &wire)
    }

    package func endReceived() throws(TransportError) {
        guard !isOpen else { return traffic.streamEnded() }
        do throws(WebSocketHandshakeError) {
            try handshake.streamEnded()
        } catch {
            throw TransportError(.webSocketFailed, "\(peerName): \(error.message)")
        }
        try judge()
    }

    package func timedOut() throws(TransportError) {
        guard !isOpen else { return }
        // Report the refusal even if its body is incomplete; without a status line there is nothing to report.
        try? handshake.streamEnded()
        try judge()
    }
}

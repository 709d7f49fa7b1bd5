import WebSocketCore

/// What both sides of a WebSocket do once its handshake is over: messages that are read as a stream of bytes.
struct WebSocketTraffic: ~Copyable {
    /// Who is on the other side, for errors.
    let peerName: String
    private var connection: WebSocketConnection
    private var events = WebSocketEvents()
    private var random: LoopRandom
    private let sendsText: Bool

    /// - Parameters:
    ///   - acceptsText: whether messages may be text; MQTT's may not.
    ///   - sendsText: whether messages are text as long as they are UTF-8.
    ///   - validatesText: whether incoming text has to be UTF-8 (RFC 6455 section 8.1).
    ///   - random: for the masks of a client's frames.
    init(
        _ role: WebSocketRole, peerName: String, acceptsText: Bool, sendsText: Bool, validatesText: Bool = true,
        maximumFrameSize: Int = .max, random: LoopRandom = LoopRandom()
    ) {
        var configuration = WebSocketConfiguration.byteStream(acceptsText: acceptsText)
        configuration.validatesText = validatesText
        configuration.outgoingFrameSize = max(1, maximumFrameSize)
        connection = WebSocketConnection(role: role, configuration: configuration)
        self.peerName = peerName
        self.random = random
        self.sendsText = sendsText && acceptsText
    }

    mutating func stopValidatingText() { connection.stopValidatingText() }

    var isFinished: Bool { connection.phase == .closed }

    mutating func receive(
        _ bytes: RawSpan, plain: inout [UInt8], wire: inout [UInt8]
    ) throws(TransportError) {
        events.removeAll()
        do throws(WebSocketProtocolError) {
            try connection.receive(bytes, into: &plain, events: &events, output: &wire, using: &random)
        } catch {
            throw TransportError(.webSocketFailed, "\(peerName) broke the WebSocket protocol: \(error).")
        }
        if let closure = connection.closure, closure.code != .normal, closure.initiator == .peer {
            let words = closure.reason.isEmpty ? "\(closure.code)" : "\(closure.code): \(closure.reason)"
            throw TransportError(.webSocketClosed, "\(peerName) closed the WebSocket: \(words).")
        }
    }

    /// Sends one message.
    mutating func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        // After our good-bye nothing more is said.
        guard connection.phase == .open else { return }
        do throws(WebSocketError) {
            guard sendsText else {
                return try connection.send(plain, as: .binary, into: &wire, using: &random)
            }
            do throws(WebSocketError) {
                try connection.send(plain, as: .text, into: &wire, using: &random)
            } catch {
                guard error.code == .textIsNotUTF8 else { throw error }
                try connection.send(plain, as: .binary, into: &wire, using: &random)
            }
        } catch {
            throw TransportError(.webSocketFailed, error.message)
        }
    }

    var owesPong: Bool { connection.owesPong }

    mutating func answerPing(wire: inout [UInt8]) {
        connection.answerPing(into: &wire, using: &random)
    }

    mutating func close(wire: inout [UInt8]) {
        // Refused only for codes that may not be sent.
        try? connection.close(.normal, into: &wire, using: &random)
    }

    mutating func streamEnded() { connection.streamEnded() }
}

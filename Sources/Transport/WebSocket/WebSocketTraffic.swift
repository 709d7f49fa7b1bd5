import WebSocketCore

/// How a protocol is cut into text messages: each of its own becomes one of the WebSocket. Servers of STOMP take one frame in
/// each, and ActiveMQ drops what follows it.
package struct WebSocketTextMessages: Sendable, Equatable {
    /// Of the protocol: those of one name are equal.
    let name: String
    /// The length of the first message in what is sent.
    let lengthOfFirst: @Sendable (RawSpan) -> Int

    package init(_ name: String, lengthOfFirst: @escaping @Sendable (RawSpan) -> Int) {
        (self.name, self.lengthOfFirst) = (name, lengthOfFirst)
    }

    package static func == (one: Self, other: Self) -> Bool { one.name.hasSameBytes(as: other.name) }
}

/// What both sides of a WebSocket do once its handshake is over: messages that are read as a stream of bytes.
struct WebSocketTraffic: ~Copyable {
    /// Who is on the other side, for errors.
    let peerName: String
    private var connection: WebSocketConnection
    private var events = WebSocketEvents()
    private var random: LoopRandom
    private let textMessages: WebSocketTextMessages?

    /// - Parameters:
    ///   - acceptsText: whether messages may be text; MQTT's may not.
    ///   - textMessages: what is sent, as text as long as it is UTF-8; nil for one binary message for all that is sent at once.
    ///   - validatesText: whether incoming text has to be UTF-8 (RFC 6455 section 8.1).
    ///   - random: for the masks of a client's frames.
    init(
        _ role: WebSocketRole, peerName: String, acceptsText: Bool, textMessages: WebSocketTextMessages?,
        validatesText: Bool = true, maximumFrameSize: Int = .max, random: LoopRandom = LoopRandom()
    ) {
        var configuration = WebSocketConfiguration.byteStream(acceptsText: acceptsText)
        configuration.validatesText = validatesText
        configuration.outgoingFrameSize = max(1, maximumFrameSize)
        connection = WebSocketConnection(role: role, configuration: configuration)
        self.peerName = peerName
        self.random = random
        self.textMessages = textMessages
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
            if let code = error.peerCloseCode {
                throw TransportError(
                    .webSocketClosed, "\(peerName) closed the WebSocket: \(code), a code that may not be sent.")
            }
            throw TransportError(.webSocketFailed, "\(peerName) broke the WebSocket protocol: \(error).")
        }
        if let closure = connection.closure, closure.code != .normal, closure.initiator == .peer {
            let words = closure.reason.isEmpty ? "\(closure.code)" : "\(closure.code): \(closure.reason)"
            throw TransportError(.webSocketClosed, "\(peerName) closed the WebSocket: \(words).")
        }
    }

    mutating func send(_ plain: RawSpan, wire: inout [UInt8]) throws(TransportError) {
        // After our good-bye nothing more is said.
        guard connection.phase == .open else { return }
        do throws(WebSocketError) {
            guard let textMessages else {
                return try connection.send(plain, as: .binary, into: &wire, using: &random)
            }
            var rest = plain
            while rest.byteCount > 0 {
                let count = min(max(1, textMessages.lengthOfFirst(rest)), rest.byteCount)
                try sendText(rest.extracting(first: count), wire: &wire)
                rest = rest.extracting(droppingFirst: count)
            }
        } catch {
            throw TransportError(.webSocketFailed, error.message)
        }
    }

    private mutating func sendText(_ message: RawSpan, wire: inout [UInt8]) throws(WebSocketError) {
        do throws(WebSocketError) {
            try connection.send(message, as: .text, into: &wire, using: &random)
        } catch {
            guard error.code == .textIsNotUTF8 else { throw error }
            try connection.send(message, as: .binary, into: &wire, using: &random)
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

import MessagingWebSocketCore

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
    private let maximumMessageSize: Int

    /// - Parameters:
    ///   - acceptsText: whether messages may be text; MQTT's may not.
    ///   - textMessages: what is sent, as text as long as it is UTF-8; nil for one binary message for all that is sent at once.
    ///   - validatesText: whether incoming text has to be UTF-8 (RFC 6455 section 8.1).
    ///   - random: for the masks of a client's frames.
    init(
        _ role: WebSocketRole, peerName: String, acceptsText: Bool, textMessages: WebSocketTextMessages?,
        validatesText: Bool = true, maximumFrameSize: Int = .max, maximumMessageSize: Int = .max,
        random: LoopRandom = LoopRandom()
    ) {
        var configuration = WebSocketConfiguration.byteStream(acceptsText: acceptsText)
        configuration.validatesText = validatesText
        configuration.outgoingFrameSize = max(1, maximumFrameSize)
        connection = WebSocketConnection(role: role, configuration: configuration)
        self.peerName = peerName
        self.random = random
        self.textMessages = textMessages
        // Room for any character of UTF-8.
        self.maximumMessageSize = max(4, maximumMessageSize)
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
        // Nothing may be sent after our Close frame.
        guard connection.phase == .open else { return }
        do throws(WebSocketError) {
            guard let textMessages else { return try send(plain, as: .binary, wire: &wire) }
            var rest = plain
            while rest.byteCount > 0 {
                let count = min(max(1, textMessages.lengthOfFirst(rest)), rest.byteCount)
                try send(rest.extracting(first: count), as: .text, wire: &wire)
                rest = rest.extracting(droppingFirst: count)
            }
        } catch {
            throw TransportError(.webSocketFailed, error.message)
        }
    }

    /// Sends bytes as one message, or as several if they are longer than the server takes. Bytes that are not UTF-8 are
    /// binary.
    private mutating func send(
        _ bytes: RawSpan, as kind: WebSocketMessageKind, wire: inout [UInt8]
    ) throws(WebSocketError) {
        var rest = bytes
        while rest.byteCount > maximumMessageSize {
            let count = kind == .text ? Self.endOfCharacter(in: rest, atMost: maximumMessageSize) : maximumMessageSize
            try sendMessage(rest.extracting(first: count), as: kind, wire: &wire)
            rest = rest.extracting(droppingFirst: count)
        }
        try sendMessage(rest, as: kind, wire: &wire)
    }

    private mutating func sendMessage(
        _ message: RawSpan, as kind: WebSocketMessageKind, wire: inout [UInt8]
    ) throws(WebSocketError) {
        do throws(WebSocketError) {
            try connection.send(message, as: kind, into: &wire, using: &random)
        } catch {
            guard error.code == .textIsNotUTF8 else { throw error }
            try connection.send(message, as: .binary, into: &wire, using: &random)
        }
    }

    /// The last place, not behind `limit`, at which longer text may be cut; `limit` itself if the bytes are not UTF-8.
    private static func endOfCharacter(in text: RawSpan, atMost limit: Int) -> Int {
        // A character has at most three bytes 10xxxxxx behind its first one.
        (limit - 3...limit).last { text.byte(at: $0) & 0xC0 != 0x80 } ?? limit
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

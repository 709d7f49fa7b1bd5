import MessagingHTTPCore

// Exported, so that the members of these errors can be used wherever this module is imported.
@_exported public import struct MessagingWire.CodedError

/// A mistake of ours: something that cannot be sent. Nothing was written.
package typealias WebSocketError = CodedError<WebSocketUsage>
/// The domain of ``WebSocketError``.
package enum WebSocketUsage {}

extension WebSocketError.Code {
    /// A Close frame was sent or received; nothing may follow it (section 5.5.1).
    package static var notOpen: Self { Self("notOpen") }
    /// A Close frame may not carry this code (section 7.4).
    package static var invalidClosure: Self { Self("invalidClosure") }
    /// Control frames carry at most 125 bytes (section 5.5).
    package static var controlPayloadTooLong: Self { Self("controlPayloadTooLong") }
    /// A text message has to be UTF-8 (section 5.6).
    package static var textIsNotUTF8: Self { Self("textIsNotUTF8") }
    /// A fragmented message has to end before another begins (section 5.4).
    package static var messageUnfinished: Self { Self("messageUnfinished") }
    /// The host cannot be written into a Host field.
    package static var invalidHost: Self { Self("invalidHost") }
    /// The path and query cannot be written into a request line.
    package static var invalidTarget: Self { Self("invalidTarget") }
    /// A header field is not allowed here, or its name or value is malformed.
    package static var invalidField: Self { Self("invalidField") }
    /// A sub-protocol is not a token, or is offered twice.
    package static var invalidSubprotocol: Self { Self("invalidSubprotocol") }
    /// The key of the handshake is not 16 bytes.
    package static var invalidKey: Self { Self("invalidKey") }
}

/// An opening handshake of the peer that cannot be accepted; the stream has to be closed (section 4).
package typealias WebSocketHandshakeError = CodedError<WebSocketHandshake>
/// The domain of ``WebSocketHandshakeError``.
package enum WebSocketHandshake {}

extension WebSocketHandshakeError.Code {
    /// The first line is not one of HTTP/1.
    package static var notHTTP: Self { Self("notHTTP") }
    package static var malformedHead: Self { Self("malformedHead") }
    /// The head exceeds `HTTPHeadLimits`.
    package static var headTooLarge: Self { Self("headTooLarge") }
    /// The response says 101, but not to the WebSocket protocol.
    package static var wrongUpgrade: Self { Self("wrongUpgrade") }
    /// `Sec-WebSocket-Accept` does not belong to our key.
    package static var wrongAccept: Self { Self("wrongAccept") }
    /// The server chose a sub-protocol that was not offered, or several.
    package static var wrongSubprotocol: Self { Self("wrongSubprotocol") }
    /// The server uses an extension; we offer none.
    package static var unofferedExtension: Self { Self("unofferedExtension") }
    /// The stream ended before the handshake did.
    package static var endedEarly: Self { Self("endedEarly") }
}

/// Frames of the peer that break the protocol or a limit of ours; the connection has been failed (section 7.1.7).
package struct WebSocketProtocolError: Error, Sendable, Hashable {
    /// The code in our Close frame.
    package let closeCode: WebSocketCloseCode
    /// What was wrong, in words, for people; short enough for a Close frame's reason.
    package let message: String
    /// The section of RFC 6455 that was broken, such as "5.5".
    package let section: String
    /// The code of the peer's Close frame, if that is what was wrong: the peer has ended the connection all the same.
    package private(set) var peerCloseCode: WebSocketCloseCode?

    package init(_ closeCode: WebSocketCloseCode, _ message: String, section: String) {
        self.closeCode = closeCode
        self.message = message
        self.section = section
    }

    static func protocolError(_ message: String, _ section: String) -> WebSocketProtocolError {
        WebSocketProtocolError(.protocolError, message, section: section)
    }

    static func closeCode(_ code: WebSocketCloseCode) -> WebSocketProtocolError {
        var error = protocolError(
            "The peer's Close frame has the code \(code.rawValue), which must not be sent.", "7.4")
        error.peerCloseCode = code
        return error
    }

    static var notUTF8: WebSocketProtocolError {
        WebSocketProtocolError(.invalidData, "A text message is not UTF-8.", section: "8.1")
    }

    static func tooBig(_ message: String) -> WebSocketProtocolError {
        WebSocketProtocolError(.messageTooBig, message, section: "10.4")
    }

    static var reservedBits: WebSocketProtocolError {
        .protocolError("The peer set a reserved bit, but no extension was agreed on.", "5.2")
    }

    static func reservedOpcode(_ opcode: UInt8) -> WebSocketProtocolError {
        .protocolError("The peer sent a frame with the reserved opcode \(opcode).", "5.2")
    }

    static var fragmentedControl: WebSocketProtocolError {
        .protocolError("The peer fragmented a control frame.", "5.5")
    }

    static var longControl: WebSocketProtocolError {
        .protocolError("The peer sent a control frame of more than 125 bytes.", "5.5")
    }

    static func masking(by sender: WebSocketRole) -> WebSocketProtocolError {
        .protocolError(
            sender == .client ? "The client sent an unmasked frame." : "The server sent a masked frame.", "5.1")
    }

    static func notMinimal(_ count: UInt64) -> WebSocketProtocolError {
        .protocolError("The peer did not write the frame length \(count) in its shortest form.", "5.2")
    }
}

extension WebSocketProtocolError: CustomStringConvertible {
    package var description: String { "\(message) [RFC 6455 \(section)], \(closeCode)" }
}

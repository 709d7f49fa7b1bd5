/// An opening handshake of the peer that cannot be accepted; the stream has to be closed (section 4).
package struct WebSocketHandshakeError: Error, Sendable, Hashable {
    /// What was wrong; the set may grow.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The first line is not one of HTTP/1.
        package static let notHTTP = Code(rawValue: "notHTTP")
        package static let malformedHead = Code(rawValue: "malformedHead")
        /// The head exceeds `HTTPHeadLimits`.
        package static let headTooLarge = Code(rawValue: "headTooLarge")
        /// The response says 101, but not to the WebSocket protocol.
        package static let wrongUpgrade = Code(rawValue: "wrongUpgrade")
        /// `Sec-WebSocket-Accept` does not belong to our key.
        package static let wrongAccept = Code(rawValue: "wrongAccept")
        /// The server chose a sub-protocol that was not offered, or several.
        package static let wrongSubprotocol = Code(rawValue: "wrongSubprotocol")
        /// The server uses an extension; we offer none.
        package static let unofferedExtension = Code(rawValue: "unofferedExtension")
        /// The stream ended before the handshake did.
        package static let endedEarly = Code(rawValue: "endedEarly")
    }

    package let code: Code
    /// What was wrong, in words.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static func malformed(_ message: String) -> WebSocketHandshakeError {
        WebSocketHandshakeError(.malformedHead, message)
    }
}

extension WebSocketHandshakeError: CustomStringConvertible {
    package var description: String { message }
}

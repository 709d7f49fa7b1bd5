import HTTPCore
import Wire

/// An opening handshake of the peer that cannot be accepted; the stream has to be closed (section 4).
package struct WebSocketHandshakeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was wrong; the set may grow.
    package struct Code: ErrorCode {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// The first line is not one of HTTP/1.
        package static let notHTTP = Self("notHTTP")
        package static let malformedHead = Self("malformedHead")
        /// The head exceeds `HTTPHeadLimits`.
        package static let headTooLarge = Self("headTooLarge")
        /// The response says 101, but not to the WebSocket protocol.
        package static let wrongUpgrade = Self("wrongUpgrade")
        /// `Sec-WebSocket-Accept` does not belong to our key.
        package static let wrongAccept = Self("wrongAccept")
        /// The server chose a sub-protocol that was not offered, or several.
        package static let wrongSubprotocol = Self("wrongSubprotocol")
        /// The server uses an extension; we offer none.
        package static let unofferedExtension = Self("unofferedExtension")
        /// The stream ended before the handshake did.
        package static let endedEarly = Self("endedEarly")
    }

    package let code: Code
    /// What was wrong, in words.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// A head that is not HTTP/1, with the same code and message.
    init(_ error: HTTPError) {
        self.init(Code(rawValue: error.code.rawValue), error.message)
    }

    package var description: String { message }
}

/// Frames of the peer that break the protocol or a limit of ours; the connection has been failed (section 7.1.7).
package struct WebSocketProtocolError: Error, Sendable, Hashable {
    /// What our Close frame said.
    package let closeCode: WebSocketCloseCode
    /// What was wrong, in words, for people; short enough for a Close frame's reason.
    package let message: String
    /// The section of RFC 6455 that was broken, such as "5.5".
    package let section: String

    package init(_ closeCode: WebSocketCloseCode, _ message: String, section: String) {
        self.closeCode = closeCode
        self.message = message
        self.section = section
    }

    static func protocolError(_ message: String, _ section: String) -> WebSocketProtocolError {
        WebSocketProtocolError(.protocolError, message, section: section)
    }
}

extension WebSocketProtocolError: CustomStringConvertible {
    package var description: String { "\(message) [RFC 6455 \(section)], \(closeCode)" }
}

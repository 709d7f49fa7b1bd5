import HTTPCore
import Wire

/// A mistake of ours: something that cannot be sent. Nothing was written.
package struct WebSocketError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of mistake it is; the set may grow.
    package struct Code: ErrorCode {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// A Close frame was sent or received; nothing may follow it (section 5.5.1).
        package static let notOpen = Self("notOpen")
        /// A Close frame may not carry this code (section 7.4).
        package static let invalidClosure = Self("invalidClosure")
        /// Control frames carry at most 125 bytes (section 5.5).
        package static let controlPayloadTooLong = Self("controlPayloadTooLong")
        /// A text message has to be UTF-8 (section 5.6).
        package static let textIsNotUTF8 = Self("textIsNotUTF8")
        /// A fragmented message has to end before another begins (section 5.4).
        package static let messageUnfinished = Self("messageUnfinished")
        /// The host cannot stand in a Host field.
        package static let invalidHost = Self("invalidHost")
        /// The path and query cannot stand in a request line.
        package static let invalidTarget = Self("invalidTarget")
        /// A header field is not allowed here, or its name or value is malformed.
        package static let invalidField = Self("invalidField")
        /// A sub-protocol is not a token, or is offered twice.
        package static let invalidSubprotocol = Self("invalidSubprotocol")
        /// The key of the handshake is not 16 bytes.
        package static let invalidKey = Self("invalidKey")
    }

    package let code: Code
    /// What was wrong and what to do, in words.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// A head that cannot be written, with the same code and message.
    init(_ error: HTTPError) {
        self.init(Code(rawValue: error.code.rawValue), error.message)
    }

    package var description: String { message }
}

/// A mistake of ours: something that cannot be sent. Nothing was written.
package struct WebSocketError: Error, Sendable, Hashable {
    /// What kind of mistake it is; the set may grow.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// A Close frame was sent or received; nothing may follow it (section 5.5.1).
        package static let notOpen = Code(rawValue: "notOpen")
        /// A Close frame may not carry this code (section 7.4).
        package static let invalidClosure = Code(rawValue: "invalidClosure")
        /// Control frames carry at most 125 bytes (section 5.5).
        package static let controlPayloadTooLong = Code(rawValue: "controlPayloadTooLong")
        /// A text message has to be UTF-8 (section 5.6).
        package static let textIsNotUTF8 = Code(rawValue: "textIsNotUTF8")
        /// A fragmented message has to end before another begins (section 5.4).
        package static let messageUnfinished = Code(rawValue: "messageUnfinished")
        /// The host cannot stand in a Host field.
        package static let invalidHost = Code(rawValue: "invalidHost")
        /// The path and query cannot stand in a request line.
        package static let invalidTarget = Code(rawValue: "invalidTarget")
        /// A header field is not allowed here, or its name or value is malformed.
        package static let invalidField = Code(rawValue: "invalidField")
        /// A sub-protocol is not a token, or is offered twice.
        package static let invalidSubprotocol = Code(rawValue: "invalidSubprotocol")
        /// The key of the handshake is not 16 bytes.
        package static let invalidKey = Code(rawValue: "invalidKey")
    }

    package let code: Code
    /// What was wrong and what to do, in words.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

extension WebSocketError: CustomStringConvertible {
    package var description: String { message }
}

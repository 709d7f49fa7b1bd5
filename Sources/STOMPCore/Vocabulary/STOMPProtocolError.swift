/// Something that the peer must not do. It ends the connection.
public struct STOMPProtocolError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of violation; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        public let description: String

        /// The first line is no command.
        public static let malformedCommand = Code(description: "malformedCommand")
        /// A header line without a colon, or with an empty name.
        public static let malformedHeader = Code(description: "malformedHeader")
        /// A backslash sequence that this version does not define (STOMP 1.2 "Value Encoding").
        public static let undefinedEscape = Code(description: "undefinedEscape")
        /// Headers are UTF-8 (STOMP 1.2 "Overview").
        public static let invalidUTF8 = Code(description: "invalidUTF8")
        /// `content-length` is no number of bytes.
        public static let invalidContentLength = Code(description: "invalidContentLength")
        /// The byte after a body of declared length is not NUL.
        public static let missingTerminator = Code(description: "missingTerminator")
        /// A body on a frame that may not have one.
        public static let unexpectedBody = Code(description: "unexpectedBody")
        /// One of ``STOMPLimits`` is exceeded.
        public static let limitExceeded = Code(description: "limitExceeded")
        /// A frame that is not allowed now.
        public static let unexpectedFrame = Code(description: "unexpectedFrame")
        /// A frame without a header that it must have.
        public static let missingHeader = Code(description: "missingHeader")
        /// A header whose value makes no sense.
        public static let invalidHeader = Code(description: "invalidHeader")
        /// A version that was not offered, or none in common (STOMP 1.2 "Protocol Negotiation").
        public static let versionMismatch = Code(description: "versionMismatch")
    }

    public var code: Code
    /// What happened, which limit or value, and what to do.
    public var message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }

    static let answersInTLS = STOMPProtocolError(
        .malformedCommand,
        "The peer answers in TLS. Use a URL with TLS (stomps://, wss://), or the port without.")
}

import MessagingWire

/// One side of a WebSocket connection after its opening handshake (RFC 6455 sections 5 to 7), without any input or
/// output of its own.
///
/// Theory of operation. Bytes of the peer go into `receive`, which takes all of them, whatever their split; payload is
/// appended to the caller's plaintext, answers (pongs, the closing handshake) to the caller's output. `send`, `ping`
/// and `close` append frames to the output. The connection keeps only what cannot be passed on yet: at most 13 bytes of
/// a frame header, at most 125 of a control frame, one unanswered ping. Payload of data frames is never held back, so a
/// protocol that ignores frame boundaries reads the plaintext as a stream, and one that wants messages takes their
/// lengths from the events.
///
/// Frames of a client are masked with 32 bits of the random number generator that each call is given. They must be
/// unpredictable to the author of the payload (section 10.3), so pass `SystemRandomNumberGenerator` or another of
/// cryptographic quality; a server's calls draw nothing from it.
///
/// Whatever the peer sends, the worst is a thrown `WebSocketProtocolError`, after which the connection is closed, the
/// output ends with a Close frame that tells why, and further input is ignored.
package struct WebSocketConnection: ~Copyable {
    package enum Phase: Sendable, Hashable {
        /// Both directions carry messages.
        case open
        /// Our Close frame went out; the peer's is awaited, and data that was under way is still taken.
        case closing
        /// Nothing is sent or taken any more.
        case closed
    }

    package let role: WebSocketRole
    package let configuration: WebSocketConfiguration
    package internal(set) var phase = Phase.open
    /// How the connection ended; nil before it has.
    package internal(set) var closure: WebSocketClosure?

    // The frame that is being read.
    var headerBytes: [UInt8] = []
    var isInFrame = false
    var frameOpcode = WebSocketOpcode.continuation
    var frameIsFinal = false
    var frameRemaining = 0
    var frameMask = WebSocketMask.none
    var controlPayload: [UInt8] = []

    // The message that its fragments belong to.
    var isInMessage = false
    var messageKind = WebSocketMessageKind.binary
    var messageSize = 0
    var messageText = UTF8Validator()
    var validatesText: Bool

    // Pings of the peer and of our own.
    var unansweredPing: [UInt8]?
    var pingsSent: UInt64 = 0
    var pingsAnswered: UInt64 = 0

    // The message that `sendFragment` has begun.
    var outgoingKind: WebSocketMessageKind?
    var outgoingText = UTF8Validator()

    package init(role: WebSocketRole, configuration: WebSocketConfiguration = WebSocketConfiguration()) {
        self.role = role
        self.configuration = configuration
        validatesText = configuration.validatesText
    }

    /// Passes incoming text on unchecked from now on, the rest of a message that is under way included.
    package mutating func stopValidatingText() {
        validatesText = false
        messageText = UTF8Validator()
    }
}

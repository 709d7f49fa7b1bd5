import MessagingWebSocketCore

/// Frames after the opening handshake: the same plaintext, events and answers for every splitting.
enum WebSocketFrames {
    private struct Run: Equatable {
        var plaintext: [UInt8] = []
        var output: [UInt8] = []
        var events = WebSocketEvents()
        var violation: WebSocketProtocolError?
        var closure: WebSocketClosure?

        init(_ pieces: [[UInt8]], _ role: WebSocketRole, _ configuration: WebSocketConfiguration) {
            var connection = WebSocketConnection(role: role, configuration: configuration)
            var generator = Counter()
            do throws(WebSocketProtocolError) {
                for piece in pieces {
                    try connection.receive(
                        piece.span.bytes, into: &plaintext, events: &events, output: &output, using: &generator)
                }
            } catch {
                violation = error
            }
            connection.answerPing(into: &output, using: &generator)
            connection.streamEnded()
            closure = connection.closure
        }
    }

    /// Masks are the same in each run.
    private struct Counter: RandomNumberGenerator {
        private var value: UInt64 = 0

        mutating func next() -> UInt64 {
            value &+= 0x9E37_79B9_7F4A_7C15
            return value
        }
    }

    static func check(_ input: FuzzInput) {
        var input = input
        let variant = input.byte()
        let pattern = input.byte()
        var configuration = WebSocketConfiguration()
        configuration.maximumFrameSize = 256
        configuration.maximumMessageSize = 512
        configuration.acceptsText = variant & 2 == 0
        configuration.validatesText = variant & 4 == 0
        configuration.pongBacklog = variant & 8 == 0 ? 64 : -1
        let role: WebSocketRole = variant & 1 == 0 ? .client : .server
        let whole = Run([Array(input.bytes)], role, configuration)
        let split = Run(input.pieces(pattern), role, configuration)
        require(whole == split, "\(whole) became \(split) in pieces of \(pattern)")
        require(whole.plaintext.count <= input.bytes.count, "more plaintext than bytes")
        // One pong may wait behind the backlog, and a Close frame has at most 131 bytes.
        require(whole.output.count <= 64 + 2 * 131 + 131, "\(whole.output.count) bytes of answers")
    }
}

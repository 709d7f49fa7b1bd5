extension WebSocketConnection {
    /// Sends a ping whose payload is its number, in eight bytes; its answer ends `isAwaitingPong`.
    ///
    /// - Throws: `notOpen`.
    package mutating func ping(
        into output: inout [UInt8], using generator: inout some RandomNumberGenerator
    ) throws(WebSocketError) {
        try requireOpen()
        pingsSent += 1
        let number = pingsSent
        let payload = (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - $0 * 8)) }
        // Bytes have no padding between them.
        unsafe write(.ping, payload.span.bytes, into: &output, using: &generator)
    }

    /// Sends a ping or, unasked, a pong with a payload of the caller's.
    ///
    /// - Throws: `notOpen`, `controlPayloadTooLong`.
    package mutating func sendControl(
        _ payload: RawSpan, isPong: Bool, into output: inout [UInt8], using generator: inout some RandomNumberGenerator
    ) throws(WebSocketError) {
        try requireOpen()
        guard payload.byteCount <= 125 else {
            throw WebSocketError(
                .controlPayloadTooLong, "a ping or pong carries at most 125 bytes, not \(payload.byteCount)")
        }
        write(isPong ? .pong : .ping, payload, into: &output, using: &generator)
    }

    /// Whether a ping waits for `answerPing`.
    package var owesPong: Bool { unansweredPing != nil && phase == .open }

    /// Answers the newest ping, if one waits.
    ///
    /// `receive` does this by itself while the output is short (`pongBacklog`); call it when the output has drained.
    package mutating func answerPing(
        into output: inout [UInt8], using generator: inout some RandomNumberGenerator
    ) {
        guard let payload = unansweredPing, phase == .open else { return }
        unansweredPing = nil
        // Bytes have no padding between them.
        unsafe write(.pong, payload.span.bytes, into: &output, using: &generator)
    }

    /// A pong answers its ping and all before it: the peer may answer only the newest (section 5.5.3).
    mutating func noteAnswer() {
        guard controlPayload.count == 8 else { return }
        let number = controlPayload.reduce(0) { $0 << 8 | UInt64($1) }
        if number > pingsAnswered && number <= pingsSent { pingsAnswered = number }
    }
}

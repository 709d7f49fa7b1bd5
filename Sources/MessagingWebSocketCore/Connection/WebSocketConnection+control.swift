import MessagingWire

extension WebSocketConnection {
    /// Sends a ping whose payload is its number, in eight bytes.
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

extension WebSocketConnection {
    /// The longest reason that fits into a Close frame beside its code, in bytes of UTF-8.
    package static var maximumReasonSize: Int { 123 }

    /// Begins the closing handshake; does nothing when it has begun.
    ///
    /// - Parameter code: nil for a Close frame without a code; the reason has to be empty then.
    /// - Throws: `invalidClosure`, `controlPayloadTooLong`.
    package mutating func close(
        _ code: WebSocketCloseCode? = .normal, reason: String = "", into output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) throws(WebSocketError) {
        if let code, !code.isAllowedOnWire {
            throw WebSocketError(
                .invalidClosure, "Close code \(code) cannot be sent. Use 1000–1003, 1007–1014 or 3000–4999.")
        }
        guard code != nil || reason.isEmpty else {
            throw WebSocketError(.invalidClosure, "A reason needs a close code beside it.")
        }
        guard reason.utf8.count <= Self.maximumReasonSize else {
            throw WebSocketError(
                .controlPayloadTooLong,
                "A close reason has at most \(Self.maximumReasonSize) bytes, not \(reason.utf8.count).")
        }
        guard phase == .open else { return }
        phase = .closing
        writeClose(code, reason: reason, into: &output, using: &generator)
    }

    /// The stream below has ended; without a Close frame of the peer before, that is an abnormal closure (1006).
    package mutating func streamEnded() {
        guard phase != .closed else { return }
        closure = WebSocketClosure(
            initiator: phase == .closing ? .us : .peer, code: .abnormal,
            reason: "the stream ended without a Close frame", isClean: false)
        phase = .closed
    }

    /// Judges the peer's Close frame (sections 5.5.1 and 7.1.5), answers it if ours has not gone out, and is closed.
    mutating func finishClose(
        _ output: inout [UInt8], _ generator: inout some RandomNumberGenerator
    ) throws(WebSocketProtocolError) {
        var code: WebSocketCloseCode?
        var reason = ""
        if !controlPayload.isEmpty {
            guard controlPayload.count >= 2 else {
                throw .protocolError("The peer's Close frame has one byte; a code has two.", "5.5.1")
            }
            let received = WebSocketCloseCode(rawValue: UInt16(controlPayload[0]) << 8 | UInt16(controlPayload[1]))
            guard received.isAllowedOnWire else { throw .closeCode(received) }
            guard let text = String(validating: controlPayload[2...], as: UTF8.self) else {
                throw WebSocketProtocolError(
                    .invalidData, "The reason of a Close frame is not UTF-8.", section: "5.5.1")
            }
            code = received
            reason = text
        }
        closure = WebSocketClosure(
            initiator: phase == .closing ? .us : .peer, code: code ?? .noStatus, reason: reason, isClean: true)
        if phase == .open { writeClose(code, reason: "", into: &output, using: &generator) }
        phase = .closed
    }

    /// Fails the connection (section 7.1.7).
    mutating func fail(
        _ violation: WebSocketProtocolError, into output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) {
        if phase == .open {
            let reason = violation.message.utf8.count <= Self.maximumReasonSize ? violation.message : ""
            writeClose(violation.closeCode, reason: reason, into: &output, using: &generator)
        }
        closure = WebSocketClosure(
            initiator: .us, code: violation.closeCode, reason: violation.message, isClean: false)
        phase = .closed
    }

    private func writeClose(
        _ code: WebSocketCloseCode?, reason: String, into output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) {
        var payload: [UInt8] = []
        if let code {
            payload = [UInt8(code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
            payload.append(contentsOf: reason.utf8)
        }
        // Bytes have no padding between them.
        unsafe write(.close, payload.span.bytes, into: &output, using: &generator)
    }
}

import MessagingWire

extension WebSocketConnection {
    /// Sends one message, split into frames of `outgoingFrameSize`.
    ///
    /// - Throws: `notOpen`, `messageUnfinished`, `textIsNotUTF8`; nothing was written then.
    package mutating func send(
        _ bytes: RawSpan, as kind: WebSocketMessageKind, into output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) throws(WebSocketError) {
        guard outgoingKind == nil else {
            throw WebSocketError(.messageUnfinished, "Finish the message that was begun with sendFragment first.")
        }
        try sendFragment(bytes, as: kind, isFinal: true, into: &output, using: &generator)
    }

    /// Sends a part of a message; characters of a text may be cut anywhere (section 5.4).
    ///
    /// - Throws: `notOpen`, `textIsNotUTF8`, `messageUnfinished` for a part of another kind; nothing was written then.
    package mutating func sendFragment(
        _ bytes: RawSpan, as kind: WebSocketMessageKind, isFinal: Bool, into output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) throws(WebSocketError) {
        try requireOpen()
        guard outgoingKind == nil || outgoingKind == kind else {
            throw WebSocketError(
                .messageUnfinished,
                "The unfinished message is \(outgoingKind ?? kind). Finish it before sending a \(kind) one.")
        }
        if kind == .text {
            var text = outgoingText
            guard text.check(bytes) == nil && (!isFinal || text.isAtBoundary) else {
                throw WebSocketError(.textIsNotUTF8, "A text message has to be UTF-8. Send it as binary.")
            }
            outgoingText = text
        }
        var opcode = outgoingKind == nil ? kind.opcode : .continuation
        var offset = 0
        repeat {
            let count = min(max(1, configuration.outgoingFrameSize), bytes.byteCount - offset)
            let part = bytes.extracting(offset..<(offset + count))
            offset += count
            write(opcode, part, isFinal: isFinal && offset == bytes.byteCount, into: &output, using: &generator)
            opcode = .continuation
        } while offset < bytes.byteCount
        outgoingKind = isFinal ? nil : kind
    }

    func requireOpen() throws(WebSocketError) {
        guard phase == .open else {
            throw WebSocketError(.notOpen, "The WebSocket is \(phase). Nothing can be sent any more.")
        }
    }

    /// Appends one frame, masked if we are the client (section 5.3).
    func write(
        _ opcode: WebSocketOpcode, _ payload: RawSpan, isFinal: Bool = true, into output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) {
        let key = role == .client ? UInt32(truncatingIfNeeded: generator.next()) : nil
        WebSocketFrameHeader(opcode: opcode, isFinal: isFinal, payloadCount: payload.byteCount, maskingKey: key)
            .write(payload, into: &output)
    }
}

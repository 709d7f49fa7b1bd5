import MessagingWire

extension WebSocketConnection {
    /// Takes all of `bytes`, which follow those of the calls before.
    ///
    /// - Parameters:
    ///   - plaintext: payload of data frames is appended here as it arrives; of text, only what is valid so far.
    ///   - events: ends of messages, pings and pongs are added here.
    ///   - output: pongs and Close frames are appended here.
    ///   - generator: masks them, if this side is the client.
    /// - Throws: a violation after which the connection is closed; what was appended before it stands.
    package mutating func receive(
        _ bytes: RawSpan, into plaintext: inout [UInt8], events: inout WebSocketEvents, output: inout [UInt8],
        using generator: inout some RandomNumberGenerator
    ) throws(WebSocketProtocolError) {
        guard phase != .closed else { return }
        answerIfShort(&output, &generator)
        do throws(WebSocketProtocolError) {
            var index = 0
            while phase != .closed {
                if !isInFrame { try readHeader(bytes, from: &index) }
                guard isInFrame else { return }
                let count = min(frameRemaining, bytes.byteCount - index)
                let range = index..<(index + count)
                index += count
                frameRemaining -= count
                if frameOpcode.isControl {
                    frameMask.append(bytes.extracting(range), to: &controlPayload)
                    guard frameRemaining == 0 else { return }
                    try finishControl(&events, &output, &generator)
                } else {
                    if count > 0 { try readData(bytes.extracting(range), into: &plaintext) }
                    guard frameRemaining == 0 else { return }
                    if frameIsFinal { try finishMessage(&events) }
                }
                isInFrame = false
            }
        } catch {
            fail(error, into: &output, using: &generator)
            throw error
        }
    }

    /// Reads a header where it lies; one that is not all there yet is collected byte by byte.
    @inline(__always)
    private mutating func readHeader(_ bytes: RawSpan, from index: inout Int) throws(WebSocketProtocolError) {
        if headerBytes.isEmpty {
            if let header = try WebSocketFrameHeader.parse(bytes, at: index, sentBy: role.peer) {
                index += header.size
                return try begin(header)
            }
        }
        try collectHeader(bytes, from: &index)
    }

    private mutating func collectHeader(_ bytes: RawSpan, from index: inout Int) throws(WebSocketProtocolError) {
        while index < bytes.byteCount {
            headerBytes.append(bytes.byte(at: index))
            index += 1
            // Bytes have no padding between them.
            if let header = try unsafe WebSocketFrameHeader.parse(headerBytes.span.bytes, sentBy: role.peer) {
                headerBytes.removeAll(keepingCapacity: true)
                return try begin(header)
            }
        }
    }

    /// Judges a header by what came before it and by our limits (sections 5.4 and 10.4).
    @inline(__always)
    private mutating func begin(_ header: WebSocketFrameHeader) throws(WebSocketProtocolError) {
        if !header.opcode.isControl {
            try beginData(header)
        }
        isInFrame = true
        frameOpcode = header.opcode
        frameIsFinal = header.isFinal
        frameRemaining = header.payloadCount
        frameMask = WebSocketMask(littleEndian: header.maskingKey ?? 0)
    }

    @inline(__always)
    private mutating func beginData(_ header: WebSocketFrameHeader) throws(WebSocketProtocolError) {
        if header.opcode == .continuation {
            guard isInMessage else {
                throw .protocolError("The peer continued a message without having begun one.", "5.4")
            }
        } else {
            guard !isInMessage else {
                throw .protocolError("The peer began a message before it finished a fragmented one.", "5.4")
            }
            isInMessage = true
            messageKind = header.opcode == .text ? .text : .binary
            messageSize = 0
            guard messageKind == .text ? configuration.acceptsText : configuration.acceptsBinary else {
                throw WebSocketProtocolError(
                    .unsupportedData, "The peer sent a \(messageKind) message, which is not accepted here.",
                    section: "7.4.1")
            }
        }
        let count = header.payloadCount
        guard count <= configuration.maximumFrameSize else {
            throw .tooBig("The peer sent a frame of \(count) bytes; the limit is \(configuration.maximumFrameSize).")
        }
        guard count <= configuration.maximumMessageSize - messageSize else {
            throw .tooBig("The peer sent a message of more than \(configuration.maximumMessageSize) bytes, the limit.")
        }
        messageSize += count
    }

    @inline(__always)
    private mutating func readData(_ bytes: RawSpan, into plaintext: inout [UInt8]) throws(WebSocketProtocolError) {
        let start = plaintext.count
        frameMask.append(bytes, to: &plaintext)
        guard messageKind == .text && validatesText else { return }
        // Bytes have no padding between them.
        if let bad = unsafe messageText.check(plaintext.span.bytes.extracting(start..<plaintext.count)) {
            plaintext.removeSubrange((start + bad)...)
            throw .notUTF8
        }
    }

    private mutating func answerIfShort(_ output: inout [UInt8], _ generator: inout some RandomNumberGenerator) {
        if output.count <= configuration.pongBacklog { answerPing(into: &output, using: &generator) }
    }

    private mutating func finishMessage(_ events: inout WebSocketEvents) throws(WebSocketProtocolError) {
        isInMessage = false
        guard messageKind == .binary || messageText.isAtBoundary else { throw .notUTF8 }
        if configuration.reportsMessages {
            events.messages.append(WebSocketEvents.Message(kind: messageKind, byteCount: messageSize))
        }
    }

    private mutating func finishControl(
        _ events: inout WebSocketEvents, _ output: inout [UInt8], _ generator: inout some RandomNumberGenerator
    ) throws(WebSocketProtocolError) {
        switch frameOpcode {
        case .ping:
            events.pings += 1
            unansweredPing = controlPayload
            answerIfShort(&output, &generator)
        case .pong:
            events.pongs += 1
            noteAnswer()
        default:
            try finishClose(&output, &generator)
        }
        controlPayload.removeAll(keepingCapacity: true)
    }
}

import Wire

/// The 2 to 14 bytes before the payload of a frame (section 5.2).
package struct WebSocketFrameHeader: Sendable, Hashable {
    package var opcode: WebSocketOpcode
    package var isFinal: Bool
    package var payloadCount: Int
    /// The masking key with its first byte lowest; nil in frames of a server.
    package var maskingKey: UInt32?

    package init(opcode: WebSocketOpcode, isFinal: Bool = true, payloadCount: Int, maskingKey: UInt32? = nil) {
        self.opcode = opcode
        self.isFinal = isFinal
        self.payloadCount = payloadCount
        self.maskingKey = maskingKey
    }

    /// The longest header: two bytes, eight of length, four of key.
    package static let maximumSize = 14

    /// Its length on the wire in bytes.
    package var size: Int {
        let length = payloadCount < 126 ? 2 : payloadCount <= 0xFFFF ? 4 : 10
        return maskingKey == nil ? length : length + 4
    }

    /// Reads the header that begins at `start`; nil while bytes are missing.
    ///
    /// Every byte is judged as soon as it is there, in their order, so that the verdict does not depend on how they
    /// were split.
    @inline(__always)
    package static func parse(
        _ bytes: RawSpan, at start: Int = 0, sentBy sender: WebSocketRole
    ) throws(WebSocketProtocolError) -> WebSocketFrameHeader? {
        let available = bytes.byteCount - start
        guard available >= 1 else { return nil }
        let first = bytes.byte(at: start)
        guard first & 0x70 == 0 else { throw .reservedBits }
        guard let opcode = WebSocketOpcode(rawValue: first & 0xF) else { throw .reservedOpcode(first & 0xF) }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { throw .fragmentedControl }
        guard available >= 2 else { return nil }
        let second = bytes.byte(at: start + 1)
        guard (second & 0x80 != 0) == (sender == .client) else { throw .masking(by: sender) }
        var payloadCount = Int(second & 0x7F)
        guard payloadCount <= 125 || !opcode.isControl else { throw .longControl }
        var size = 2
        if payloadCount > 125 {
            let isWide = payloadCount == 127
            size = isWide ? 10 : 4
            guard available >= size else { return nil }
            payloadCount =
                isWide
                ? try wideCount(bytes.bigEndian(UInt64.self, at: start + 2))
                : try narrowCount(bytes.bigEndian(UInt16.self, at: start + 2))
        }
        guard sender == .client else {
            return WebSocketFrameHeader(opcode: opcode, isFinal: isFinal, payloadCount: payloadCount)
        }
        guard available >= size + 4 else { return nil }
        let key = bytes.littleEndian(UInt32.self, at: start + size)
        return WebSocketFrameHeader(opcode: opcode, isFinal: isFinal, payloadCount: payloadCount, maskingKey: key)
    }

    private static func narrowCount(_ count: UInt16) throws(WebSocketProtocolError) -> Int {
        guard count > 125 else { throw .notMinimal(UInt64(count)) }
        return Int(count)
    }

    private static func wideCount(_ count: UInt64) throws(WebSocketProtocolError) -> Int {
        guard count >> 63 == 0 else { throw .protocolError("frame length with its highest bit set", "5.2") }
        guard count > 0xFFFF else { throw .notMinimal(count) }
        // An Int has 32 bits on some watches.
        guard let exact = Int(exactly: count) else {
            throw WebSocketProtocolError(.messageTooBig, "frame of \(count) bytes", section: "10.4")
        }
        return exact
    }
}

extension WebSocketProtocolError {
    static var reservedBits: WebSocketProtocolError {
        .protocolError("reserved bit set, but no extension was agreed on", "5.2")
    }

    static func reservedOpcode(_ opcode: UInt8) -> WebSocketProtocolError {
        .protocolError("reserved opcode \(opcode)", "5.2")
    }

    static var fragmentedControl: WebSocketProtocolError {
        .protocolError("fragmented control frame", "5.5")
    }

    static var longControl: WebSocketProtocolError {
        .protocolError("control frame of more than 125 bytes", "5.5")
    }

    static func masking(by sender: WebSocketRole) -> WebSocketProtocolError {
        .protocolError(sender == .client ? "client sent an unmasked frame" : "server sent a masked frame", "5.1")
    }

    static func notMinimal(_ count: UInt64) -> WebSocketProtocolError {
        .protocolError("frame length \(count) not in its shortest form", "5.2")
    }
}

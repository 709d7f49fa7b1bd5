import MessagingWire

/// What a frame is (section 5.2); the raw value is its four bits on the wire, all others are reserved.
package enum WebSocketOpcode: UInt8, Sendable, Hashable, CaseIterable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether frames of this kind carry at most 125 bytes, are never fragmented and may stand between fragments.
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// What a message is: its first frame's opcode.
package enum WebSocketMessageKind: Sendable, Hashable {
    /// UTF-8.
    case text
    case binary

    package var opcode: WebSocketOpcode { self == .text ? .text : .binary }
}

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
        guard count >> 63 == 0 else {
            throw .protocolError("The peer sent a frame length with its highest bit set.", "5.2")
        }
        guard count > 0xFFFF else { throw .notMinimal(count) }
        // An Int has 32 bits on some watches.
        guard let exact = Int(exactly: count) else {
            throw WebSocketProtocolError(
                .messageTooBig, "The peer sent a frame of \(count) bytes, which is more than this machine can count.",
                section: "10.4")
        }
        return exact
    }
}

extension WebSocketFrameHeader {
    /// Appends a whole frame: this header, and `payload` under its masking key.
    ///
    /// `payloadCount` has to be the number of bytes in `payload`.
    package func write(_ payload: RawSpan, into output: inout [UInt8]) {
        precondition(payload.byteCount == payloadCount)
        output.append(addingCapacity: Self.maximumSize + payloadCount) { room in
            writeHeader(into: &room)
            guard payloadCount > 0 else { return }
            var mask = WebSocketMask(littleEndian: maskingKey ?? 0)
            let isMasked = maskingKey != nil
            // The room was reserved for the longest header and the payload, and exactly the bytes that were written
            // are counted as initialised.
            unsafe room.withUnsafeMutableBufferPointer { buffer, count in
                let target = UnsafeMutableRawPointer(unsafe buffer.baseAddress! + count)
                unsafe payload.withUnsafeBytes { source in
                    let start = source.baseAddress!
                    if isMasked {
                        unsafe mask.copy(from: start, to: target, count: source.count)
                    } else {
                        unsafe target.copyMemory(from: start, byteCount: source.count)
                    }
                }
                count += payload.byteCount
            }
        }
    }

    private func writeHeader(into room: inout OutputSpan<UInt8>) {
        room.append((isFinal ? 0x80 : 0) | opcode.rawValue)
        let maskBit: UInt8 = maskingKey == nil ? 0 : 0x80
        if payloadCount < 126 {
            room.append(maskBit | UInt8(payloadCount))
        } else {
            let width = payloadCount <= 0xFFFF ? 2 : 8
            room.append(maskBit | (width == 2 ? 126 : 127))
            for index in (0..<width).reversed() {
                room.append(UInt8(truncatingIfNeeded: UInt64(payloadCount) >> UInt64(index * 8)))
            }
        }
        if let maskingKey {
            for index in 0..<4 {
                room.append(UInt8(truncatingIfNeeded: maskingKey >> UInt32(index * 8)))
            }
        }
    }
}

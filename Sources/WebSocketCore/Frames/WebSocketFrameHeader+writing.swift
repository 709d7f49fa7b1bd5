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

// The hot path of sending: a message whose properties need no check, written in one pass.

import Wire

extension MQTTPacket.Publish {
    /// Appends a PUBLISH below 16 KiB without topic alias, as most are. Returns false and appends nothing for any other,
    /// invalid topics and too large packets included: the general path handles or refuses it.
    ///
    /// The topic is checked while it is copied, eight bytes at a time.
    /// - Parameters:
    ///   - flags: flags that do not contradict each other.
    ///   - packetID: 0 at QoS 0, and only there.
    ///   - properties: properties that are plain; none before 5.0.
    @inline(__always)
    static func encodePlain(
        into output: inout [UInt8], hasProperties: Bool, flags: MQTTPublishFlags, packetID: UInt16,
        topic: RawSpan, properties: RawSpan, payload: RawSpan, maximumPacketSize: Int
    ) -> Bool {
        let topicCount = topic.byteCount
        let payloadCount = payload.byteCount
        guard topicCount > 0, topicCount < 16_384, payloadCount < 16_384 else { return false }
        let middleCount = (packetID == 0 ? 0 : 2) + (hasProperties ? 1 : 0) + properties.byteCount
        let bodyCount = 2 + topicCount + middleCount + payloadCount
        let count = bodyCount + (bodyCount < 128 ? 2 : 3)
        guard bodyCount < 16_384, count <= maximumPacketSize else { return false }
        var isWritten = false
        output.append(addingCapacity: count) { output in
            unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
                // Safe: `count` bytes are free behind what is initialized, exactly as many as are written below, and a
                // buffer that is written exclusively does not overlap with spans that are borrowed.
                guard let base = buffer.baseAddress, buffer.count - initialized >= count else { return }
                var to = unsafe UnsafeMutableRawPointer(base + initialized)
                unsafe writeHead(&to, flags: flags, bodyCount: bodyCount, topicCount: topicCount)
                guard unsafe TextScan.copyName(topic, to: to) else { return }
                unsafe to += topicCount
                unsafe writeMiddle(&to, packetID: packetID, hasProperties: hasProperties, properties)
                unsafe payload.copyWords(to: to)
                initialized += count
                isWritten = true
            }
        }
        return isWritten
    }

    /// Writes the fixed header and the length of the topic, and advances to where the topic begins.
    @inline(__always) @unsafe
    static func writeHead(_ to: inout UnsafeMutableRawPointer, flags: MQTTPublishFlags, bodyCount: Int, topicCount: Int)
    {
        // Safe: there is room for a packet of this size, which is below 16 KiB. So it is in `writeMiddle`.
        unsafe to.storeBytes(of: flags.firstByte, as: UInt8.self)
        if bodyCount < 128 {
            unsafe to.storeBytes(of: UInt8(truncatingIfNeeded: bodyCount), toByteOffset: 1, as: UInt8.self)
            unsafe to += 2
        } else {
            let length = UInt16(truncatingIfNeeded: bodyCount & 0x7F | 0x80 | (bodyCount >> 7) << 8)
            unsafe to.storeBytes(of: length.littleEndian, toByteOffset: 1, as: UInt16.self)
            unsafe to += 3
        }
        unsafe to.storeBytes(of: UInt16(truncatingIfNeeded: topicCount).bigEndian, as: UInt16.self)
        unsafe to += 2
    }

    /// Writes what is between topic and payload, and advances to where the payload begins.
    @inline(__always) @unsafe
    static func writeMiddle(
        _ to: inout UnsafeMutableRawPointer, packetID: UInt16, hasProperties: Bool, _ properties: RawSpan
    ) {
        if packetID != 0 {
            unsafe to.storeBytes(of: packetID.bigEndian, as: UInt16.self)
            unsafe to += 2
        }
        if hasProperties {
            unsafe to.storeBytes(of: UInt8(truncatingIfNeeded: properties.byteCount), as: UInt8.self)
            unsafe properties.copyWords(to: to + 1)
            unsafe to += 1 + properties.byteCount
        }
    }
}

import Wire

/// Reads plain messages, of QoS 0 and without properties, that follow each other with the same topic.
struct PlainRun {
    let hasProperties: Bool
    /// The bits of the first byte that have to be those of such a message.
    let mask: UInt8
    let maximumPacketSize: Int

    /// What stands between the fixed header and the payload of a plain message.
    struct Head {
        let topic: Range<Int>
        /// The topic with its length, and the property length of 5.0, which is 0.
        let range: Range<Int>
    }

    /// The head of the message at `offset`, or nil if there is no plain message that is whole.
    @inline(__always)
    func head(_ bytes: RawSpan, at offset: Int) -> Head? {
        guard offset >= 0, bytes.byteCount - offset >= 4, let frame = unsafe frame(bytes, at: offset),
            frame.end - frame.body >= 2
        else { return nil }
        let start = frame.body + 2
        let topic = start..<start + Int(bytes.bigEndian(UInt16.self, at: frame.body))
        let end = topic.upperBound + (hasProperties ? 1 : 0)
        guard end <= frame.end, !topic.isEmpty, !hasProperties || bytes.byte(at: end - 1) == 0 else { return nil }
        return Head(topic: topic, range: frame.body..<end)
    }

    /// What was read: how many messages, the sum of their payloads, and where they end.
    struct Outcome {
        var count = 0
        var payloadBytes = 0
        var end: Int
    }

    /// Appends a record for each message from `offset` on that has the head at `head`, up to the first that has not.
    ///
    /// A head that equals a checked one needs no checks, so that little is left to do for each message.
    func read(
        _ bytes: RawSpan, at offset: Int, _ head: Range<Int>, topic: UInt32,
        into records: inout OutputSpan<MQTTMessageRecord>
    ) -> Outcome {
        var outcome = Outcome(end: offset)
        let end = bytes.byteCount
        let headCount = head.count
        guard offset >= 0, head.lowerBound >= 0, head.upperBound <= end else { return outcome }
        unsafe records.withUnsafeMutableBufferPointer { buffer, initialized in
            guard let base = buffer.baseAddress else { return }
            var (offset, filled, payloadBytes) = (offset, initialized, 0)
            // Safe: at least four bytes are there when the frame is read, the head and what it is compared with
            // lie inside, and a record is written only where there is room.
            while end &- offset >= 4, filled < buffer.count {
                guard let frame = unsafe frame(bytes, at: offset), frame.end &- frame.body >= headCount,
                    unsafe bytes.isEqualUnchecked(head.lowerBound, frame.body, count: headCount)
                else { break }
                let payload = frame.body &+ headCount
                unsafe (base + filled).initialize(
                    to: MQTTMessageRecord(
                        delivery: 0, topic: topic, propertiesStart: UInt32(truncatingIfNeeded: payload),
                        payloadStart: UInt32(truncatingIfNeeded: payload),
                        payloadCount: UInt32(truncatingIfNeeded: frame.end &- payload), packetID: 0,
                        flags: MQTTPublishFlags(rawValue: frame.flags & 0x0F)))
                filled &+= 1
                payloadBytes &+= frame.end &- payload
                offset = frame.end
            }
            outcome = Outcome(count: filled - initialized, payloadBytes: payloadBytes, end: offset)
            initialized = filled
        }
        return outcome
    }

    private struct Frame {
        let flags: UInt8
        let body: Int
        let end: Int
    }

    /// The packet at `offset` if it is whole, small and a PUBLISH of QoS 0; four bytes must be there.
    @inline(__always) @unsafe
    private func frame(_ bytes: RawSpan, at offset: Int) -> Frame? {
        let flags = unsafe bytes.uncheckedByte(at: offset)
        var bodyCount = Int(unsafe bytes.uncheckedByte(at: offset &+ 1))
        var body = offset &+ 2
        if bodyCount >= 0x80 {
            let second = Int(unsafe bytes.uncheckedByte(at: offset &+ 2))
            guard second < 0x80, second != 0 else { return nil }
            bodyCount = bodyCount & 0x7F | second &<< 7
            body &+= 1
        }
        let end = body &+ bodyCount
        guard flags & mask == 0x30, end <= bytes.byteCount, end &- offset <= maximumPacketSize else { return nil }
        return Frame(flags: flags, body: body, end: end)
    }
}

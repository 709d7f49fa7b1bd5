// The hot path of receiving: runs of plain messages, which have QoS 0 and no properties.

extension MQTTEngine {
    /// Reads PUBLISH packets of QoS 0 without properties, as long as one follows the other, and returns where they end.
    ///
    /// Everything else (other packets, properties, packets above 16 KiB, incomplete or malformed ones) is left to the
    /// general path, which judges it. The topic is compared with that of the message before, in the same bytes, and
    /// looked up only if it is another one.
    mutating func receivePlainMessages(
        _ bytes: RawSpan, from start: Int, _ effects: inout MQTTEffects
    ) throws(MQTTViolation) -> Int {
        let end = bytes.byteCount
        let hasProperties = version.hasProperties
        // A server judges RETAIN by its configuration, on the general path.
        let mask: UInt8 = isServer ? 0xFF : 0xFE
        let propertyLengthCount = hasProperties ? 1 : 0
        var offset = start
        var lastTopic = 0
        var lastCount = -1
        var lastIndex: UInt32 = 0
        var goesOn = true
        while goesOn, end - offset >= 4 {
            // Room is taken for many at a time: asking for each whether there is some costs as much as parsing it.
            let room = min(512, (end - offset) / 4)
            try effects.messages.append(addingCapacity: room) { records throws(MQTTViolation) in
                while end - offset >= 4, !records.isFull {
                    let flags = bytes.byte(at: offset)
                    var bodyCount = Int(bytes.byte(at: offset + 1))
                    var body = offset + 2
                    if bodyCount >= 0x80 {
                        let second = Int(bytes.byte(at: offset + 2))
                        guard second < 0x80, second != 0 else {
                            goesOn = false
                            return
                        }
                        bodyCount = bodyCount & 0x7F | second << 7
                        body += 1
                    }
                    let next = body + bodyCount
                    guard flags & mask == 0x30, next <= end, bodyCount >= 2, next - offset <= acceptedPacketSize else {
                        goesOn = false
                        return
                    }
                    let topicCount = Int(bytes.uint16(at: body))
                    let topic = body + 2
                    let payload = topic + topicCount + propertyLengthCount
                    guard payload <= next, topicCount > 0, !hasProperties || bytes.byte(at: payload - 1) == 0 else {
                        goesOn = false
                        return
                    }
                    if topicCount != lastCount || !bytes.isEqual(lastTopic, topic, count: topicCount) {
                        lastIndex = UInt32(
                            truncatingIfNeeded: try topics.index(of: bytes.extracting(topic..<topic + topicCount)))
                        lastCount = topicCount
                    }
                    lastTopic = topic
                    records.append(
                        MQTTMessageRecord(
                            delivery: 0, topic: lastIndex, propertiesStart: UInt32(truncatingIfNeeded: payload),
                            payloadStart: UInt32(truncatingIfNeeded: payload),
                            payloadCount: UInt32(truncatingIfNeeded: next - payload), packetID: 0,
                            flags: flags & 0x0F))
                    offset = next
                }
            }
        }
        return offset
    }
}

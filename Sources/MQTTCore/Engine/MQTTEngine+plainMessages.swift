// The hot path of receiving: runs of plain messages, which have QoS 0 and no properties.

extension MQTTEngine {
    /// Reads PUBLISH packets of QoS 0 without properties, as long as one follows the other, and returns where they end.
    ///
    /// Everything else (other packets, properties, packets above 16 KiB, incomplete or malformed ones) is left to the
    /// general path, which judges it. A topic is looked up once for all messages in a row that have it.
    mutating func receivePlainMessages(
        _ bytes: RawSpan, from start: Int, _ effects: inout MQTTEffects
    ) -> Int {
        // A server judges RETAIN by its configuration, on the general path.
        let run = PlainRun(
            hasProperties: version.hasProperties, mask: isServer ? 0xFF : 0xFE, maximumPacketSize: acceptedPacketSize)
        let end = bytes.byteCount
        var lead = effects.lead
        var count = effects.messages.count
        var offset = start
        var goesOn = true
        while goesOn, end - offset >= 4 {
            // Room is taken for many at a time: asking for each whether there is some costs as much as parsing it.
            let room = min(512, (end - offset) / 4)
            effects.messages.append(addingCapacity: room) { records in
                while !records.isFull {
                    guard let head = run.head(bytes, at: offset) else {
                        goesOn = false
                        return
                    }
                    guard let found = try? topics.index(of: bytes.extracting(head.topic)) else {
                        goesOn = false
                        return
                    }
                    let index = UInt32(truncatingIfNeeded: found)
                    let read = run.read(bytes, at: offset, head.range, topic: index, into: &records)
                    offset = read.end
                    lead.add(read.count, payloadBytes: read.payloadBytes, topic: index, behind: count)
                    count += read.count
                }
            }
        }
        effects.lead = lead
        return offset
    }
}

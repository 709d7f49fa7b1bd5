extension MQTTPacket.Publish {
    /// The number of QoS 0 messages among whole packets, those that end at `offset` or before it left out.
    public static func countAtMostOnce(in packets: RawSpan, endingAfter offset: Int) -> Int {
        var count = 0
        var start = 0
        // 3.1 is the version whose rules for flags refuse least.
        while let header = try? MQTTFrameHeader.parse(packets, at: start, maximumPacketSize: .max, version: .v3_1) {
            start += header.packetCount
            if header.type == .publish, header.flags & 0b0110 == 0, start > offset { count += 1 }
        }
        return count
    }
}

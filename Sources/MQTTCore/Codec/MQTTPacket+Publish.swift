import Wire

extension MQTTPacket {
    /// PUBLISH: a message.
    public struct Publish: Sendable, Hashable {
        /// Empty only in 5.0 and with a topic alias.
        public var topic: String
        public var payload: [UInt8]
        public var qos: QoS
        public var isRetained: Bool
        /// DUP: this may be a repetition; never at QoS 0 [MQTT-3.3.1-2].
        public var isDuplicate: Bool
        /// Zero at QoS 0, and only there [MQTT-2.2.1-2].
        public var packetID: UInt16
        public var properties: MQTTProperties

        public init(
            topic: String, payload: [UInt8], qos: QoS = .atMostOnce, isRetained: Bool = false,
            isDuplicate: Bool = false,
            packetID: UInt16 = 0, properties: MQTTProperties = []
        ) {
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.isRetained = isRetained
            self.isDuplicate = isDuplicate
            self.packetID = packetID
            self.properties = properties
        }
    }
}

extension MQTTPacket.Publish {
    init(decoding header: MQTTFrameHeader, _ body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        let alone = header.withoutHeader
        let view = try MQTTPublishView.parse(alone, in: body, version: version)
        _ = try view.scanProperties(in: body)
        self.init(
            topic: try view.topic(in: body), payload: body.bytes(in: view.payloadRange), qos: view.qos,
            isRetained: view.isRetained, isDuplicate: view.isDuplicate, packetID: view.packetID,
            properties: try view.properties(in: body))
    }
}

extension MQTTPacket.Publish {
    /// Appends the packet; on an error nothing is appended.
    func encode(
        into output: inout [UInt8], version: MQTTVersion, maximumPacketSize: Int = MQTTFrameHeader.largestPacket
    ) throws(MQTTEncodingError) {
        try MQTTPacket.Publish.encode(
            into: &output, version: version, topic: topic, payload: unsafe payload.span.bytes, qos: qos,
            retain: isRetained, isDuplicate: isDuplicate, packetID: packetID, properties: properties,
            maximumPacketSize: maximumPacketSize)
    }

    /// Appends a PUBLISH straight from its parts and returns its size; on an error nothing is appended.
    ///
    /// The room is taken once and written through; there is no other allocation.
    /// - Parameters:
    ///   - packetID: zero at QoS 0, and only there [MQTT-2.2.1-2].
    ///   - topicAlias: zero for none; with one the topic may be empty. 5.0 only.
    ///   - maximumPacketSize: what the peer accepts [MQTT-3.2.2-15].
    @discardableResult
    public static func encode(
        into output: inout [UInt8], version: MQTTVersion, topic: String, payload: RawSpan, qos: QoS = .atMostOnce,
        retain: Bool = false, isDuplicate: Bool = false, packetID: UInt16 = 0, properties: MQTTProperties = [],
        topicAlias: UInt16 = 0, maximumPacketSize: Int = MQTTFrameHeader.largestPacket
    ) throws(MQTTEncodingError) -> Int {
        if properties.isEmpty, topicAlias == 0, (qos == .atMostOnce) == (packetID == 0),
            !(isDuplicate && qos == .atMostOnce)
        {
            let flags = (isDuplicate ? 8 : 0) | qos.rawValue << 1 | (retain ? 1 : 0)
            let count = topic.withUTF8Span { topic in
                encodePlain(
                    into: &output, hasProperties: version.hasProperties, flags: flags, packetID: packetID,
                    topic: topic, payload: payload, maximumPacketSize: maximumPacketSize)
            }
            if count > 0 { return count }
        }
        return try encodeWhole(
            into: &output, version: version, topic: topic, payload: payload, qos: qos, retain: retain,
            isDuplicate: isDuplicate, packetID: packetID, properties: properties, topicAlias: topicAlias,
            maximumPacketSize: maximumPacketSize)
    }

    /// The general path.
    @inline(never)
    static func encodeWhole(
        into output: inout [UInt8], version: MQTTVersion, topic: String, payload: RawSpan, qos: QoS, retain: Bool,
        isDuplicate: Bool, packetID: UInt16, properties: MQTTProperties, topicAlias: UInt16, maximumPacketSize: Int
    ) throws(MQTTEncodingError) -> Int {
        if (qos == .atMostOnce) != (packetID == 0) { throw .packetID(qos) }
        if isDuplicate, qos == .atMostOnce { throw .init(.contradiction, "DUP at QoS 0 [MQTT-3.3.1-2]") }
        var propertiesCount = 0
        if version.hasProperties {
            if !properties.isEmpty { propertiesCount = try properties.encodedCount(in: .publish) }
            if topicAlias != 0 {
                if properties.topicAlias != nil { throw .init(.invalidProperty, "topicAlias is there twice") }
                propertiesCount += 3
            }
        } else if !properties.isEmpty || topicAlias != 0 {
            throw .noProperties(version)
        }
        let hasAlias = topicAlias != 0 || !topic.isEmpty || properties.topicAlias != nil
        let flags = 0x30 | (isDuplicate ? 8 : 0) | qos.rawValue << 1 | (retain ? 1 : 0)
        let written = topic.withUTF8Span { topic in
            guard topic.byteCount <= 65_535, hasAlias,
                TextScan.scan(topic, 0..<topic.byteCount).isDisjoint(with: [.null, .wildcard])
            else { return Written.badTopic }
            let head = 2 + topic.byteCount + (packetID == 0 ? 0 : 2)
            let lengthOfProperties =
                version.hasProperties ? VariableByteInteger.byteCount(of: propertiesCount) + propertiesCount : 0
            let (bodyCount, overflow) = payload.byteCount.addingReportingOverflow(head + lengthOfProperties)
            guard !overflow, bodyCount <= VariableByteInteger.maximum else { return .tooLarge(Int.max) }
            let count = 1 + VariableByteInteger.byteCount(of: bodyCount) + bodyCount
            guard count <= maximumPacketSize else { return .tooLarge(count) }
            output.append(addingCapacity: count) { output in
                output.append(flags)
                output.append(variable: bodyCount)
                output.append(uint16: UInt16(truncatingIfNeeded: topic.byteCount))
                output.append(copying: topic)
                if packetID != 0 { output.append(uint16: packetID) }
                if version.hasProperties {
                    output.append(variable: propertiesCount)
                    if propertiesCount > 0 {
                        if topicAlias != 0 {
                            output.append(MQTTPropertyIdentifier.topicAlias.rawValue)
                            output.append(uint16: topicAlias)
                        }
                        properties.write(to: &output)
                    }
                }
                output.append(copying: payload)
            }
            return .bytes(count)
        }
        switch written {
        case .bytes(let count): return count
        case .badTopic: throw .topicName(topic)
        case .tooLarge(let count): throw .packetTooLarge(.publish, count, maximumPacketSize)
        }
    }

    /// Checks topic and properties and counts the bytes that the packet would take, without writing or allocating
    /// anything. Before 5.0 properties are not counted.
    static func encodedCount(
        version: MQTTVersion, topic: String, payloadCount: Int, hasPacketID: Bool, properties: MQTTProperties
    ) throws(MQTTEncodingError) -> Int {
        guard MQTTTopicName.isValid(topic) else { throw .topicName(topic) }
        var bodyCount = 2 + topic.utf8.count + (hasPacketID ? 2 : 0)
        if version.hasProperties {
            let count = properties.isEmpty ? 0 : try properties.encodedCount(in: .publish)
            bodyCount += VariableByteInteger.byteCount(of: count) + count
        }
        let (total, overflow) = payloadCount.addingReportingOverflow(bodyCount)
        guard !overflow, total <= VariableByteInteger.maximum else {
            throw .packetTooLarge(.publish, Int.max, MQTTFrameHeader.largestPacket)
        }
        return 1 + VariableByteInteger.byteCount(of: total) + total
    }

    /// How writing went, inside the closure that lends the topic.
    private enum Written {
        case bytes(Int)
        case badTopic
        case tooLarge(Int)
    }
}

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

import Wire

extension MQTTPacket.Publish {
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

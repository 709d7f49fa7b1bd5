import MessagingWire

/// A PUBLISH packet in the bytes that it came in: positions, no copies.
///
/// All positions are offsets into the bytes that it was read from. The topic's bytes and the properties are *not*
/// checked yet: ask ``topic(in:)`` (or `MQTTTopicName.validate`) and ``scanProperties(in:)`` before using them.
package struct MQTTPublishView: Sendable, Hashable {
    /// The flags of the fixed header, without DUP at QoS 0, where it has no meaning.
    package let flags: MQTTPublishFlags
    /// Zero at QoS 0.
    package let packetID: UInt16
    package let topicStart: Int
    package let topicCount: Int
    /// Where the properties start, behind their length.
    package let propertiesStart: Int
    /// Zero in 3.1 and 3.1.1.
    package let propertiesCount: Int
    package let payloadStart: Int
    package let payloadCount: Int

    package var topicRange: Range<Int> { topicStart..<(topicStart + topicCount) }
    package var propertiesRange: Range<Int> { propertiesStart..<(propertiesStart + propertiesCount) }
    package var payloadRange: Range<Int> { payloadStart..<(payloadStart + payloadCount) }

}

/// What a receiver has to know of a PUBLISH packet's properties at once, found without an allocation.
package struct MQTTPublishScan: Sendable, Hashable {
    /// Zero without an alias.
    package var topicAlias: UInt16 = 0
    /// How many subscription identifiers there are.
    package var subscriptionIdentifierCount = 0

    init() {}

    /// Checks all properties in a range.
    init(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        var cursor = MQTTPropertyCursor(range, carrier: .publish)
        while let found = try cursor.next(bytes) {
            switch found.identifier {
            case .topicAlias: topicAlias = UInt16(truncatingIfNeeded: found.integer)
            case .subscriptionIdentifier: subscriptionIdentifierCount += 1
            default: break
            }
        }
    }
}

extension MQTTPublishView {
    /// Reads the PUBLISH whose fixed header stands at `frameStart`; the whole packet must be in `bytes`.
    ///
    /// Checks lengths and the packet identifier, and not that there is a topic: see ``requireTopic(_:)``. Nothing is copied.
    package static func parse(
        _ header: MQTTFrameHeader, in bytes: RawSpan, at frameStart: Int = 0, version: MQTTVersion
    ) throws(MQTTProtocolError) -> MQTTPublishView {
        var cursor = ByteCursor(header.bodyRange(in: bytes, at: frameStart))
        let topic = try cursor.binary(bytes, "the topic name")
        let isQoS0 = header.publishFlags.isAtMostOnce
        let packetID = isQoS0 ? 0 : try cursor.packetID(bytes)
        let properties = version.hasProperties ? try cursor.propertyRange(bytes) : cursor.offset..<cursor.offset
        return MQTTPublishView(
            flags: isQoS0 ? header.publishFlags.retainOnly : header.publishFlags, packetID: packetID,
            topicStart: topic.lowerBound,
            topicCount: topic.count,
            propertiesStart: properties.lowerBound, propertiesCount: properties.count,
            payloadStart: cursor.offset, payloadCount: cursor.remaining)
    }

    /// The topic name, checked: well-formed UTF-8 without U+0000 and wildcards. Empty only if an alias stands for it.
    ///
    /// One allocation if it is longer than 15 bytes.
    package func topic(in bytes: RawSpan) throws(MQTTProtocolError) -> String {
        if topicCount == 0 { return "" }
        return try MQTTTopicName.string(bytes, topicRange)
    }

    /// Checks all properties and returns those that a receiver needs at once; no allocation.
    package func scanProperties(in bytes: RawSpan) throws(MQTTProtocolError) -> MQTTPublishScan {
        if propertiesCount == 0 { return MQTTPublishScan() }
        let scan = try MQTTPublishScan(bytes, propertiesRange)
        if topicCount == 0, scan.topicAlias == 0 { throw Self.noTopic(.v5_0) }
        return scan
    }

    /// The topic alias among properties that may break the rules: 0 without one, nil if the properties cannot be read to
    /// their end.
    func alias(in bytes: RawSpan) -> Int? {
        var (cursor, alias) = (ByteCursor(propertiesRange), 0)
        do throws(MQTTProtocolError) {
            while !cursor.isAtEnd {
                let number = try cursor.variable(bytes, "a property identifier")
                guard let identifier = UInt8(exactly: number).flatMap(MQTTPropertyIdentifier.init) else { return nil }
                switch MQTTPropertyRule.rule(for: identifier).kind {
                case .flag: _ = try cursor.uint8(bytes, "a property")
                case .uint16, .positive16:
                    let value = try cursor.uint16(bytes, "a property")
                    if identifier == .topicAlias { alias = Int(value) }
                case .uint32, .positive32: _ = try cursor.uint32(bytes, "a property")
                case .positiveVariable: _ = try cursor.variable(bytes, "a property")
                case .string, .topicName, .binary: _ = try cursor.binary(bytes, "a property")
                case .pair:
                    _ = try cursor.binary(bytes, "a property")
                    _ = try cursor.binary(bytes, "a property")
                }
            }
        } catch {
            return nil
        }
        return alias
    }

    /// Checks and decodes all properties.
    package func properties(in bytes: RawSpan) throws(MQTTProtocolError) -> MQTTProperties {
        if propertiesCount == 0 { return [] }
        return try MQTTProperties(decoding: bytes, propertiesRange, carrier: .publish)
    }

    /// Throws if there is no topic name, and no properties among which there could be an alias for one.
    @inline(__always)
    func requireTopic(_ version: MQTTVersion) throws(MQTTProtocolError) {
        if topicCount == 0, propertiesCount == 0 { throw Self.noTopic(version) }
    }

    @inline(never)
    private static func noTopic(_ version: MQTTVersion) -> MQTTProtocolError {
        version.hasProperties
            ? .protocolError("PUBLISH has neither a topic name nor a topic alias.", "MQTT 3.3.2.1")
            : .malformed("PUBLISH has an empty topic name.", "MQTT-4.7.3-1")
    }
}

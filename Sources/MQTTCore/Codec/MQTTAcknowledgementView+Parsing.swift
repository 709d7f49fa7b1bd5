extension MQTTAcknowledgementView {
    /// Reads the acknowledgement whose fixed header stands at `frameStart`; the whole packet must be in `bytes`.
    ///
    /// Two bytes are a whole packet in every version; reason code and properties follow in 5.0 if there is something
    /// to say. No allocation.
    public static func parse(
        _ header: MQTTFrameHeader, in bytes: RawSpan, at frameStart: Int = 0, version: MQTTVersion
    ) throws(MQTTProtocolError) -> MQTTAcknowledgementView {
        var cursor = ByteCursor(header.bodyRange(in: bytes, at: frameStart))
        let packetID = try cursor.packetID(bytes)
        var reasonCode = MQTTReasonCode.success
        var properties = cursor.offset..<cursor.offset
        if version.hasProperties, !cursor.isAtEnd {
            // Both sides may send the same codes in these packets.
            reasonCode = try MQTTReasonCode(try cursor.uint8(bytes, "the reason code"), in: header.type, from: nil)
            if !cursor.isAtEnd { properties = try cursor.propertyRange(bytes) }
        }
        try cursor.finish()
        return MQTTAcknowledgementView(
            packetID: packetID, reasonCode: reasonCode, propertiesStart: properties.lowerBound,
            propertiesCount: properties.count)
    }

    /// Checks and decodes the properties, for a packet of this type.
    public func properties(in bytes: RawSpan, of type: MQTTPacketType) throws(MQTTProtocolError) -> MQTTProperties {
        if propertiesCount == 0 { return [] }
        let range = propertiesStart..<(propertiesStart + propertiesCount)
        return try MQTTProperties(decoding: bytes, range, carrier: .init(type))
    }
}

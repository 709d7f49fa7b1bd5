import MessagingWire

extension MQTTPacket {

    /// PUBACK, PUBREC, PUBREL and PUBCOMP, which have the same fields.
    public struct Acknowledgement: Sendable, Hashable {
        public var packetID: UInt16
        /// Success in 3.1 and 3.1.1, which have no reason codes here.
        public var reasonCode: MQTTReasonCode
        public var properties: MQTTProperties

        public init(packetID: UInt16, reasonCode: MQTTReasonCode = .success, properties: MQTTProperties = []) {
            self.packetID = packetID
            self.reasonCode = reasonCode
            self.properties = properties
        }
    }
}

extension MQTTPacket.Acknowledgement {
    init(decoding header: MQTTFrameHeader, _ body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        let view = try MQTTAcknowledgementView.parse(header.withoutHeader, in: body, version: version)
        self.init(
            packetID: view.packetID, reasonCode: view.reasonCode,
            properties: try view.properties(in: body, of: header.type))
    }
}

extension MQTTPacket.Acknowledgement {
    func write(to body: inout PacketBody, _ type: MQTTPacketType) throws(MQTTEncodingError) {
        try body.append(packetID: packetID)
        guard body.version.hasProperties else {
            guard reasonCode == .success else {
                throw .init(.notInThisVersion, "MQTT \(body.version) has no reason codes in \(type). Leave it out.")
            }
            return try body.append(properties, of: .init(type))
        }
        try reasonCode.checkSent(in: type)
        try body.append(reasonCode, properties, of: .init(type))
    }
}

extension MQTTPacket.Acknowledgement {
    /// Appends a PUBACK, PUBREC, PUBREL or PUBCOMP without properties, in its shortest form; no other allocation.
    ///
    /// Before 5.0 there is no reason code on the wire, and it is left out. Not public, since every caller has an identifier of
    /// a packet that arrived.
    package static func encode(
        _ type: MQTTPacketType, packetID: UInt16, reasonCode: MQTTReasonCode = .success, into output: inout [UInt8],
        version: MQTTVersion
    ) {
        precondition(packetID != 0, "acknowledgements have a packet identifier")
        let hasCode = version.hasProperties && reasonCode != .success
        output.append(addingCapacity: 5) { output in
            output.append(type.rawValue << 4 | (type.requiredFlags ?? 0))
            output.append(hasCode ? 3 : 2)
            output.append(uint16: packetID)
            if hasCode { output.append(reasonCode.rawValue) }
        }
    }
}

extension MQTTPacket {
    /// Appends a PINGREQ, two bytes.
    package static func encodePingreq(into output: inout [UInt8]) {
        output.append(MQTTPacketType.pingreq.rawValue << 4)
        output.append(0)
    }

    /// Appends a PINGRESP, two bytes.
    package static func encodePingresp(into output: inout [UInt8]) {
        output.append(MQTTPacketType.pingresp.rawValue << 4)
        output.append(0)
    }
}

/// A PUBACK, PUBREC, PUBREL or PUBCOMP in the bytes that it came in.
package struct MQTTAcknowledgementView: Sendable, Hashable {
    package let packetID: UInt16
    package let reasonCode: MQTTReasonCode
    /// Where the properties start, as an offset into the bytes that it was read from; not checked yet.
    package let propertiesStart: Int
    package let propertiesCount: Int
}

extension MQTTAcknowledgementView {
    /// Reads the acknowledgement whose fixed header stands at `frameStart`; the whole packet must be in `bytes`.
    ///
    /// Two bytes are a whole packet in every version; in 5.0 a reason code and properties may
    /// follow. No allocation.
    package static func parse(
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
    package func properties(in bytes: RawSpan, of type: MQTTPacketType) throws(MQTTProtocolError) -> MQTTProperties {
        if propertiesCount == 0 { return [] }
        let range = propertiesStart..<(propertiesStart + propertiesCount)
        return try MQTTProperties(decoding: bytes, range, carrier: .init(type))
    }
}

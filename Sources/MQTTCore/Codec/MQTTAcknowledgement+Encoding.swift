import Wire

extension MQTTPacket.Acknowledgement {
    /// Appends a PUBACK, PUBREC, PUBREL or PUBCOMP without properties, in its shortest form; no other allocation.
    ///
    /// Before 5.0 there is no reason code on the wire, and it is left out.
    public static func encode(
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
    public static func encodePingreq(into output: inout [UInt8]) {
        output.append(MQTTPacketType.pingreq.rawValue << 4)
        output.append(0)
    }

    /// Appends a PINGRESP, two bytes.
    public static func encodePingresp(into output: inout [UInt8]) {
        output.append(MQTTPacketType.pingresp.rawValue << 4)
        output.append(0)
    }
}

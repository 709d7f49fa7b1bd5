import Wire

extension MQTTPacket {
    /// Appends the packet as a version writes it; on an error nothing is appended.
    ///
    /// What a version cannot say is refused, but for what a server answers: reason codes become the nearest return
    /// code in the CONNACK and SUBACK of 3.1 and 3.1.1, and are left out of their UNSUBACK.
    /// - Parameter version: what the connection speaks; a CONNECT says it itself.
    /// - Parameter maximumPacketSize: what the peer accepts.
    public func encode(
        into output: inout [UInt8], version: MQTTVersion, maximumPacketSize: Int = MQTTFrameHeader.largestPacket
    ) throws(MQTTEncodingError) {
        var body = PacketBody(version: version)
        switch self {
        case .publish(let packet):
            try MQTTPacket.Publish.encode(
                into: &output, version: version, topic: packet.topic, payload: unsafe packet.payload.span.bytes,
                qos: packet.qos, retain: packet.isRetained, isDuplicate: packet.isDuplicate, packetID: packet.packetID,
                properties: packet.properties, maximumPacketSize: maximumPacketSize)
            return
        case .connect(let packet): try packet.write(to: &body)
        case .connack(let packet): try packet.write(to: &body)
        case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet):
            try packet.write(to: &body, type)
        case .subscribe(let packet): try packet.write(to: &body)
        case .suback(let packet): try packet.write(to: &body)
        case .unsubscribe(let packet): try packet.write(to: &body)
        case .unsuback(let packet): try packet.write(to: &body)
        case .pingreq, .pingresp: break
        case .disconnect(let packet): try packet.write(to: &body)
        case .auth(let packet): try packet.write(to: &body)
        }
        try body.finish(type, into: &output, maximumPacketSize: maximumPacketSize)
    }
}

/// The body of a packet while it is written; its length is known, and its header written, at the end.
struct PacketBody {
    let version: MQTTVersion
    private(set) var bytes: [UInt8] = []

    mutating func append(_ byte: UInt8) {
        bytes.append(byte)
    }

    mutating func append(_ value: UInt16) {
        bytes.append(addingCapacity: 2) { $0.append(uint16: value) }
    }

    mutating func append(packetID: UInt16) throws(MQTTEncodingError) {
        if packetID == 0 { throw .init(.invalidPacketID, "packet identifier 0 [MQTT-2.2.1-3]") }
        append(packetID)
    }

    mutating func append(_ text: String, _ field: StaticString) throws(MQTTEncodingError) {
        let count = try text.encodedCount("\(field)")
        bytes.append(addingCapacity: count) { $0.append(string: text) }
    }

    mutating func append(_ binary: [UInt8], _ field: StaticString) throws(MQTTEncodingError) {
        let count = try binary.encodedCount("\(field)")
        bytes.append(addingCapacity: count) { $0.append(binary: binary) }
    }

    mutating func append(filter: String) throws(MQTTEncodingError) {
        guard MQTTTopicFilter.isValid(filter, version: version) else { throw .topicFilter(filter) }
        try append(filter, "the topic filter")
    }

    /// The properties with their length, which is written also when it is zero [MQTT-2.2.2-1].
    mutating func append(
        _ properties: MQTTProperties, of carrier: MQTTPropertyRule.Carriers
    ) throws(MQTTEncodingError) {
        guard version.hasProperties else {
            if properties.isEmpty { return }
            throw .noProperties(version)
        }
        let count = try properties.encodedCount(in: carrier)
        bytes.append(addingCapacity: VariableByteInteger.byteCount(of: count) + count) { output in
            output.append(variable: count)
            properties.write(to: &output)
        }
    }

    /// Appends header and body to the output.
    func finish(
        _ type: MQTTPacketType, into output: inout [UInt8], maximumPacketSize: Int
    ) throws(MQTTEncodingError) {
        guard bytes.count <= VariableByteInteger.maximum else {
            throw .packetTooLarge(type, Int.max, maximumPacketSize)
        }
        let count = 1 + VariableByteInteger.byteCount(of: bytes.count) + bytes.count
        guard count <= maximumPacketSize else { throw .packetTooLarge(type, count, maximumPacketSize) }
        output.append(addingCapacity: count) { output in
            output.append(type.rawValue << 4 | (type.requiredFlags ?? 0))
            output.append(variable: bytes.count)
            output.append(copying: unsafe bytes.span.bytes)
        }
    }
}

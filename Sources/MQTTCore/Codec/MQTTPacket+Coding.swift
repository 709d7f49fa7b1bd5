import MessagingWire

extension MQTTPacket {
    /// Decodes a packet from its body, the bytes after the fixed header.
    /// - Parameters:
    ///   - version: the version of the connection; a CONNECT names its own.
    ///   - sender: the side that the packet comes from. With nil, everything is accepted that either side may send; from a
    ///     server also what servers send against the specification, as long as its meaning is clear.
    package static func decode(
        _ header: MQTTFrameHeader, body: RawSpan, version: MQTTVersion, from sender: MQTTRole? = nil
    ) throws(MQTTProtocolError) -> MQTTPacket {
        guard body.byteCount == header.bodyCount else {
            throw .malformed(
                "The body has \(body.byteCount) bytes; the header announces \(header.bodyCount).", "MQTT 2.1.4")
        }
        switch header.type {
        case .connect: return .connect(try Connect(decoding: body))
        case .connack: return .connack(try Connack(decoding: body, version: version, from: sender))
        case .publish: return .publish(try Publish(decoding: header, body, version: version))
        case .puback: return .puback(try Acknowledgement(decoding: header, body, version: version))
        case .pubrec: return .pubrec(try Acknowledgement(decoding: header, body, version: version))
        case .pubrel: return .pubrel(try Acknowledgement(decoding: header, body, version: version))
        case .pubcomp: return .pubcomp(try Acknowledgement(decoding: header, body, version: version))
        case .subscribe: return .subscribe(try Subscribe(decoding: body, version: version))
        case .suback: return .suback(try Suback(decoding: body, version: version, from: sender))
        case .unsubscribe: return .unsubscribe(try Unsubscribe(decoding: body, version: version))
        case .unsuback: return .unsuback(try Unsuback(decoding: body, version: version, from: sender))
        // That they have no body was checked with the header.
        case .pingreq: return .pingreq
        case .pingresp: return .pingresp
        case .disconnect: return .disconnect(try Disconnect(decoding: body, version: version, from: sender))
        case .auth: return .auth(try Auth(decoding: body, version: version, from: sender))
        }
    }
}

extension MQTTPacket {
    /// Appends the packet as a version writes it; on an error nothing is appended.
    ///
    /// Throws for a field that the version cannot express, except in answers of a server: reason codes become the
    /// nearest return code in the CONNACK and SUBACK of 3.1 and 3.1.1, and are left out of their UNSUBACK.
    /// - Parameter version: the version of the connection; CONNECT carries its own.
    /// - Parameter maximumPacketSize: what the peer accepts.
    public func encode(
        into output: inout [UInt8], version: MQTTVersion, maximumPacketSize: Int = MQTTPacket.largestSize
    ) throws(MQTTEncodingError) {
        var body = PacketBody(version: version)
        switch self {
        case .publish(let packet):
            try packet.encode(into: &output, version: version, maximumPacketSize: maximumPacketSize)
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
        if packetID == 0 {
            throw .init(.invalidPacketID, "The packet identifier is 0 [MQTT-2.2.1-3]. Use 1 to 65,535.")
        }
        append(packetID)
    }

    mutating func append(_ text: String, _ field: StaticString) throws(MQTTEncodingError) {
        let count = try Self.encodedCount(of: text, "\(field)")
        bytes.append(addingCapacity: count) { $0.append(string: text) }
    }

    mutating func append(_ binary: [UInt8], _ field: StaticString) throws(MQTTEncodingError) {
        let count = try Self.encodedCount(of: binary, "\(field)")
        bytes.append(addingCapacity: count) { $0.append(binary: binary) }
    }

    mutating func append(filter: String) throws(MQTTEncodingError) {
        if let flaw = MQTTTopicFilter.flaw(in: filter, version: version) { throw .init(.invalidTopicFilter, flaw) }
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
            // The bytes of an array of bytes: nothing to reinterpret.
            output.append(copying: unsafe properties.encoded.span.bytes)
        }
    }

    /// The bytes of a string on the wire including its length; throws if the format cannot carry it.
    static func encodedCount(
        of text: String, _ field: @autoclosure () -> String
    ) throws(MQTTEncodingError) -> Int {
        let count = text.utf8.count
        guard count <= 65_535 else { throw tooLong(field(), count) }
        let scan = text.withUTF8Span { TextScan.scan($0, 0..<$0.byteCount) }
        if scan.contains(.null) { throw .init(.nullCharacter, "\(field()) contains U+0000. Remove it.") }
        return 2 + count
    }

    /// The bytes of a binary value on the wire including its length; throws if the format cannot carry it.
    static func encodedCount(
        of bytes: [UInt8], _ field: @autoclosure () -> String
    ) throws(MQTTEncodingError) -> Int {
        guard bytes.count <= 65_535 else { throw tooLong(field(), bytes.count) }
        return 2 + bytes.count
    }

    private static func tooLong(_ field: String, _ count: Int) -> MQTTEncodingError {
        MQTTEncodingError(.valueTooLong, "\(field) has \(count) bytes; the limit is 65,535. Shorten it.")
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

extension PacketBody {
    /// A reason code and properties in their shortest form: neither, the code alone, or both.
    mutating func append(
        _ reasonCode: MQTTReasonCode, _ properties: MQTTProperties, of carrier: MQTTPropertyRule.Carriers
    ) throws(MQTTEncodingError) {
        if properties.isEmpty, reasonCode == .success { return }
        append(reasonCode.rawValue)
        if !properties.isEmpty { try append(properties, of: carrier) }
    }
}

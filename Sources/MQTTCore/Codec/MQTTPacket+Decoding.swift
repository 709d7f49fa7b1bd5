import Wire

extension MQTTPacket {
    /// Decodes a packet from its body, the bytes after the fixed header.
    /// - Parameters:
    ///   - version: the version of the connection; a CONNECT names its own.
    ///   - sender: the side that the packet comes from. With nil, everything is accepted that either side may send.
    public static func decode(
        _ header: MQTTFrameHeader, body: RawSpan, version: MQTTVersion, from sender: MQTTRole? = nil
    ) throws(MQTTProtocolError) -> MQTTPacket {
        guard body.byteCount == header.bodyCount else {
            throw .malformed("a body of \(body.byteCount) bytes, the header says \(header.bodyCount)", "MQTT 2.1.4")
        }
        switch header.type {
        case .connect: return .connect(try Connect(decoding: body))
        case .connack: return .connack(try Connack(decoding: body, version: version))
        case .publish: return .publish(try Publish(decoding: header, body, version: version))
        case .puback: return .puback(try Acknowledgement(decoding: header, body, version: version))
        case .pubrec: return .pubrec(try Acknowledgement(decoding: header, body, version: version))
        case .pubrel: return .pubrel(try Acknowledgement(decoding: header, body, version: version))
        case .pubcomp: return .pubcomp(try Acknowledgement(decoding: header, body, version: version))
        case .subscribe: return .subscribe(try Subscribe(decoding: body, version: version))
        case .suback: return .suback(try Suback(decoding: body, version: version))
        case .unsubscribe: return .unsubscribe(try Unsubscribe(decoding: body, version: version))
        case .unsuback: return .unsuback(try Unsuback(decoding: body, version: version))
        // That they have no body was checked with the header.
        case .pingreq: return .pingreq
        case .pingresp: return .pingresp
        case .disconnect: return .disconnect(try Disconnect(decoding: body, version: version, from: sender))
        case .auth: return .auth(try Auth(decoding: body, version: version, from: sender))
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

extension MQTTPacket.Acknowledgement {
    init(decoding header: MQTTFrameHeader, _ body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        let view = try MQTTAcknowledgementView.parse(header.withoutHeader, in: body, version: version)
        self.init(
            packetID: view.packetID, reasonCode: view.reasonCode,
            properties: try view.properties(in: body, of: header.type))
    }
}

extension MQTTFrameHeader {
    /// The same header, for reading from a span that starts behind it.
    fileprivate var withoutHeader: MQTTFrameHeader {
        MQTTFrameHeader(type: type, flags: flags, headerCount: 0, bodyCount: bodyCount)
    }
}

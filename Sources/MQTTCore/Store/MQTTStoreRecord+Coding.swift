// Records as bytes: a tag, then fixed fields, big-endian; a message is kept as the PUBLISH packet that it is in 5.0.

extension MQTTStoreRecord {
    private enum Tag: UInt8 {
        case established = 1
        case message, identified, released, finished, received, receivedReleased, receivedForgotten, discarded
    }

    /// Appends the record.
    ///
    /// - Throws: ``MQTTEncodingError`` for a message that no PUBLISH packet could hold; the engine accepts none.
    public func encode(into bytes: inout [UInt8]) throws(MQTTEncodingError) {
        switch self {
        case .established: bytes.append(Tag.established.rawValue)
        case .message(let sequence, let packetID, let topic, let payload, let qos, let retain, let properties):
            bytes.append(Tag.message.rawValue)
            Self.append(sequence, &bytes)
            Self.append(packetID, &bytes)
            // The packet itself has to have an identifier; the record's own may be 0.
            unsafe try MQTTPacket.Publish.encode(
                into: &bytes, version: .v5_0, topic: topic, payload: payload.span.bytes, qos: qos, retain: retain,
                packetID: 1, properties: properties)
        case .identified(let sequence, let packetID):
            bytes.append(Tag.identified.rawValue)
            Self.append(sequence, &bytes)
            Self.append(packetID, &bytes)
        case .released(let sequence):
            bytes.append(Tag.released.rawValue)
            Self.append(sequence, &bytes)
        case .finished(let sequence):
            bytes.append(Tag.finished.rawValue)
            Self.append(sequence, &bytes)
        case .received(let packetID):
            bytes.append(Tag.received.rawValue)
            Self.append(packetID, &bytes)
        case .receivedReleased(let packetID):
            bytes.append(Tag.receivedReleased.rawValue)
            Self.append(packetID, &bytes)
        case .receivedForgotten: bytes.append(Tag.receivedForgotten.rawValue)
        case .discarded: bytes.append(Tag.discarded.rawValue)
        }
    }

    /// Reads a record that takes up all of `bytes`, or nil if it is none.
    public init?(decoding bytes: [UInt8]) {
        guard let first = bytes.first, let tag = Tag(rawValue: first) else { return nil }
        let end: Int
        switch tag {
        case .established, .receivedForgotten, .discarded: end = 1
        case .received, .receivedReleased: end = 3
        case .released, .finished: end = 9
        case .identified: end = 11
        case .message: end = bytes.count
        }
        guard bytes.count == end, tag != .message || end > 11 else { return nil }
        // The bytes of an array of bytes: nothing to reinterpret.
        let span = unsafe bytes.span.bytes
        func sequence() -> UInt64 { UInt64(span.uint32(at: 1)) << 32 | UInt64(span.uint32(at: 5)) }
        switch tag {
        case .established: self = .established
        case .receivedForgotten: self = .receivedForgotten
        case .discarded: self = .discarded
        case .received: self = .received(packetID: span.uint16(at: 1))
        case .receivedReleased: self = .receivedReleased(packetID: span.uint16(at: 1))
        case .released: self = .released(sequence: sequence())
        case .finished: self = .finished(sequence: sequence())
        case .identified: self = .identified(sequence: sequence(), packetID: span.uint16(at: 9))
        case .message:
            guard
                let header = try? MQTTFrameHeader.parse(
                    span, at: 11, maximumPacketSize: MQTTFrameHeader.largestPacket, version: .v5_0),
                header.type == .publish, header.packetCount == end - 11,
                case .publish(let publish)? = try? MQTTPacket.decode(
                    header, body: span.extracting(header.bodyRange(in: span, at: 11)), version: .v5_0),
                publish.qos != .atMostOnce
            else { return nil }
            self = .message(
                sequence: sequence(), packetID: span.uint16(at: 9), topic: publish.topic, payload: publish.payload,
                qos: publish.qos, retain: publish.retain, properties: publish.properties)
        }
    }

    private static func append(_ value: some FixedWidthInteger, _ bytes: inout [UInt8]) {
        for shift in stride(from: value.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }
}

// Records as bytes: a tag, then fixed fields, big-endian; a message is kept as the PUBLISH packet that it is in 5.0, and a topic
// filter as its length and its bytes.

import MessagingWire

extension MQTTStoreRecord {
    private enum Tag: UInt8 {
        case established = 1
        case message, identified, released, finished, received, receivedReleased, receivedForgotten, discarded
        /// A message with the time that it came in.
        case timedMessage
        case kept, keptFinished
        case retired
        case filterWanted, filterEnded, filterForgotten
    }

    /// Appends the record.
    ///
    /// - Throws: ``MQTTEncodingError`` for a message that no PUBLISH packet could hold, or a topic filter that no SUBSCRIBE
    ///   could; the engine accepts none.
    public func encode(into bytes: inout [UInt8]) throws(MQTTEncodingError) {
        switch self {
        case .established: bytes.append(Tag.established.rawValue)
        case .message(let message):
            try Self.append(message, message.time == 0 ? .message : .timedMessage, &bytes)
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
        case .retired(let packetID):
            bytes.append(Tag.retired.rawValue)
            Self.append(packetID, &bytes)
        case .receivedForgotten: bytes.append(Tag.receivedForgotten.rawValue)
        case .discarded: bytes.append(Tag.discarded.rawValue)
        case .kept(let message): try Self.append(message, .kept, &bytes)
        case .keptFinished(let sequence):
            bytes.append(Tag.keptFinished.rawValue)
            Self.append(sequence, &bytes)
        case .filterWanted(let filter): try Self.append(filter, .filterWanted, &bytes)
        case .filterEnded(let filter): try Self.append(filter, .filterEnded, &bytes)
        case .filterForgotten(let filter): try Self.append(filter, .filterForgotten, &bytes)
        }
    }

    /// Reads a record that takes up all of `bytes`; nil if they are not a record.
    public init?(decoding bytes: [UInt8]) {
        guard let first = bytes.first, let tag = Tag(rawValue: first) else { return nil }
        let end: Int
        switch tag {
        case .established, .receivedForgotten, .discarded: end = 1
        case .received, .receivedReleased, .retired: end = 3
        case .released, .finished, .keptFinished: end = 9
        case .identified: end = 11
        case .message, .timedMessage, .kept: end = bytes.count
        case .filterWanted, .filterEnded, .filterForgotten:
            guard bytes.count >= 3 else { return nil }
            end = 3 + Int(bytes[1]) << 8 + Int(bytes[2])
        }
        guard bytes.count == end else { return nil }
        // The bytes of an array of bytes: nothing to reinterpret.
        let span = unsafe bytes.span.bytes
        switch tag {
        case .established: self = .established
        case .receivedForgotten: self = .receivedForgotten
        case .discarded: self = .discarded
        case .received: self = .received(packetID: span.bigEndian(UInt16.self, at: 1))
        case .receivedReleased: self = .receivedReleased(packetID: span.bigEndian(UInt16.self, at: 1))
        case .retired: self = .retired(packetID: span.bigEndian(UInt16.self, at: 1))
        case .released: self = .released(sequence: Self.sequence(span))
        case .finished: self = .finished(sequence: Self.sequence(span))
        case .identified:
            self = .identified(sequence: Self.sequence(span), packetID: span.bigEndian(UInt16.self, at: 9))
        case .keptFinished: self = .keptFinished(sequence: Self.sequence(span))
        case .message:
            guard let message = Self.message(span, hasTime: false) else { return nil }
            self = .message(message)
        case .timedMessage:
            // A message whose time is 0 is written without one.
            guard let message = Self.message(span, hasTime: true), message.time != 0 else { return nil }
            self = .message(message)
        case .kept:
            guard let message = Self.message(span, hasTime: true) else { return nil }
            self = .kept(message)
        case .filterWanted, .filterEnded, .filterForgotten:
            guard let filter = String(validating: bytes[3...], as: UTF8.self) else { return nil }
            self =
                switch tag {
                case .filterWanted: .filterWanted(filter)
                case .filterEnded: .filterEnded(filter)
                default: .filterForgotten(filter)
                }
        }
    }

    private static func append(_ filter: String, _ tag: Tag, _ bytes: inout [UInt8]) throws(MQTTEncodingError) {
        bytes.append(tag.rawValue)
        var body = PacketBody(version: .v5_0)
        try body.append(filter: filter)
        bytes += body.bytes
    }

    private static func append(_ message: Message, _ tag: Tag, _ bytes: inout [UInt8]) throws(MQTTEncodingError) {
        bytes.append(tag.rawValue)
        append(message.sequence, &bytes)
        append(message.packetID, &bytes)
        if tag != .message { append(message.time, &bytes) }
        // The packet itself must have an identifier; the record's own may be 0.
        try MQTTPacket.Publish(
            topic: message.topic, payload: message.payload, qos: message.qos, isRetained: message.retain, packetID: 1,
            properties: message.properties
        ).encode(into: &bytes, version: .v5_0)
    }

    /// The message that takes up all of the record.
    private static func message(_ bytes: RawSpan, hasTime: Bool) -> Message? {
        guard let publish = publish(bytes, at: hasTime ? 19 : 11) else { return nil }
        return Message(
            sequence: sequence(bytes), packetID: bytes.bigEndian(UInt16.self, at: 9), topic: publish.topic,
            payload: publish.payload, qos: publish.qos, retain: publish.isRetained, properties: publish.properties,
            time: hasTime ? time(bytes, at: 11) : 0)
    }

    private static func sequence(_ bytes: RawSpan) -> UInt64 {
        UInt64(bytes.bigEndian(UInt32.self, at: 1)) << 32 | UInt64(bytes.bigEndian(UInt32.self, at: 5))
    }

    private static func time(_ bytes: RawSpan, at offset: Int) -> Int64 {
        Int64(
            bitPattern: UInt64(bytes.bigEndian(UInt32.self, at: offset)) << 32
                | UInt64(bytes.bigEndian(UInt32.self, at: offset + 4)))
    }

    /// The PUBLISH packet that takes up all of the rest.
    private static func publish(_ bytes: RawSpan, at offset: Int) -> MQTTPacket.Publish? {
        guard bytes.byteCount > offset,
            let header = try? MQTTFrameHeader.parse(
                bytes, at: offset, maximumPacketSize: MQTTPacket.largestSize, version: .v5_0),
            header.type == .publish, header.packetCount == bytes.byteCount - offset,
            case .publish(let publish)? = try? MQTTPacket.decode(
                header, body: bytes.extracting(header.bodyRange(in: bytes, at: offset)), version: .v5_0),
            publish.qos != .atMostOnce
        else { return nil }
        return publish
    }

    private static func append(_ value: some FixedWidthInteger, _ bytes: inout [UInt8]) {
        for shift in stride(from: value.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }
}

/// The checksum of stored records: CRC-32C (Castagnoli), which finds every error burst of up to 32 bits.
package enum CRC32C {
    /// Polynomial 0x1EDC6F41, reflected: what a byte becomes behind which 0, 1, 2 or 3 zero bytes follow, 256 entries
    /// each.
    private static let table: [UInt32] = {
        var table = (0..<256).map { byte in (0..<8).reduce(UInt32(byte)) { value, _ in step(value) } }
        for index in 256..<1024 { table.append(table[index - 256] >> 8 ^ table[Int(table[index - 256] & 0xFF)]) }
        return table
    }()

    private static func step(_ value: UInt32) -> UInt32 { value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }

    /// The checksum of some bytes; that of no bytes is 0.
    package static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var value: UInt32 = 0xFFFF_FFFF
        let table = table
        var index = bytes.startIndex
        // Four bytes at a time, whose tables do not wait for one another.
        while bytes.endIndex - index >= 4 {
            value ^= UInt32(bytes[index]) | UInt32(bytes[index + 1]) << 8
            value ^= UInt32(bytes[index + 2]) << 16 | UInt32(bytes[index + 3]) << 24
            value =
                table[768 + Int(value & 0xFF)] ^ table[512 + Int(value >> 8 & 0xFF)]
                ^ table[256 + Int(value >> 16 & 0xFF)] ^ table[Int(value >> 24)]
            index += 4
        }
        for byte in bytes[index...] { value = value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] }
        return ~value
    }
}

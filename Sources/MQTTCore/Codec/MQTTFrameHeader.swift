import MessagingWire

/// The fixed header of a packet: its type, its flags and how much follows.
package struct MQTTFrameHeader: Sendable, Hashable {
    package let type: MQTTPacketType
    /// The lower half of the first byte.
    package let flags: UInt8
    /// The size of the fixed header itself, 2 to 5 bytes.
    package let headerCount: Int
    /// The Remaining Length.
    package let bodyCount: Int

    /// The flags, for PUBLISH.
    var publishFlags: MQTTPublishFlags { MQTTPublishFlags(rawValue: flags) }

    /// The size of the whole packet.
    package var packetCount: Int { headerCount + bodyCount }

    init(type: MQTTPacketType, flags: UInt8, headerCount: Int, bodyCount: Int) {
        self.type = type
        self.flags = flags
        self.headerCount = headerCount
        self.bodyCount = bodyCount
    }

    /// The header of the same packet with a body of so many bytes, for a packet of which only the first bytes are there.
    package func cut(toBody count: Int) -> MQTTFrameHeader {
        MQTTFrameHeader(type: type, flags: flags, headerCount: headerCount, bodyCount: count)
    }

    /// Reads the fixed header at `offset`, or nil while more bytes are needed to see it whole.
    ///
    /// It reads at most five bytes and retains nothing, so it can be called again with more. A packet larger than
    /// `maximumPacketSize` is refused here, before memory is allocated for it.
    /// - Parameters:
    ///   - maximumControlPacketSize: the limit for packets other than PUBLISH, where it is the lower one.
    ///   - version: 3.1 allows more flags. Before CONNECT the version is unknown, and the default is correct.
    ///   - sender: from a server DUP is accepted at QoS 0, where it means nothing, and before 5.0 a Remaining Length in more
    ///     bytes than necessary, which only 5.0 forbids.
    package static func parse(
        _ bytes: RawSpan, at offset: Int = 0, maximumPacketSize: Int, maximumControlPacketSize: Int = .max,
        version: MQTTVersion = .v3_1_1, from sender: MQTTRole? = nil
    ) throws(MQTTProtocolError) -> MQTTFrameHeader? {
        guard offset >= 0, offset < bytes.byteCount else { return nil }
        let first = bytes.byte(at: offset)
        // The usual packet: PUBLISH without DUP, less than 128 bytes.
        if first & 0b1111_1000 == 0x30, first & 0b0110 != 0b0110, offset < bytes.byteCount &- 1 {
            let bodyCount = Int(bytes.byte(at: offset &+ 1))
            if bodyCount < 0x80, bodyCount &+ 2 <= maximumPacketSize {
                return MQTTFrameHeader(type: .publish, flags: first & 0x0F, headerCount: 2, bodyCount: bodyCount)
            }
        }
        return try parse(first, bytes, at: offset, maximumPacketSize, maximumControlPacketSize, version, sender)
    }

    private static func parse(
        _ first: UInt8, _ bytes: RawSpan, at offset: Int, _ maximumPacketSize: Int, _ maximumControlPacketSize: Int,
        _ version: MQTTVersion, _ sender: MQTTRole?
    ) throws(MQTTProtocolError) -> MQTTFrameHeader? {
        guard let type = MQTTPacketType(rawValue: first >> 4) else {
            throw .malformed("The packet type is 0.", "MQTT 2.1.2")
        }
        let flags = first & 0x0F
        if !areValid(flags, of: type, version: version), sender != .server || !isMerelyDuplicate(flags, type) {
            throw invalidFlags(flags, of: type)
        }
        let (bodyCount, byteCount): (Int, Int)
        switch VariableByteInteger.parse(bytes, at: offset + 1, end: bytes.byteCount) {
        case .value(let value, let count): (bodyCount, byteCount) = (value, count)
        case .incomplete: return nil
        case .tooLong: throw .malformed("The remaining length has more than four bytes.", "MQTT 1.5.5")
        case .notMinimal(let value, let count):
            guard sender == .server, !version.hasProperties else {
                throw .malformed("The remaining length is encoded in more bytes than necessary.", "MQTT-1.5.5-1")
            }
            (bodyCount, byteCount) = (value, count)
        }
        let header = MQTTFrameHeader(type: type, flags: flags, headerCount: 1 + byteCount, bodyCount: bodyCount)
        if header.packetCount > maximumPacketSize { throw tooLarge(header, maximumPacketSize) }
        if type != .publish, header.packetCount > maximumControlPacketSize {
            throw controlPacketTooLarge(header, maximumControlPacketSize)
        }
        if bodyCount > 0, type == .pingreq || type == .pingresp { throw pingWithBody(header) }
        return header
    }

    /// Whether flags that are invalid are those of a PUBLISH of QoS 0 with DUP.
    private static func isMerelyDuplicate(_ flags: UInt8, _ type: MQTTPacketType) -> Bool {
        type == .publish && !MQTTPublishFlags(rawValue: flags).hasInvalidQoS
    }

    /// 3.1 lets clients set DUP on what they repeat, and calls the other flags unused.
    @inline(__always)
    private static func areValid(_ flags: UInt8, of type: MQTTPacketType, version: MQTTVersion) -> Bool {
        if type == .publish {
            let flags = MQTTPublishFlags(rawValue: flags)
            return !flags.hasInvalidQoS && (!flags.isDuplicate || !flags.isAtMostOnce || version == .v3_1)
        }
        if flags == type.requiredFlags { return true }
        guard version == .v3_1 else { return false }
        return type.requiredFlags == 0 || flags & 0b0110 == 0b0010
    }

    private static func invalidFlags(_ flags: UInt8, of type: MQTTPacketType) -> MQTTProtocolError {
        guard type == .publish else {
            return .malformed("\(type) has the fixed-header flags \(flags).", "MQTT-2.1.3-1")
        }
        return MQTTPublishFlags(rawValue: flags).hasInvalidQoS
            ? .malformed("PUBLISH has QoS 3.", "MQTT-3.3.1-4")
            : .malformed("PUBLISH has QoS 0 and DUP set.", "MQTT-3.3.1-2")
    }

    private static func controlPacketTooLarge(_ header: MQTTFrameHeader, _ maximum: Int) -> MQTTProtocolError {
        MQTTProtocolError(
            .packetTooLarge,
            "\(header.type) has \(header.packetCount) bytes; the limit for packets other than PUBLISH is \(maximum) bytes. "
                + "Raise maximumControlPacketSize to accept it.",
            clause: "MQTT 5.0 4.13")
    }

    private static func pingWithBody(_ header: MQTTFrameHeader) -> MQTTProtocolError {
        .malformed(
            "\(header.type) has a body of \(header.bodyCount) bytes.",
            header.type == .pingreq ? "MQTT 3.12.1" : "MQTT 3.13.1")
    }

    private static func tooLarge(_ header: MQTTFrameHeader, _ maximum: Int) -> MQTTProtocolError {
        MQTTProtocolError(
            .packetTooLarge,
            "\(header.type) has \(header.packetCount) bytes; the maximum packet size is \(maximum). Raise maximumPacketSize to accept it.",
            clause: "MQTT-3.1.2-24")
    }
}

extension MQTTFrameHeader {
    /// Where the body of the packet stands; our own mistake if it is not all there.
    @inline(__always)
    func bodyRange(in bytes: RawSpan, at frameStart: Int) -> Range<Int> {
        precondition(
            frameStart >= 0 && frameStart <= bytes.byteCount && packetCount <= bytes.byteCount - frameStart,
            "the packet is not complete yet")
        let start = frameStart + headerCount
        return start..<(start + bodyCount)
    }
}

extension MQTTFrameHeader {
    /// The same header, for reading from a span that starts behind it.
    var withoutHeader: MQTTFrameHeader {
        MQTTFrameHeader(type: type, flags: flags, headerCount: 0, bodyCount: bodyCount)
    }
}

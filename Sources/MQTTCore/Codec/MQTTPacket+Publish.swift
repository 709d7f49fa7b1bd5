import MessagingWire

extension MQTTPacket {
    /// PUBLISH: a message.
    public struct Publish: Sendable, Hashable {
        /// Empty only in 5.0 and with a topic alias.
        public var topic: String
        public var payload: [UInt8]
        public var qos: QoS
        public var isRetained: Bool
        /// DUP: this may be a repetition; never at QoS 0 [MQTT-3.3.1-2].
        public var isDuplicate: Bool
        /// Zero at QoS 0, and only there [MQTT-2.2.1-2].
        public var packetID: UInt16
        public var properties: MQTTProperties

        public init(
            topic: String, payload: [UInt8], qos: QoS = .atMostOnce, isRetained: Bool = false,
            isDuplicate: Bool = false,
            packetID: UInt16 = 0, properties: MQTTProperties = []
        ) {
            self.topic = topic
            self.payload = payload
            self.qos = qos
            self.isRetained = isRetained
            self.isDuplicate = isDuplicate
            self.packetID = packetID
            self.properties = properties
        }
    }
}

extension MQTTPacket.Publish {
    init(decoding header: MQTTFrameHeader, _ body: RawSpan, version: MQTTVersion) throws(MQTTProtocolError) {
        let alone = header.withoutHeader
        let view = try MQTTPublishView.parse(alone, in: body, version: version)
        try view.requireTopic(version)
        _ = try view.scanProperties(in: body)
        self.init(
            topic: try view.topic(in: body), payload: body.bytes(in: view.payloadRange), qos: view.flags.qos,
            isRetained: view.flags.isRetained, isDuplicate: view.flags.isDuplicate, packetID: view.packetID,
            properties: try view.properties(in: body))
    }
}

extension MQTTPacket.Publish {
    /// Appends the packet; on an error nothing is appended.
    func encode(
        into output: inout [UInt8], version: MQTTVersion, maximumPacketSize: Int = MQTTPacket.largestSize
    ) throws(MQTTEncodingError) {
        let head = PublishHead(
            topic: topic, flags: MQTTPublishFlags(qos, retain: isRetained, isDuplicate: isDuplicate), packetID: packetID
        )
        // The bytes of an array of bytes: nothing to reinterpret.
        try Self.encode(
            head, properties, payload: unsafe payload.span.bytes, into: &output, version: version,
            maximumPacketSize: maximumPacketSize)
    }

    /// Appends a PUBLISH straight from its parts; on an error nothing is appended.
    ///
    /// The room is reserved once and written through, and the topic is checked while it is copied; there is no other
    /// allocation.
    /// - Parameters:
    ///   - leavesPayloadOut: whether the payload, which ends the packet, is counted and not written.
    ///   - maximumPacketSize: the largest packet that the peer accepts [MQTT-3.2.2-15].
    package static func encode(
        _ head: PublishHead, _ properties: MQTTProperties = MQTTProperties(), payload: RawSpan,
        leavesPayloadOut: Bool = false, into output: inout [UInt8], version: MQTTVersion,
        maximumPacketSize: Int = MQTTPacket.largestSize
    ) throws(MQTTEncodingError) {
        guard head.isConsistent else { throw contradiction(head) }
        let propertiesCount = try propertiesCount(head, properties, version)
        let hasTopic = head.alias != 0 || !head.topic.isEmpty || properties.contains(.topicAlias)
        let written = head.topic.withUTF8Span { topic in
            guard topic.byteCount <= 65_535, hasTopic else { return Written.badTopic }
            var headCount = 2 + topic.byteCount + (head.packetID == 0 ? 0 : 2)
            if version.hasProperties {
                headCount += VariableByteInteger.byteCount(of: propertiesCount) + propertiesCount
            }
            let (bodyCount, overflow) = payload.byteCount.addingReportingOverflow(headCount)
            guard !overflow, bodyCount <= VariableByteInteger.maximum else { return .tooLarge(Int.max) }
            let count = 1 + VariableByteInteger.byteCount(of: bodyCount) + bodyCount
            guard count <= maximumPacketSize else { return .tooLarge(count) }
            let room = leavesPayloadOut ? count &- payload.byteCount : count
            var isName = false
            output.append(addingCapacity: room) { output in
                unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
                    // Safe: `room` bytes are free behind what is initialized, exactly as many as are written below, and a
                    // buffer that is written exclusively does not overlap with spans that are borrowed.
                    guard let base = buffer.baseAddress, buffer.count - initialized >= room else { return }
                    var to = unsafe UnsafeMutableRawPointer(base + initialized)
                    unsafe write(head.flags.firstByte, &to)
                    unsafe write(variable: bodyCount, &to)
                    unsafe write(UInt16(truncatingIfNeeded: topic.byteCount).bigEndian, &to)
                    guard unsafe TextScan.copyName(topic, to: to) else { return }
                    unsafe to += topic.byteCount
                    if head.packetID != 0 { unsafe write(head.packetID.bigEndian, &to) }
                    if version.hasProperties {
                        unsafe write(variable: propertiesCount, &to)
                        if head.alias != 0 {
                            unsafe write(MQTTPropertyIdentifier.topicAlias.rawValue, &to)
                            unsafe write(head.alias.bigEndian, &to)
                        }
                        // The bytes of an array of bytes: nothing to reinterpret.
                        let properties = unsafe properties.encoded.span.bytes
                        unsafe properties.copyWords(to: to)
                        unsafe to += properties.byteCount
                    }
                    if !leavesPayloadOut { unsafe payload.copyWords(to: to) }
                    initialized += room
                    isName = true
                }
            }
            guard isName else { return .badTopic }
            return .done
        }
        switch written {
        case .done: return
        case .badTopic: throw .topicName(head.topic)
        case .tooLarge(let count): throw .packetTooLarge(.publish, count, maximumPacketSize)
        }
    }

    /// Writes an integer, and advances behind it.
    @inline(__always) @unsafe
    private static func write<Value: FixedWidthInteger & BitwiseCopyable>(
        _ value: Value, _ to: inout UnsafeMutableRawPointer
    ) {
        // Safe: the caller has room for the whole packet.
        unsafe to.storeBytes(of: value, as: Value.self)
        unsafe to += MemoryLayout<Value>.size
    }

    /// Writes a Variable Byte Integer in its shortest form, and advances behind it.
    @inline(__always) @unsafe
    private static func write(variable value: Int, _ to: inout UnsafeMutableRawPointer) {
        var rest = value
        while rest > 0x7F {
            unsafe write(UInt8(truncatingIfNeeded: rest) | 0x80, &to)
            rest >>= 7
        }
        unsafe write(UInt8(truncatingIfNeeded: rest), &to)
    }

    @inline(never)
    private static func contradiction(_ head: PublishHead) -> MQTTEncodingError {
        head.flags.isAtMostOnce == (head.packetID == 0)
            ? .init(.contradiction, "DUP is not allowed at QoS 0 [MQTT-3.3.1-2].") : .packetID(head.flags.qos)
    }

    /// Checks the properties and counts the bytes that they and the alias take, without their length.
    private static func propertiesCount(
        _ head: PublishHead, _ properties: MQTTProperties, _ version: MQTTVersion
    ) throws(MQTTEncodingError) -> Int {
        guard version.hasProperties else {
            if properties.isEmpty, head.alias == 0 { return 0 }
            throw .noProperties(version)
        }
        if properties.arePlain, head.alias == 0 { return properties.encoded.count }
        let count = properties.isEmpty ? 0 : try properties.encodedCount(in: .publish)
        guard head.alias != 0 else { return count }
        if properties.contains(.topicAlias) {
            throw .init(.invalidProperty, "The property topicAlias may appear only once.")
        }
        return count + 3
    }

    /// Checks topic and properties and counts the bytes that the packet would take, without writing or allocating
    /// anything. Before 5.0 properties are not counted.
    static func encodedCount(
        _ head: PublishHead, _ properties: MQTTProperties, payloadCount: Int, version: MQTTVersion
    ) throws(MQTTEncodingError) -> Int {
        guard MQTTTopicName.isValid(head.topic) else { throw .topicName(head.topic) }
        var bodyCount = 2 + head.topic.utf8.count + (head.flags.isAtMostOnce ? 0 : 2)
        if version.hasProperties {
            let count = properties.isEmpty ? 0 : try properties.encodedCount(in: .publish)
            bodyCount += VariableByteInteger.byteCount(of: count) + count
        }
        let (total, overflow) = payloadCount.addingReportingOverflow(bodyCount)
        guard !overflow, total <= VariableByteInteger.maximum else {
            throw .packetTooLarge(.publish, Int.max, MQTTPacket.largestSize)
        }
        return 1 + VariableByteInteger.byteCount(of: total) + total
    }

    /// The outcome of writing, inside the closure that borrows the topic.
    private enum Written {
        case done
        case badTopic
        case tooLarge(Int)
    }
}

extension MQTTPacket.Publish {
    /// The number of QoS 0 messages among whole packets, those that end at `offset` or before it left out.
    public static func countAtMostOnce(in packets: RawSpan, endingAfter offset: Int) -> Int {
        countAtMostOnce(in: packets, leavingOut: nil, endingAfter: offset)
    }

    /// The same for packets one of which lacks its payload. `offset` counts the bytes of the payload too.
    package static func countAtMostOnce(
        in packets: RawSpan, leavingOut payload: LargePayload?, endingAfter offset: Int
    ) -> Int {
        var count = 0
        var start = 0
        var missing = 0
        // Of the three versions 3.1 allows the most flags.
        while let header = try? MQTTFrameHeader.parse(packets, at: start, maximumPacketSize: .max, version: .v3_1) {
            start += header.packetCount
            // A payload ends its packet.
            if let payload, missing == 0, start > payload.place {
                missing = payload.bytes.count
                start = payload.place
            }
            if header.type == .publish, header.publishFlags.isAtMostOnce, start + missing > offset { count += 1 }
        }
        return count
    }
}

/// DUP, QoS and RETAIN of a PUBLISH packet, as in the lower half of its first byte (section 3.3.1).
@frozen
public struct MQTTPublishFlags: RawRepresentable, Sendable, Hashable {
    /// The four bits.
    public var rawValue: UInt8

    /// Flags from their bits; the upper half of the byte is 0.
    @inlinable
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Flags from their meanings.
    @inlinable
    public init(_ qos: QoS, retain: Bool = false, isDuplicate: Bool = false) {
        rawValue = (isDuplicate ? 0b1000 : 0) | qos.rawValue << 1 | (retain ? 0b0001 : 0)
    }

    /// The quality of service; the parser of the fixed header has refused 3.
    @inlinable public var qos: QoS { QoS(rawValue: rawValue >> 1 & 0b11) ?? .exactlyOnce }
    /// Whether the QoS is 0.
    @inlinable public var isAtMostOnce: Bool { rawValue & 0b0110 == 0 }
    /// Whether the QoS is 1.
    @inlinable public var isAtLeastOnce: Bool { rawValue & 0b0110 == 0b0010 }
    /// Whether the QoS is 2.
    @inlinable public var isExactlyOnce: Bool { rawValue & 0b0100 != 0 }
    /// Whether RETAIN is set.
    @inlinable public var isRetained: Bool { rawValue & 0b0001 != 0 }
    /// Whether DUP is set.
    @inlinable public var isDuplicate: Bool { rawValue & 0b1000 != 0 }

    /// Both bits of the QoS are set, which no version allows [MQTT-3.3.1-4].
    var hasInvalidQoS: Bool { rawValue & 0b0110 == 0b0110 }

    /// The flags with DUP set, as a packet has them that is sent again [MQTT 5.0 3.3.1-1].
    var asDuplicate: MQTTPublishFlags { MQTTPublishFlags(rawValue: rawValue | 0b1000) }

    /// RETAIN alone: at QoS 0 DUP has no meaning, although 3.1 allows it.
    var retainOnly: MQTTPublishFlags { MQTTPublishFlags(rawValue: rawValue & 0b0001) }

    /// The first byte of the packet.
    var firstByte: UInt8 { 0x30 | rawValue }
}

/// What a PUBLISH packet carries before its properties and its payload.
package struct PublishHead: Sendable {
    /// The topic name; empty only with an alias that the peer knows.
    package var topic: String
    package var flags: MQTTPublishFlags
    /// Zero at QoS 0, and only there [MQTT-2.2.1-2].
    package var packetID: UInt16
    /// Zero for none; 5.0 only.
    package var alias: UInt16

    package init(
        topic: String, flags: MQTTPublishFlags = MQTTPublishFlags(.atMostOnce), packetID: UInt16 = 0, alias: UInt16 = 0
    ) {
        self.topic = topic
        self.flags = flags
        self.packetID = packetID
        self.alias = alias
    }

    /// Whether it obeys the rules that hold in every version: DUP and a packet identifier only above QoS 0.
    var isConsistent: Bool { flags.isAtMostOnce ? packetID == 0 && !flags.isDuplicate : packetID != 0 }
}

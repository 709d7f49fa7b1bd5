// How properties are held. A property that a packet can carry is held as the packet carries it (section 2.2.2). A value
// that no packet can carry (of the wrong type, out of range, too long) has to be held too, because it is reported when the
// packet is encoded: its identifier has the highest bit set, which no identifier on the wire has, a byte for the type
// follows, and then the value, whose lengths have four bytes.

import MessagingWire

extension MQTTProperties {
    /// Checks the properties in `range`, which lies inside `bytes`, and copies them.
    ///
    /// - Parameter sender: from a server a Maximum QoS of 2, which is no limit, reads as if it were absent.
    init(
        decoding bytes: RawSpan, _ range: Range<Int>, carrier: MQTTPropertyRule.Carriers, from sender: MQTTRole? = nil
    ) throws(MQTTProtocolError) {
        self.init()
        var cursor = MQTTPropertyCursor(range, carrier: carrier)
        cursor.acceptsMaximumQoS2 = sender == .server
        while let found = try cursor.next(bytes) { traits.add(found.identifier, isInvalid: false) }
        encoded = bytes.bytes(in: range)
        if cursor.acceptsMaximumQoS2, maximumQoS == .exactlyOnce { maximumQoS = nil }
    }

    /// Which properties a list has, and whether a packet can carry them.
    @usableFromInline
    struct Traits: OptionSet, Sendable, Hashable {
        /// One bit for each identifier, which end at 42, and the two below.
        @usableFromInline let rawValue: UInt64

        @usableFromInline init(rawValue: UInt64) { self.rawValue = rawValue }

        init(_ identifier: MQTTPropertyIdentifier) { rawValue = 1 << UInt64(identifier.rawValue) }

        /// A value that no packet can carry.
        static let hasInvalid = Traits(rawValue: 1 << 63)
        /// An identifier of which there may be one only.
        static let hasRepeated = Traits(rawValue: 1 << 62)
        /// What any PUBLISH of an application may carry.
        static let ofMessages: Traits = [
            .init(.payloadFormatIndicator), .init(.messageExpiryInterval), .init(.contentType), .init(.responseTopic),
            .init(.correlationData), .init(.userProperty),
        ]

        mutating func add(_ identifier: MQTTPropertyIdentifier, isInvalid: Bool) {
            if isInvalid { insert(.hasInvalid) }
            let isNew = insert(.init(identifier)).inserted
            if !isNew, identifier != .userProperty { insert(.hasRepeated) }
        }
    }

    /// Finds out again what is known of the properties, after some were removed.
    mutating func findTraits() {
        traits = []
        var offset = 0
        while offset < encoded.count {
            let found = field(at: offset)
            traits.add(found.identifier, isInvalid: found.isInvalid)
            offset = found.end
        }
    }

    /// Whether any PUBLISH of an application may carry these properties, and their length takes one byte.
    @inline(__always)
    var arePlain: Bool { traits.isSubset(of: .ofMessages) && encoded.count < 128 }

    /// Where one property lies in ``encoded``.
    struct Field {
        let identifier: MQTTPropertyIdentifier
        let kind: MQTTPropertyRule.Kind
        /// Whether no packet can carry the value.
        let isInvalid: Bool
        let start: Int
        var end: Int
        var integer: UInt32 = 0
        /// The bytes of the string or binary value, or of the name of a pair.
        var first = 0..<0
        /// The bytes of the value of a pair.
        var second = 0..<0
    }

    /// The property at an offset where one begins.
    func field(at start: Int) -> Field {
        // The bytes of an array of bytes: nothing to reinterpret.
        Self.field(unsafe encoded.span.bytes, at: start)
    }

    private static func field(_ bytes: RawSpan, at start: Int) -> Field {
        let first = bytes.byte(at: start)
        let isInvalid = first & 0x80 != 0
        guard let identifier = MQTTPropertyIdentifier(rawValue: first & 0x7F) else {
            preconditionFailure("Properties were checked when they were added.")
        }
        let kind =
            isInvalid
            ? MQTTPropertyRule.Kind.invalid[Int(bytes.byte(at: start + 1))]
            : MQTTPropertyRule.rule(for: identifier).kind
        var found = Field(
            identifier: identifier, kind: kind, isInvalid: isInvalid, start: start, end: start + (isInvalid ? 2 : 1))
        switch kind {
        case .flag:
            found.integer = UInt32(bytes.byte(at: found.end))
            found.end += 1
        case .uint16, .positive16:
            found.integer = UInt32(bytes.bigEndian(UInt16.self, at: found.end))
            found.end += 2
        case .uint32, .positive32:
            found.integer = bytes.bigEndian(UInt32.self, at: found.end)
            found.end += 4
        case .positiveVariable:
            if case .value(let value, let count) = VariableByteInteger.parse(
                bytes, at: found.end, end: bytes.byteCount)
            {
                found.integer = UInt32(truncatingIfNeeded: value)
                found.end += count
            }
        case .string, .topicName, .binary: found.first = found.take(bytes)
        case .pair:
            found.first = found.take(bytes)
            found.second = found.take(bytes)
        }
        return found
    }

    /// The value of a property, decoded.
    func value(of found: Field) -> MQTTProperty.Value {
        // The bytes of an array of bytes: nothing to reinterpret.
        let bytes = unsafe encoded.span.bytes
        return switch found.kind {
        case .flag, .uint16, .positive16, .uint32, .positive32, .positiveVariable: .integer(found.integer)
        case .string, .topicName: .string(String(checked: bytes, found.first))
        case .binary: .binary(bytes.bytes(in: found.first))
        case .pair: .pair(.init(String(checked: bytes, found.first), String(checked: bytes, found.second)))
        }
    }

    // MARK: Writing

    static func append(_ property: MQTTProperty, to bytes: inout [UInt8]) {
        let rule = MQTTPropertyRule.rule(for: property.identifier)
        if let count = try? rule.encodedCount(of: property) {
            bytes.append(addingCapacity: 1 + count) { output in
                output.append(property.identifier.rawValue)
                rule.write(property.value, to: &output)
            }
        } else {
            bytes.append(property.identifier.rawValue | 0x80)
            appendInvalid(property.value, to: &bytes)
        }
    }

    private static func appendInvalid(_ value: MQTTProperty.Value, to bytes: inout [UInt8]) {
        func append(_ text: some Collection<UInt8>) {
            bytes.append(addingCapacity: 4) { $0.append(uint32: UInt32(truncatingIfNeeded: text.count)) }
            bytes.append(contentsOf: text)
        }
        switch value {
        case .integer(let value):
            bytes.append(0)
            bytes.append(addingCapacity: 4) { $0.append(uint32: value) }
        case .string(let text):
            bytes.append(1)
            append(text.utf8)
        case .binary(let value):
            bytes.append(2)
            append(value)
        case .pair(let pair):
            bytes.append(3)
            append(pair.name.utf8)
            append(pair.value.utf8)
        }
    }

    /// Checks that a packet may carry all properties and counts the bytes that they take, without their length.
    func encodedCount(in carrier: MQTTPropertyRule.Carriers) throws(MQTTEncodingError) -> Int {
        // The bytes of an array of bytes: nothing to reinterpret.
        let bytes = unsafe encoded.span.bytes
        var seen: UInt64 = 0
        var offset = 0
        while offset < bytes.byteCount {
            let found = Self.field(bytes, at: offset)
            offset = found.end
            let rule = MQTTPropertyRule.rule(for: found.identifier)
            if rule.carriers.isDisjoint(with: carrier) {
                throw .init(.invalidProperty, "The packet cannot carry the property \(found.identifier). Leave it out.")
            }
            let bit: UInt64 = 1 << UInt64(found.identifier.rawValue)
            if seen & bit != 0, rule.repeatable.isDisjoint(with: carrier) {
                throw .init(.invalidProperty, "The property \(found.identifier) may appear only once.")
            }
            seen |= bit
            if found.isInvalid { _ = try rule.encodedCount(of: MQTTProperty(found.identifier, value(of: found))) }
        }
        guard bytes.byteCount <= VariableByteInteger.maximum else {
            throw .init(
                .packetTooLarge, "The properties have \(bytes.byteCount) bytes; the format allows 268,435,455.")
        }
        return bytes.byteCount
    }

    /// The bytes of the properties in PUBLISH, without their length; empty if PUBLISH cannot carry them.
    package var publishBytes: [UInt8] {
        (try? encodedCount(in: .publish)) == nil ? [] : encoded
    }

    /// The properties that ``publishBytes`` are; none for other bytes.
    package init(publishBytes bytes: [UInt8]) {
        // The bytes of an array of bytes: nothing to reinterpret.
        self = (try? MQTTProperties(decoding: unsafe bytes.span.bytes, 0..<bytes.count, carrier: .publish)) ?? []
    }
}

extension MQTTProperties.Field {
    /// The bytes that their length precedes.
    fileprivate mutating func take(_ bytes: RawSpan) -> Range<Int> {
        let count =
            isInvalid ? Int(bytes.bigEndian(UInt32.self, at: end)) : Int(bytes.bigEndian(UInt16.self, at: end))
        let start = end + (isInvalid ? 4 : 2)
        end = start + count
        return start..<end
    }
}

/// Walks over the properties of a packet and checks each, without an allocation.
struct MQTTPropertyCursor {
    /// A property where it stands.
    struct Found {
        let identifier: MQTTPropertyIdentifier
        let kind: MQTTPropertyRule.Kind
        var integer: UInt32 = 0
        /// The bytes of the string or binary value, or of the name of a pair.
        var first: Range<Int> = 0..<0
        /// The bytes of the value of a pair.
        var second: Range<Int> = 0..<0
    }

    private let carrier: MQTTPropertyRule.Carriers
    private var cursor: ByteCursor
    /// One bit for each identifier that was there; identifiers end at 42.
    private var seen: UInt64 = 0

    init(_ range: Range<Int>, carrier: MQTTPropertyRule.Carriers) {
        self.carrier = carrier
        cursor = ByteCursor(range)
    }

    /// The next property, or nil at the end.
    mutating func next(_ bytes: RawSpan) throws(MQTTProtocolError) -> Found? {
        if cursor.isAtEnd { return nil }
        let number = try cursor.variable(bytes, "a property identifier")
        guard let identifier = UInt8(exactly: number).flatMap(MQTTPropertyIdentifier.init) else {
            throw .malformed("there is no property with identifier \(number)", "MQTT 2.2.2.2")
        }
        let rule = MQTTPropertyRule.rule(for: identifier)
        if rule.carriers.isDisjoint(with: carrier) {
            throw .malformed("\(identifier) does not belong into this packet", "MQTT 2.2.2.2")
        }
        let bit: UInt64 = 1 << UInt64(identifier.rawValue)
        if seen & bit != 0, rule.repeatable.isDisjoint(with: carrier) {
            throw .protocolError("\(identifier) is there twice", "MQTT 2.2.2.2")
        }
        seen |= bit
        return try value(Found(identifier: identifier, kind: rule.kind), rule, bytes)
    }

    private mutating func value(
        _ property: Found, _ rule: MQTTPropertyRule, _ bytes: RawSpan
    ) throws(MQTTProtocolError) -> Found {
        var found = property
        switch rule.kind {
        case .flag: found.integer = UInt32(try cursor.uint8(bytes, "a property"))
        case .uint16, .positive16: found.integer = UInt32(try cursor.uint16(bytes, "a property"))
        case .uint32, .positive32: found.integer = try cursor.uint32(bytes, "a property")
        case .positiveVariable: found.integer = UInt32(try cursor.variable(bytes, "a property"))
        case .string: found.first = try cursor.text(bytes, "a property").range
        case .topicName:
            let text = try cursor.text(bytes, "a property")
            if text.hasWildcard { throw .protocolError("the response topic has a wildcard", "MQTT-3.3.2-14") }
            if text.range.isEmpty {
                throw MQTTProtocolError(.topicNameInvalid, "the response topic is empty", clause: "MQTT-4.7.3-1")
            }
            found.first = text.range
        case .binary: found.first = try cursor.binary(bytes, "a property")
        case .pair:
            found.first = try cursor.text(bytes, "the name of a user property").range
            found.second = try cursor.text(bytes, "the value of a user property").range
        }
        if let allowed = rule.integers, !allowed.contains(found.integer) {
            throw MQTTProtocolError(
                found.identifier == .topicAlias ? .topicAliasInvalid : .protocolError,
                "\(found.identifier) is \(found.integer), it has to be in \(allowed)",
                clause: found.identifier == .topicAlias ? "MQTT-3.3.2-8" : "MQTT 2.2.2.2")
        }
        return found
    }
}

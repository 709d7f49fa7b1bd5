import MessagingWire

/// The specification's rules for one property: its type, and which packets may carry it how often.
struct MQTTPropertyRule {
    /// The type of the value, with its range where there is one.
    enum Kind {
        /// A byte that is 0 or 1.
        case flag
        case uint16
        /// A Two Byte Integer above zero.
        case positive16
        case uint32
        /// A Four Byte Integer above zero.
        case positive32
        /// A Variable Byte Integer above zero.
        case positiveVariable
        case string
        /// A string of at least one character, without wildcards.
        case topicName
        case binary
        case pair

        /// The types of values that no packet can carry, in the order of their numbers.
        static let invalid: [Kind] = [.uint32, .string, .binary, .pair]
    }

    /// The packets that have properties, and the will, whose properties are its own.
    struct Carriers: OptionSet {
        let rawValue: UInt16

        static let will = Carriers(rawValue: 1)
        static let connect = Carriers(.connect)
        static let connack = Carriers(.connack)
        static let publish = Carriers(.publish)
        static let subscribe = Carriers(.subscribe)
        static let disconnect = Carriers(.disconnect)
        static let auth = Carriers(.auth)
        static let answers: Carriers = [
            .connack, .disconnect, .auth, Carriers(.puback), Carriers(.pubrec), Carriers(.pubrel), Carriers(.pubcomp),
            Carriers(.suback), Carriers(.unsuback),
        ]
        static let all: Carriers = [.will, .connect, .publish, .subscribe, Carriers(.unsubscribe), .answers]

        init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        init(_ type: MQTTPacketType) {
            rawValue = 1 << UInt16(type.rawValue)
        }
    }

    let kind: Kind
    let carriers: Carriers
    /// The packets that may carry it more than once.
    let repeatable: Carriers

    private init(_ kind: Kind, _ carriers: Carriers, repeatable: Carriers = []) {
        self.kind = kind
        self.carriers = carriers
        self.repeatable = repeatable
    }

    /// The table of section 2.2.2.2.
    static func rule(for identifier: MQTTPropertyIdentifier) -> MQTTPropertyRule {
        switch identifier {
        case .payloadFormatIndicator: .init(.flag, [.publish, .will])
        case .messageExpiryInterval: .init(.uint32, [.publish, .will])
        case .contentType: .init(.string, [.publish, .will])
        case .responseTopic: .init(.topicName, [.publish, .will])
        case .correlationData: .init(.binary, [.publish, .will])
        case .subscriptionIdentifier: .init(.positiveVariable, [.publish, .subscribe], repeatable: .publish)
        case .sessionExpiryInterval: .init(.uint32, [.connect, .connack, .disconnect])
        case .assignedClientIdentifier: .init(.string, .connack)
        case .serverKeepAlive: .init(.uint16, .connack)
        case .authenticationMethod: .init(.string, [.connect, .connack, .auth])
        case .authenticationData: .init(.binary, [.connect, .connack, .auth])
        case .requestProblemInformation: .init(.flag, .connect)
        case .willDelayInterval: .init(.uint32, .will)
        case .requestResponseInformation: .init(.flag, .connect)
        case .responseInformation: .init(.string, .connack)
        case .serverReference: .init(.string, [.connack, .disconnect])
        case .reasonString: .init(.string, .answers)
        case .receiveMaximum: .init(.positive16, [.connect, .connack])
        case .topicAliasMaximum: .init(.uint16, [.connect, .connack])
        case .topicAlias: .init(.positive16, .publish)
        case .maximumQoS: .init(.flag, .connack)
        case .retainAvailable: .init(.flag, .connack)
        case .userProperty: .init(.pair, .all, repeatable: .all)
        case .maximumPacketSize: .init(.positive32, [.connect, .connack])
        case .wildcardSubscriptionAvailable: .init(.flag, .connack)
        case .subscriptionIdentifierAvailable: .init(.flag, .connack)
        case .sharedSubscriptionAvailable: .init(.flag, .connack)
        }
    }

    /// Checks a property and counts the bytes that its value takes.
    func encodedCount(of property: MQTTProperty) throws(MQTTEncodingError) -> Int {
        let identifier = property.identifier
        switch (kind, property.value) {
        case (.flag, .integer(let value)): return try count(1, value, identifier)
        case (.uint16, .integer(let value)), (.positive16, .integer(let value)): return try count(2, value, identifier)
        case (.uint32, .integer(let value)), (.positive32, .integer(let value)): return try count(4, value, identifier)
        case (.positiveVariable, .integer(let value)):
            return try count(VariableByteInteger.byteCount(of: Int(clamping: value)), value, identifier)
        case (.string, .string(let text)): return try PacketBody.encodedCount(of: text, "\(identifier)")
        case (.topicName, .string(let text)):
            let count = try PacketBody.encodedCount(of: text, "\(identifier)")
            guard MQTTTopicName.isValid(text) else {
                throw .init(
                    .invalidTopicName,
                    "The response topic \"\(text)\" is not a topic name. Use 1 to 65,535 bytes without wildcards.")
            }
            return count
        case (.binary, .binary(let bytes)): return try PacketBody.encodedCount(of: bytes, "\(identifier)")
        case (.pair, .pair(let pair)):
            return try PacketBody.encodedCount(of: pair.name, "The name of a user property")
                + PacketBody.encodedCount(of: pair.value, "The value of a user property")
        default: throw .init(.invalidProperty, "The value of \(identifier) has the wrong type.")
        }
    }

    private func count(
        _ count: Int, _ value: UInt32, _ identifier: MQTTPropertyIdentifier
    ) throws(MQTTEncodingError) -> Int {
        if let allowed = integers, !allowed.contains(value) {
            throw .init(.invalidProperty, "\(identifier) is \(value). It must be in \(allowed).")
        }
        return count
    }

    /// Writes a value that ``encodedCount(of:)`` has checked.
    func write(_ value: MQTTProperty.Value, to output: inout OutputSpan<UInt8>) {
        switch value {
        case .integer(let value):
            switch kind {
            case .uint16, .positive16: output.append(uint16: UInt16(truncatingIfNeeded: value))
            case .uint32, .positive32: output.append(uint32: value)
            case .positiveVariable: output.append(variable: Int(value))
            default: output.append(UInt8(truncatingIfNeeded: value))
            }
        case .string(let text): output.append(string: text)
        case .binary(let bytes): output.append(binary: bytes)
        case .pair(let pair):
            output.append(string: pair.name)
            output.append(string: pair.value)
        }
    }

    /// The values that an integer of this kind may have.
    var integers: ClosedRange<UInt32>? {
        switch kind {
        case .flag: 0...1
        case .uint16: 0...0xFFFF
        case .positive16: 1...0xFFFF
        case .uint32: 0...UInt32.max
        case .positive32: 1...UInt32.max
        case .positiveVariable: 1...UInt32(VariableByteInteger.maximum)
        case .string, .topicName, .binary, .pair: nil
        }
    }
}

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
    /// EMQX 3 and 4.0 send a Maximum QoS of 2, which the specification does not allow (5.0 3.2.2.3.4).
    var acceptsMaximumQoS2 = false

    init(_ range: Range<Int>, carrier: MQTTPropertyRule.Carriers) {
        self.carrier = carrier
        cursor = ByteCursor(range)
    }

    /// The next property, or nil at the end.
    mutating func next(_ bytes: RawSpan) throws(MQTTProtocolError) -> Found? {
        if cursor.isAtEnd { return nil }
        let number = try cursor.variable(bytes, "a property identifier")
        guard let identifier = UInt8(exactly: number).flatMap(MQTTPropertyIdentifier.init) else {
            throw .malformed("There is no property with the identifier \(number).", "MQTT 2.2.2.2")
        }
        let rule = MQTTPropertyRule.rule(for: identifier)
        if rule.carriers.isDisjoint(with: carrier) {
            throw .malformed("The packet must not carry the property \(identifier).", "MQTT 2.2.2.2")
        }
        let bit: UInt64 = 1 << UInt64(identifier.rawValue)
        if seen & bit != 0, rule.repeatable.isDisjoint(with: carrier) {
            throw .protocolError("The property \(identifier) appears twice.", "MQTT 2.2.2.2")
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
            if text.hasWildcard { throw .protocolError("The response topic has a wildcard.", "MQTT-3.3.2-14") }
            if text.range.isEmpty {
                throw MQTTProtocolError(.topicNameInvalid, "The response topic is empty.", clause: "MQTT-4.7.3-1")
            }
            found.first = text.range
        case .binary: found.first = try cursor.binary(bytes, "a property")
        case .pair:
            found.first = try cursor.text(bytes, "the name of a user property").range
            found.second = try cursor.text(bytes, "the value of a user property").range
        }
        if let allowed = rule.integers, !allowed.contains(found.integer) {
            if acceptsMaximumQoS2, found.identifier == .maximumQoS, found.integer == 2 { return found }
            throw MQTTProtocolError(
                found.identifier == .topicAlias ? .topicAliasInvalid : .protocolError,
                "The property \(found.identifier) is \(found.integer); it must be in \(allowed).",
                clause: found.identifier == .topicAlias ? "MQTT-3.3.2-8" : "MQTT 2.2.2.2")
        }
        return found
    }
}

import Wire

extension MQTTProperties {
    /// Checks and decodes the properties in `range`, which lies inside `bytes`.
    init(
        decoding bytes: RawSpan, _ range: Range<Int>, carrier: MQTTPropertyRule.Carriers
    ) throws(MQTTProtocolError) {
        self.init()
        var cursor = MQTTPropertyCursor(range, carrier: carrier)
        while let found = try cursor.next(bytes) {
            append(MQTTProperty(found.identifier, Self.value(found, bytes)))
        }
    }

    private static func value(_ found: MQTTPropertyCursor.Found, _ bytes: RawSpan) -> MQTTProperty.Value {
        switch found.kind {
        case .flag, .uint16, .positive16, .uint32, .positive32, .positiveVariable: .integer(found.integer)
        case .string, .topicName: .string(String(checked: bytes, found.first))
        case .binary: .binary(bytes.bytes(in: found.first))
        case .pair: .pair(.init(String(checked: bytes, found.first), String(checked: bytes, found.second)))
        }
    }
}

extension MQTTProperties {
    /// Checks all properties and counts the bytes that they take, without their length.
    func encodedCount(in carrier: MQTTPropertyRule.Carriers) throws(MQTTEncodingError) -> Int {
        var total = 0
        var seen: UInt64 = 0
        for property in list {
            let identifier = property.identifier
            let rule = MQTTPropertyRule.rule(for: identifier)
            if rule.carriers.isDisjoint(with: carrier) {
                throw .init(.invalidProperty, "\(identifier) does not belong into this packet")
            }
            let bit: UInt64 = 1 << UInt64(identifier.rawValue)
            if seen & bit != 0, rule.repeatable.isDisjoint(with: carrier) {
                throw .init(.invalidProperty, "\(identifier) is there twice")
            }
            seen |= bit
            total += try 1 + property.encodedCount(rule)
        }
        guard total <= VariableByteInteger.maximum else {
            throw .init(.packetTooLarge, "properties of \(total) bytes, the format ends at 268,435,455")
        }
        return total
    }

    /// The bytes of the properties in PUBLISH, without their length; none if they do not belong there.
    package var publishBytes: [UInt8] {
        guard !isEmpty, let count = try? encodedCount(in: .publish) else { return [] }
        var bytes: [UInt8] = []
        bytes.append(addingCapacity: count) { output in write(to: &output) }
        return bytes
    }

    /// Writes all properties, which ``encodedCount(in:)`` has checked, without their length.
    func write(to output: inout OutputSpan<UInt8>) {
        for property in list {
            output.append(property.identifier.rawValue)
            property.writeValue(to: &output)
        }
    }
}

extension MQTTProperty {
    fileprivate func encodedCount(_ rule: MQTTPropertyRule) throws(MQTTEncodingError) -> Int {
        switch (rule.kind, value) {
        case (.flag, .integer(let value)): return try count(1, value, rule)
        case (.uint16, .integer(let value)), (.positive16, .integer(let value)): return try count(2, value, rule)
        case (.uint32, .integer(let value)), (.positive32, .integer(let value)): return try count(4, value, rule)
        case (.positiveVariable, .integer(let value)):
            return try count(VariableByteInteger.byteCount(of: Int(value)), value, rule)
        case (.string, .string(let text)): return try text.encodedCount("\(identifier)")
        case (.topicName, .string(let text)):
            let count = try text.encodedCount("\(identifier)")
            guard MQTTTopicName.isValid(text) else {
                throw .init(.invalidTopicName, "the response topic \"\(text)\" is not a topic name")
            }
            return count
        case (.binary, .binary(let bytes)): return try bytes.encodedCount("\(identifier)")
        case (.pair, .pair(let pair)):
            return try pair.name.encodedCount("the name of a user property")
                + pair.value.encodedCount("the value of a user property")
        default: throw .init(.invalidProperty, "\(identifier) has a value of another type")
        }
    }

    private func count(_ count: Int, _ value: UInt32, _ rule: MQTTPropertyRule) throws(MQTTEncodingError) -> Int {
        if let allowed = rule.integers, !allowed.contains(value) {
            throw .init(.invalidProperty, "\(identifier) is \(value), it has to be in \(allowed)")
        }
        return count
    }

    fileprivate func writeValue(to output: inout OutputSpan<UInt8>) {
        switch value {
        case .integer(let value):
            switch MQTTPropertyRule.rule(for: identifier).kind {
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
}

extension String {
    /// The bytes of the string on the wire with its length, checked for what the format cannot say.
    func encodedCount(_ field: @autoclosure () -> String) throws(MQTTEncodingError) -> Int {
        let count = utf8.count
        guard count <= 65_535 else {
            throw .init(.valueTooLong, "\(field()) is \(count) bytes long, the limit is 65,535")
        }
        let scan = withUTF8Span { TextScan.scan($0, 0..<$0.byteCount) }
        if scan.contains(.null) { throw .init(.nullCharacter, "\(field()) has a U+0000") }
        return 2 + count
    }
}

extension Array where Element == UInt8 {
    /// The bytes of the value on the wire with its length.
    func encodedCount(_ field: @autoclosure () -> String) throws(MQTTEncodingError) -> Int {
        guard count <= 65_535 else {
            throw .init(.valueTooLong, "\(field()) is \(count) bytes long, the limit is 65,535")
        }
        return 2 + count
    }
}

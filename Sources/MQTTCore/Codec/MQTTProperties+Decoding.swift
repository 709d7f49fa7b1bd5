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

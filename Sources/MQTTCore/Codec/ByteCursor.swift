import MessagingWire

/// A position in the bytes of a packet that never leaves them.
///
/// The bytes themselves are handed to every call; the cursor holds two integers with `offset <= end`.
struct ByteCursor {
    private(set) var offset: Int
    let end: Int

    /// A cursor over a range that lies inside the bytes it will be used with.
    init(_ range: Range<Int>) {
        offset = range.lowerBound
        end = range.upperBound
    }

    var remaining: Int { end - offset }
    var isAtEnd: Bool { offset == end }
    var rest: Range<Int> { offset..<end }

    @inline(__always)
    mutating func uint8(_ bytes: RawSpan, _ field: StaticString) throws(MQTTProtocolError) -> UInt8 {
        try take(1, field)
        return bytes.byte(at: offset - 1)
    }

    @inline(__always)
    mutating func uint16(_ bytes: RawSpan, _ field: StaticString) throws(MQTTProtocolError) -> UInt16 {
        try take(2, field)
        return bytes.bigEndian(UInt16.self, at: offset - 2)
    }

    mutating func uint32(_ bytes: RawSpan, _ field: StaticString) throws(MQTTProtocolError) -> UInt32 {
        try take(4, field)
        return bytes.bigEndian(UInt32.self, at: offset - 4)
    }

    @inline(__always)
    mutating func variable(_ bytes: RawSpan, _ field: StaticString) throws(MQTTProtocolError) -> Int {
        switch VariableByteInteger.parse(bytes, at: offset, end: end) {
        case .value(let value, let byteCount):
            offset += byteCount
            return value
        case .incomplete: throw Self.truncated(field)
        case .tooLong: throw .malformed("A variable byte integer has more than four bytes: \(field).", "MQTT 1.5.5")
        case .notMinimal:
            throw .malformed("A variable byte integer is longer than necessary: \(field).", "MQTT-1.5.5-1")
        }
    }

    /// The bytes of a value that its length precedes.
    @inline(__always)
    mutating func binary(_ bytes: RawSpan, _ field: StaticString) throws(MQTTProtocolError) -> Range<Int> {
        let count = Int(try uint16(bytes, field))
        try take(count, field)
        return (offset - count)..<offset
    }

    /// The bytes of a string, well-formed and without U+0000, and whether there is `+` or `#` among them.
    mutating func text(
        _ bytes: RawSpan, _ field: StaticString
    ) throws(MQTTProtocolError) -> (range: Range<Int>, hasWildcard: Bool) {
        let range = try binary(bytes, field)
        let scan = TextScan.scan(bytes, range)
        if scan.contains(.illFormed) {
            throw .malformed("A string is not well-formed UTF-8: \(field).", "MQTT-1.5.4-1")
        }
        if scan.contains(.null) { throw .malformed("A string contains U+0000: \(field).", "MQTT-1.5.4-2") }
        return (range, scan.contains(.wildcard))
    }

    mutating func string(_ bytes: RawSpan, _ field: StaticString) throws(MQTTProtocolError) -> String {
        String(checked: bytes, try text(bytes, field).range)
    }

    /// A packet identifier, which is never zero [MQTT-2.2.1-3].
    @inline(__always)
    mutating func packetID(_ bytes: RawSpan) throws(MQTTProtocolError) -> UInt16 {
        let packetID = try uint16(bytes, "the packet identifier")
        if packetID == 0 { throw .protocolError("The packet identifier is 0.", "MQTT-2.2.1-3") }
        return packetID
    }

    /// The bytes of the properties that their length precedes; they are not checked.
    @inline(__always)
    mutating func propertyRange(_ bytes: RawSpan) throws(MQTTProtocolError) -> Range<Int> {
        let count = try variable(bytes, "the property length")
        try take(count, "the properties")
        return (offset - count)..<offset
    }

    /// The properties that their length precedes, or none before 5.0.
    mutating func properties(
        _ bytes: RawSpan, of carrier: MQTTPropertyRule.Carriers, version: MQTTVersion, from sender: MQTTRole? = nil
    ) throws(MQTTProtocolError) -> MQTTProperties {
        guard version.hasProperties else { return [] }
        return try MQTTProperties(decoding: bytes, propertyRange(bytes), carrier: carrier, from: sender)
    }

    /// The end of the packet has to be here.
    func finish() throws(MQTTProtocolError) {
        if !isAtEnd { throw .malformed("The packet has \(remaining) bytes behind its last field.", "MQTT 2.1.4") }
    }

    @inline(__always)
    private mutating func take(_ count: Int, _ field: StaticString) throws(MQTTProtocolError) {
        guard count <= remaining else { throw Self.truncated(field) }
        offset += count
    }

    @inline(never)
    private static func truncated(_ field: StaticString) -> MQTTProtocolError {
        .malformed("The packet ends inside \(field).", "MQTT 2.1.4")
    }
}

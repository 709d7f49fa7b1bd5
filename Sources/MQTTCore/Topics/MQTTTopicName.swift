import MessagingWire

/// Topic names: what a message is published to.
public enum MQTTTopicName {
    /// Checks for 1 to 65,535 bytes of well-formed UTF-8 without U+0000 and without wildcards.
    public static func validate(_ bytes: RawSpan) throws(MQTTProtocolError) {
        try validate(bytes, 0..<bytes.byteCount)
    }

    /// Whether a string is a topic name [MQTT-4.7.3-1, MQTT-3.3.2-2].
    public static func isValid(_ topic: String) -> Bool {
        guard (1...65_535).contains(topic.utf8.count) else { return false }
        return topic.withUTF8Span {
            TextScan.isPlainName($0, 0..<$0.byteCount) || TextScan.scan($0, 0..<$0.byteCount).isEmpty
        }
    }

    /// The bytes as a topic name; throws if they are not one.
    @inline(__always)
    static func string(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) -> String {
        let isASCII = (1...65_535).contains(range.count) && TextScan.isPlainName(bytes, range)
        if !isASCII { try judge(bytes, range) }
        return String(checked: bytes, range, isASCII: isASCII)
    }

    static func validate(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        if (1...65_535).contains(range.count), TextScan.isPlainName(bytes, range) { return }
        try judge(bytes, range)
    }

    @inline(never)
    private static func judge(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        let scan = TextScan.scan(bytes, range)
        if scan.isEmpty, (1...65_535).contains(range.count) { return }
        if scan.contains(.illFormed) { throw .malformed("The topic name is not well-formed UTF-8.", "MQTT-1.5.4-1") }
        if scan.contains(.null) { throw .malformed("The topic name contains U+0000.", "MQTT-1.5.4-2") }
        if scan.contains(.wildcard) {
            throw MQTTProtocolError(.topicNameInvalid, "The topic name contains a wildcard.", clause: "MQTT-3.3.2-2")
        }
        throw MQTTProtocolError(
            .topicNameInvalid, "The topic name has \(range.count) bytes; the format allows 1 to 65,535.",
            clause: "MQTT-4.7.3-1")
    }
}

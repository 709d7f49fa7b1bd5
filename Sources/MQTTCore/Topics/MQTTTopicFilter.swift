import Wire

/// Topic filters: what is subscribed to. Everything is compared as UTF-8 bytes [MQTT-4.7.3-4].
public enum MQTTTopicFilter {
    static let slash = UInt8(ascii: "/")
    static let plus = UInt8(ascii: "+")
    static let hash = UInt8(ascii: "#")
    static let dollar = UInt8(ascii: "$")

    /// Checks 1 to 65,535 bytes of well-formed UTF-8 with every wildcard in its place.
    /// - Parameter version: `$share/` means something in 5.0 only, and has rules there [MQTT-4.8.2-1, MQTT-4.8.2-2].
    public static func validate(_ bytes: RawSpan, version: MQTTVersion = .v5_0) throws(MQTTProtocolError) {
        try validate(bytes, 0..<bytes.byteCount, version: version)
    }

    /// Whether a string is a topic filter.
    public static func isValid(_ filter: String, version: MQTTVersion = .v5_0) -> Bool {
        filter.withUTF8Span { bytes in
            (try? validate(bytes, version: version)) != nil
        }
    }

    static func validate(_ bytes: RawSpan, _ range: Range<Int>, version: MQTTVersion) throws(MQTTProtocolError) {
        let scan = TextScan.scan(bytes, range)
        if scan.contains(.illFormed) { throw .malformed("the topic filter is not well-formed UTF-8", "MQTT-1.5.4-1") }
        if scan.contains(.null) { throw .malformed("the topic filter has a U+0000", "MQTT-1.5.4-2") }
        guard (1...65_535).contains(range.count) else {
            throw invalid("the topic filter has \(range.count) bytes, not 1 to 65,535", "MQTT-4.7.3-1")
        }
        if scan.contains(.wildcard) { try validateWildcards(bytes, range) }
        if version.hasProperties, startsWithShare(bytes, range) { try validateShare(bytes, range) }
    }

    private static func validateWildcards(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        for offset in range {
            let byte = bytes.byte(at: offset)
            guard byte == plus || byte == hash else { continue }
            let startsLevel = offset == range.lowerBound || bytes.byte(at: offset - 1) == slash
            let endsFilter = offset + 1 == range.upperBound
            if byte == hash, !startsLevel || !endsFilter {
                throw invalid("# has to be the whole last level of the filter", "MQTT-4.7.1-1")
            }
            if !startsLevel || !(endsFilter || bytes.byte(at: offset + 1) == slash) {
                throw invalid("+ has to be a whole level of the filter", "MQTT-4.7.1-2")
            }
        }
    }

    private static func validateShare(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        let name = (range.lowerBound + 7)..<range.upperBound
        guard let end = name.first(where: { bytes.byte(at: $0) == slash }), end > name.lowerBound else {
            throw invalid("$share/ needs a share name and a filter behind it", "MQTT-4.8.2-1")
        }
        if TextScan.scan(bytes, name.lowerBound..<end).contains(.wildcard) {
            throw invalid("the share name has a wildcard", "MQTT-4.8.2-2")
        }
        if end + 1 == range.upperBound { throw invalid("no filter behind the share name", "MQTT-4.8.2-2") }
    }

    /// Whether the bytes start with `$share/`.
    static func startsWithShare(_ bytes: RawSpan, _ range: Range<Int>) -> Bool {
        guard range.count >= 7, bytes.byte(at: range.lowerBound) == dollar else { return false }
        let share: StaticString = "$share/"
        for index in 0..<7 {
            // Safe: the literal is seven bytes long.
            let expected = unsafe share.utf8Start[index]
            if bytes.byte(at: range.lowerBound + index) != expected { return false }
        }
        return true
    }

    private static func invalid(_ message: String, _ clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.topicFilterInvalid, message, clause: clause)
    }
}

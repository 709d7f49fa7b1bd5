// Bodies to come.
extension MQTTPublishView {
    /// Reads the PUBLISH whose fixed header stands at `frameStart`; the whole packet must be in `bytes`.
    public static func parse(
        _ header: MQTTFrameHeader, in bytes: RawSpan, at frameStart: Int, version: MQTTVersion
    ) throws(MQTTViolation) -> MQTTPublishView { fatalError() }
    /// The topic name, checked: well-formed UTF-8 without U+0000 and wildcards. Empty only with an alias.
    public func topic(in bytes: RawSpan) throws(MQTTViolation) -> String { fatalError() }
    /// Checks all properties and tells the ones that matter for dispatching.
    public func scanProperties(in bytes: RawSpan) throws(MQTTViolation) -> MQTTPublishScan { fatalError() }
    /// Checks and decodes all properties.
    public func properties(in bytes: RawSpan) throws(MQTTViolation) -> MQTTProperties { fatalError() }
}
extension MQTTAcknowledgementView {
    public static func parse(
        _ header: MQTTFrameHeader, in bytes: RawSpan, at frameStart: Int, version: MQTTVersion
    ) throws(MQTTViolation) -> MQTTAcknowledgementView { fatalError() }
    public func properties(in bytes: RawSpan, of type: MQTTPacketType) throws(MQTTViolation) -> MQTTProperties {
        fatalError()
    }
}
extension MQTTPacket {
    /// Decodes a packet from its body, the bytes after the fixed header. CONNECT says its version itself.
    public static func decode(
        _ header: MQTTFrameHeader, body: RawSpan, version: MQTTVersion
    ) throws(MQTTViolation) -> MQTTPacket { fatalError() }
    /// Appends the packet; on an error nothing is appended.
    public func encode(
        into output: inout [UInt8], version: MQTTVersion, maximumPacketSize: Int = MQTTFrameHeader.largestPacket
    ) throws(MQTTEncodingError) { fatalError() }
}
extension MQTTPacket.Publish {
    /// Appends a PUBLISH straight from its parts; returns its size. On an error nothing is appended.
    /// - Parameter topicAlias: zero for none; with one the topic may be empty.
    @discardableResult
    public static func encode(
        into output: inout [UInt8], version: MQTTVersion, topic: String, payload: RawSpan, qos: QoS = .atMostOnce,
        retain: Bool = false, duplicate: Bool = false, packetID: UInt16 = 0,
        properties: MQTTProperties = [], topicAlias: UInt16 = 0,
        maximumPacketSize: Int = MQTTFrameHeader.largestPacket
    ) throws(MQTTEncodingError) -> Int { fatalError() }
}
extension MQTTPacket.Acknowledgement {
    /// Appends a PUBACK, PUBREC, PUBREL or PUBCOMP without properties, in its shortest form.
    public static func encode(
        _ type: MQTTPacketType, packetID: UInt16, reasonCode: MQTTReasonCode = .success,
        into output: inout [UInt8], version: MQTTVersion
    ) { fatalError() }
}
extension MQTTPacket {
    /// Appends a PINGREQ, two bytes.
    public static func encodePingreq(into output: inout [UInt8]) {}
    /// Appends a PINGRESP, two bytes.
    public static func encodePingresp(into output: inout [UInt8]) {}
}
/// An incremental decoder: bytes in, packets out, bounded by its maximum packet size.
public struct MQTTDecoder: Sendable {
    /// The version that packets are read as; a CONNECT that comes by sets it.
    public var version: MQTTVersion
    public let maximumPacketSize: Int
    public init(version: MQTTVersion = .v5_0, maximumPacketSize: Int = 1 << 20) {
        self.version = version
        self.maximumPacketSize = maximumPacketSize
    }
    public mutating func push(_ bytes: RawSpan) {}
    public mutating func next() throws(MQTTViolation) -> MQTTPacket? { nil }
}

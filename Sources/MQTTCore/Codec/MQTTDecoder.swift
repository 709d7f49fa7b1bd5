import MessagingWire

/// An incremental decoder: bytes in as they come, packets out.
///
/// After each ``push(_:)-(RawSpan)`` call ``next()`` until it returns nil; then the decoder holds less than one packet,
/// which is not larger than ``maximumPacketSize``. Memory is allocated for bytes that arrived, never for announced ones.
public struct MQTTDecoder: Sendable {
    /// The version that packets are decoded with; a decoded CONNECT sets it.
    public private(set) var version: MQTTVersion
    /// The largest packet to accept, in bytes with its header.
    public let maximumPacketSize: Int
    /// The side that the packets come from; nil accepts what either side may send.
    ///
    /// From a server the decoder also accepts what servers send against the specification, as long as its meaning is clear:
    ///
    /// - PUBLISH: DUP at QoS 0.
    /// - CONNACK that refuses: reserved flags, Session Present, return codes that 3.1 and 3.1.1 reserve, no properties in 5.0,
    ///   and the return code 1 of an older server in answer to a CONNECT of 5.0.
    /// - CONNACK: a Maximum QoS of 2.
    /// - SUBACK: no codes; before 5.0 codes above 0x80, which are reserved there.
    /// - UNSUBACK: before 5.0 with codes, which are ignored; in 5.0 without.
    /// - DISCONNECT of 3.1 and 3.1.1, which have none of servers: alone, or with a code and whatever follows it.
    /// - Before 5.0: a Remaining Length in more bytes than necessary.
    ///
    /// Not all such packets can be encoded again.
    public let sender: MQTTRole?

    private var buffer: [UInt8] = []
    private var start = 0
    private var violation: MQTTProtocolError?

    public init(version: MQTTVersion = .v5_0, maximumPacketSize: Int = 1 << 20, from sender: MQTTRole? = nil) {
        self.version = version
        self.maximumPacketSize = maximumPacketSize
        self.sender = sender
    }

    /// The number of bytes that wait for the rest of their packet.
    public var bufferedCount: Int { buffer.count - start }

    /// Adds received bytes.
    public mutating func push(_ bytes: RawSpan) {
        if violation != nil { return }
        compact()
        buffer.append(addingCapacity: bytes.byteCount) { $0.append(copying: bytes) }
    }

    /// Adds received bytes.
    public mutating func push(_ bytes: [UInt8]) {
        unsafe push(bytes.span.bytes)
    }

    /// The next complete packet, or nil if more bytes are needed. After a violation every call throws it again.
    public mutating func next() throws(MQTTProtocolError) -> MQTTPacket? {
        if let violation { throw violation }
        do throws(MQTTProtocolError) {
            guard let (packet, end) = try firstPacket() else { return nil }
            start = end
            if case .connect(let connect) = packet { version = connect.version }
            return packet
        } catch {
            violation = error
            buffer = []
            start = 0
            throw error
        }
    }

    /// The packet at `start` and where it ends, or nil if it is incomplete.
    private func firstPacket() throws(MQTTProtocolError) -> (MQTTPacket, end: Int)? {
        let bytes = unsafe buffer.span.bytes
        guard
            let header = try MQTTFrameHeader.parse(
                bytes, at: start, maximumPacketSize: maximumPacketSize, version: version, from: sender),
            header.packetCount <= bytes.byteCount - start
        else { return nil }
        let body = header.bodyRange(in: bytes, at: start)
        let packet = try MQTTPacket.decode(header, body: bytes.extracting(body), version: version, from: sender)
        return (packet, body.upperBound)
    }

    /// Discards what was decoded, and moves the rest once it is the smaller part.
    private mutating func compact() {
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            start = 0
        } else if start > buffer.count / 2 {
            buffer.removeSubrange(..<start)
            start = 0
        }
    }
}

/// A TCP segment in a packet of IPv4, made for a capture file: what a network would have carried.
struct Segment {
    struct Flags: OptionSet {
        let rawValue: UInt8
        static let finish = Flags(rawValue: 0x01)
        static let synchronize = Flags(rawValue: 0x02)
        static let push = Flags(rawValue: 0x08)
        static let acknowledge = Flags(rawValue: 0x10)
    }

    var source: Endpoint
    var target: Endpoint
    var sequence: UInt32
    var acknowledgement: UInt32
    var flags: Flags
    var identification: UInt16
    var payload: ArraySlice<UInt8> = []

    struct Endpoint {
        var address: [UInt8]
        var port: UInt16
    }

    /// What a segment carries at most, on Ethernet.
    static let largestPayload = 1460

    private static let ipHeaderLength = 20
    private static let tcpProtocol: UInt8 = 6
    private static let window: UInt16 = 65_535

    /// The packet, from the header of IPv4 (RFC 791) on, with both checksums.
    var packet: [UInt8] {
        var tcp = header
        let length = tcp.count + payload.count
        // The checksum covers the addresses, too (RFC 9293, section 3.1).
        let pseudoHeader = source.address + target.address + [0, Self.tcpProtocol] + Self.big(UInt16(length))
        tcp.replaceSubrange(16..<18, with: Self.big(Self.checksum([pseudoHeader, tcp, Array(payload)])))
        var ip: [UInt8] = [0x45, 0] + Self.big(UInt16(Self.ipHeaderLength + length)) + Self.big(identification)
        // Not to be fragmented; 64 hops; the checksum comes below.
        ip += [0x40, 0, 64, Self.tcpProtocol, 0, 0] + source.address + target.address
        ip.replaceSubrange(10..<12, with: Self.big(Self.checksum([ip])))
        return ip + tcp + payload
    }

    /// The header of TCP (RFC 9293, section 3.1) with a checksum of zero.
    private var header: [UInt8] {
        // The SYN of either side gives the largest segment that it accepts.
        let options = flags.contains(.synchronize) ? [2, 4] + Self.big(UInt16(Self.largestPayload)) : []
        let words = UInt8((20 + options.count) / 4)
        return Self.big(source.port) + Self.big(target.port) + Self.big(sequence) + Self.big(acknowledgement)
            + [words << 4, flags.rawValue] + Self.big(Self.window) + [0, 0, 0, 0] + options
    }

    /// The Internet checksum (RFC 1071) of all parts but the last, which are of even length, and the last.
    private static func checksum(_ parts: [[UInt8]]) -> UInt16 {
        var sum: UInt64 = 0
        for part in parts {
            for (index, byte) in part.enumerated() { sum += UInt64(byte) << (index.isMultiple(of: 2) ? 8 : 0) }
        }
        while sum >> 16 != 0 { sum = (sum & 0xFFFF) + (sum >> 16) }
        return ~UInt16(truncatingIfNeeded: sum)
    }

    private static func big(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
        stride(from: value.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}

/// Writes a capture file in the format pcapng, version 1.0 (draft-ietf-opsawg-pcapng): one section with one interface, in
/// little-endian bytes.
struct CaptureFile {
    private(set) var bytes: [UInt8] = []

    private enum BlockType {
        static let sectionHeader: UInt32 = 0x0A0D_0D0A
        static let interfaceDescription: UInt32 = 1
        static let enhancedPacket: UInt32 = 6
    }

    private enum Option {
        static let end: UInt16 = 0
        static let comment: UInt16 = 1
        static let interfaceName: UInt16 = 2
        static let interfaceDescription: UInt16 = 3
        static let userApplication: UInt16 = 4
        static let packetFlags: UInt16 = 2
    }

    /// LINKTYPE_RAW: packets begin with the header of IPv4 or IPv6.
    private static let rawInternetProtocol: UInt16 = 101
    /// The length of a section that is not known in advance.
    private static let unknownLength = UInt64.max
    /// Longer comments are cut.
    private static let longestComment = 1024

    init(application: String, interface: String, description: String) {
        block(BlockType.sectionHeader) { body in
            body.little(UInt32(0x1A2B_3C4D))
            body.little(UInt16(1))
            body.little(UInt16(0))
            body.little(Self.unknownLength)
            body.option(Option.userApplication, Array(application.utf8))
            body.option(Option.end, [])
        }
        block(BlockType.interfaceDescription) { body in
            body.little(Self.rawInternetProtocol)
            body.little(UInt16(0))
            // No limit to what is captured of a packet.
            body.little(UInt32(0))
            body.option(Option.interfaceName, Array(interface.utf8))
            body.option(Option.interfaceDescription, Array(description.utf8))
            body.option(Option.end, [])
        }
    }

    /// - Parameters:
    ///   - packet: From the header of IPv4 on.
    ///   - time: Microseconds since 1970, UTC, which is the format's unit unless an interface says otherwise.
    mutating func add(_ packet: [UInt8], time: Int64, direction: FrameDirection, comment: String?) {
        block(BlockType.enhancedPacket) { body in
            let time = UInt64(max(0, time))
            body.little(UInt32(0))
            body.little(UInt32(truncatingIfNeeded: time >> 32))
            body.little(UInt32(truncatingIfNeeded: time))
            body.little(UInt32(packet.count))
            body.little(UInt32(packet.count))
            body.padded(packet)
            if let comment { body.option(Option.comment, Array(comment.utf8.prefix(Self.longestComment))) }
            body.option(Option.packetFlags, direction == .received ? [1, 0, 0, 0] : [2, 0, 0, 0])
            body.option(Option.end, [])
        }
    }

    /// A block's length stands on both sides of it, so that a file can be read backwards.
    private mutating func block(_ type: UInt32, _ write: (inout [UInt8]) -> Void) {
        let start = bytes.count
        bytes.little(type)
        bytes.little(UInt32(0))
        write(&bytes)
        let length = UInt32(bytes.count - start + 4)
        bytes.little(length)
        for index in 0..<4 { bytes[start + 4 + index] = UInt8(truncatingIfNeeded: length >> (8 * index)) }
    }
}

extension [UInt8] {
    fileprivate mutating func little(_ value: some FixedWidthInteger) {
        for shift in stride(from: 0, to: value.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    /// Blocks and options consist of whole words of four bytes.
    fileprivate mutating func padded(_ value: [UInt8]) {
        self += value
        self += repeatElement(0, count: -value.count & 3)
    }

    fileprivate mutating func option(_ code: UInt16, _ value: [UInt8]) {
        little(code)
        little(UInt16(value.count))
        padded(value)
    }
}

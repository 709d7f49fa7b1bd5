/// The checksum of stored records: CRC-32C (Castagnoli), which finds every error burst of up to 32 bits.
public enum CRC32C {
    /// Polynomial 0x1EDC6F41, reflected: what a byte becomes behind which 0, 1, 2 or 3 zero bytes follow, 256 entries
    /// each.
    private static let table: [UInt32] = {
        var table = (0..<256).map { byte in (0..<8).reduce(UInt32(byte)) { value, _ in step(value) } }
        for index in 256..<1024 { table.append(table[index - 256] >> 8 ^ table[Int(table[index - 256] & 0xFF)]) }
        return table
    }()

    private static func step(_ value: UInt32) -> UInt32 { value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }

    /// The checksum of some bytes; that of no bytes is 0.
    public static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var value: UInt32 = 0xFFFF_FFFF
        let table = table
        var index = bytes.startIndex
        // Four bytes at a time, whose tables do not wait for one another.
        while bytes.endIndex - index >= 4 {
            value ^= UInt32(bytes[index]) | UInt32(bytes[index + 1]) << 8
            value ^= UInt32(bytes[index + 2]) << 16 | UInt32(bytes[index + 3]) << 24
            value =
                table[768 + Int(value & 0xFF)] ^ table[512 + Int(value >> 8 & 0xFF)]
                ^ table[256 + Int(value >> 16 & 0xFF)] ^ table[Int(value >> 24)]
            index += 4
        }
        for byte in bytes[index...] { value = value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] }
        return ~value
    }
}

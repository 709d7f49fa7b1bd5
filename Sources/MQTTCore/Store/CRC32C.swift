/// The checksum of stored records: CRC-32C (Castagnoli), which finds every error burst of up to 32 bits.
public enum CRC32C {
    /// Polynomial 0x1EDC6F41, reflected.
    private static let table: [UInt32] = (0..<256).map { byte in
        var value = UInt32(byte)
        for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }
        return value
    }

    /// The checksum of some bytes; that of no bytes is 0.
    public static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var value: UInt32 = 0xFFFF_FFFF
        for byte in bytes { value = value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] }
        return ~value
    }
}

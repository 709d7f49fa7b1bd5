import Wire

/// The data types of MQTT 1.5, written one after the other; the caller reserved the room.
extension OutputSpan where Element == UInt8 {
    /// A Variable Byte Integer in its shortest form; `value` is not above `VariableByteInteger.maximum` [MQTT 1.5.5].
    @inline(__always)
    mutating func append(variable value: Int) {
        var rest = value
        while rest > 0x7F {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    /// A UTF-8 Encoded String of at most 65,535 bytes [MQTT 1.5.4].
    mutating func append(string: String) {
        append(uint16: UInt16(truncatingIfNeeded: string.utf8.count))
        append(utf8: string)
    }

    /// Binary Data of at most 65,535 bytes [MQTT 1.5.6].
    mutating func append(binary: [UInt8]) {
        append(uint16: UInt16(truncatingIfNeeded: binary.count))
        append(copying: unsafe binary.span.bytes)
    }
}

import MessagingWire

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

/// Variable Byte Integers: seven bits to a byte, the least significant first; the top bit means that more follow [MQTT-1.5.5-1].
enum VariableByteInteger {
    /// The largest value that four bytes hold.
    static let maximum = 268_435_455

    /// The result of reading an integer.
    enum Parsed {
        case value(Int, byteCount: Int)
        /// The bytes end inside the integer.
        case incomplete
        /// More than four bytes.
        case tooLong
        /// A shorter encoding of the same value exists.
        case notMinimal(Int, byteCount: Int)
    }

    /// Reads the integer at `offset`, not beyond `end`, which lies inside `bytes`.
    @inline(__always)
    static func parse(_ bytes: RawSpan, at offset: Int, end: Int) -> Parsed {
        guard offset < end else { return .incomplete }
        let first = bytes.byte(at: offset)
        if first < 0x80 { return .value(Int(first), byteCount: 1) }
        return parseLong(bytes, at: offset, end: end)
    }

    private static func parseLong(_ bytes: RawSpan, at offset: Int, end: Int) -> Parsed {
        var value = 0
        for index in 0..<4 {
            guard index < end - offset else { return .incomplete }
            let byte = bytes.byte(at: offset + index)
            value |= Int(byte & 0x7F) << (7 * index)
            if byte < 0x80 {
                return byte == 0 && index > 0
                    ? .notMinimal(value, byteCount: index + 1) : .value(value, byteCount: index + 1)
            }
        }
        return .tooLong
    }

    /// The number of bytes that a value takes; the value must not be above ``maximum``.
    @inline(__always)
    static func byteCount(of value: Int) -> Int {
        value < 1 << 7 ? 1 : value < 1 << 14 ? 2 : value < 1 << 21 ? 3 : 4
    }
}

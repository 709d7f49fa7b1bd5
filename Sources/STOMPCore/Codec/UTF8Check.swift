extension RawSpan {
    /// Whether `start..<end` is well-formed UTF-8 (Unicode 3.9, table 3-7), without building a string.
    func isUTF8(from start: Int, to end: Int) -> Bool {
        var offset = start
        while offset < end {
            let lead = octet(offset)
            offset &+= 1
            if lead < 0x80 { continue }
            // The range of the second octet shuts out overlong forms, surrogates and what is above U+10FFFF.
            let more: Int
            var low: UInt8 = 0x80
            var high: UInt8 = 0xBF
            switch lead {
            case 0xC2...0xDF: more = 1
            case 0xE0:
                more = 2
                low = 0xA0
            case 0xED:
                more = 2
                high = 0x9F
            case 0xE1...0xEF: more = 2
            case 0xF0:
                more = 3
                low = 0x90
            case 0xF1...0xF3: more = 3
            case 0xF4:
                more = 3
                high = 0x8F
            default: return false
            }
            guard end &- offset >= more else { return false }
            guard octet(offset) >= low, octet(offset) <= high else { return false }
            for next in 1..<3 where next < more {
                guard octet(offset &+ next) & 0xC0 == 0x80 else { return false }
            }
            offset &+= more
        }
        return true
    }
}

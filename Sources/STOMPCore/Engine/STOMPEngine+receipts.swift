// The hot path of sending with receipts: runs of RECEIPT frames as most brokers write them.

import Wire

extension STOMPEngine {
    /// Reads RECEIPT frames that hold a number and nothing else, as long as one follows the other, and returns where they
    /// end.
    ///
    /// Everything else (names of the user's own, other headers, CRLF, a body, incomplete frames, the receipt of
    /// DISCONNECT) is left to the general path, which judges it.
    mutating func receivePlainReceipts(_ bytes: RawSpan, from start: Int, into effects: inout STOMPEffects) -> Int {
        guard receipts.pending > 0, !receipts.hasNames else { return start }
        let end = bytes.byteCount
        var base = start
        // The shortest has one digit and ends with two line ends and NUL.
        while end &- base >= Self.receiptHeadCount &+ 4, Self.isReceiptHead(bytes, base) {
            var offset = base &+ Self.receiptHeadCount
            // Nineteen digits fit, and nothing that was ever sent has more.
            let lastDigit = min(end &- 3, offset &+ 19)
            var number: UInt64 = 0
            while offset < lastDigit {
                let digit = bytes.byte(at: offset) &- UInt8(ascii: "0")
                guard digit <= 9 else { break }
                number = number &* 10 &+ UInt64(digit)
                offset &+= 1
            }
            guard offset > base &+ Self.receiptHeadCount, number != disconnectReceipt,
                bytes.byte(at: offset) == UInt8(ascii: "\n"), bytes.byte(at: offset &+ 1) == UInt8(ascii: "\n"),
                bytes.byte(at: offset &+ 2) == 0
            else { break }
            framesReceived &+= 1
            if let token = receipts.take(number) {
                effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .received))
            }
            base = offset &+ 3
            // Some brokers end the line behind each frame.
            let skipped = scanner.lineEnds(in: bytes, from: base)
            lineEndsReceived &+= UInt64(skipped.count)
            base &+= skipped.bytes
        }
        return base
    }

    private static var receiptHeadCount: Int { 19 }

    /// Whether there is "RECEIPT\nreceipt-id:", in three words of which the last two overlap.
    @inline(__always)
    private static func isReceiptHead(_ bytes: RawSpan, _ base: Int) -> Bool {
        bytes.word(at: base) == 0x0A54_5049_4543_4552 && bytes.word(at: base &+ 8) == 0x2D74_7069_6563_6572
            && bytes.word(at: base &+ 11) == 0x3A64_692D_7470_6965
    }
}

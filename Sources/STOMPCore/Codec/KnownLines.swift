import Wire

/// A header that the engine or most programs read.
enum KnownHeader: UInt8 {
    case none, destination, subscription, messageID, contentType, contentLength, receipt, receiptID, transaction

    /// The header whose name is the bytes `start..<end`.
    init(_ bytes: RawSpan, _ start: Int, _ end: Int) {
        self = .none
        switch end - start {
        case 7: if bytes.holds("receipt", at: start) { self = .receipt }
        case 10:
            if bytes.holds("message-id", at: start) {
                self = .messageID
            } else if bytes.holds("receipt-id", at: start) {
                self = .receiptID
            }
        case 11:
            if bytes.holds("destination", at: start) {
                self = .destination
            } else if bytes.holds("transaction", at: start) {
                self = .transaction
            }
        case 12:
            if bytes.holds("subscription", at: start) {
                self = .subscription
            } else if bytes.holds("content-type", at: start) {
                self = .contentType
            }
        case 14: if bytes.holds("content-length", at: start) { self = .contentLength }
        default: break
        }
    }
}

/// Header lines that were found good, by their place in their frame. Most lines of a frame are those of the frame before
/// it, whatever its destination and number are, and comparing a line takes a tenth of the time of scanning it.
///
/// Only lines that are good in every version from 1.1 on are kept: ASCII without escapes and carriage returns. The lines of
/// all connections that share this are compared, so that none of them is trusted for more than its bytes.
struct KnownLines: Sendable {
    /// A line whose bytes were recognised.
    struct Line {
        /// With its line feed.
        let count: UInt8
        /// The bytes in front of the colon.
        let nameCount: UInt8
        let header: KnownHeader
    }

    private static let maximumLines = 16
    private static let maximumBytes = 128

    private var lines: [Line] = []
    /// So many bytes for each line.
    private var bytes: [UInt8] = []

    /// The line of that number, if it is what follows in `frame` at `start`, and ends in front of `end`.
    @inline(__always)
    func line(_ number: Int, in frame: RawSpan, at start: Int, to end: Int) -> Line? {
        guard number < lines.count else { return nil }
        let line = lines[number]
        let count = Int(line.count)
        // UInt8 has no padding, so all bytes are initialised.
        guard end &- start >= count,
            unsafe frame.isEqual(start, count, to: bytes.span.bytes, at: number &* Self.maximumBytes)
        else { return nil }
        return line
    }

    /// Keeps a line in place of the one with that number, unless it is too long.
    mutating func keep(_ number: Int, _ line: RawSpan, nameCount: Int, _ header: KnownHeader) {
        guard line.byteCount <= Self.maximumBytes, number <= lines.count, number < Self.maximumLines else { return }
        if bytes.isEmpty { bytes = [UInt8](repeating: 0, count: Self.maximumLines * Self.maximumBytes) }
        unsafe bytes.withUnsafeMutableBytes { target in
            unsafe line.withUnsafeBytes { source in
                // There is room for the longest line at the place of each.
                unsafe UnsafeMutableRawBufferPointer(rebasing: target[(number * Self.maximumBytes)...]).copyMemory(
                    from: source)
            }
        }
        let kept = Line(
            count: UInt8(line.byteCount), nameCount: UInt8(nameCount), header: header)
        if number == lines.count { lines.append(kept) } else { lines[number] = kept }
    }
}

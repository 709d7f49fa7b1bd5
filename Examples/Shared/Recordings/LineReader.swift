/// Splits a file into lines, a chunk at a time, so that its size does not matter.
///
/// Lines end with LF or CRLF; a byte order mark before the first is dropped.
struct LineReader {
    struct Line {
        /// From 1.
        let number: Int
        /// Of a line that is longer than ``LineReader/limit`` perhaps its beginning only.
        let bytes: ArraySlice<UInt8>
    }

    static let limit = 65_536

    private let file: InputFile
    private var buffer: [UInt8] = []
    private var start = 0
    /// Where the search for the next LF continues: no byte is examined twice.
    private var searched = 0
    private var isAtEnd = false
    private(set) var number = 0

    init(_ file: InputFile) {
        self.file = file
    }

    /// The first bytes of the file, without consuming them.
    mutating func peek(_ count: Int) throws(DeviceFailure) -> ArraySlice<UInt8> {
        while !isAtEnd, buffer.count - start < count {
            try fill()
        }
        return buffer[start...].prefix(count)
    }

    /// All that is left of the file.
    mutating func rest() throws(DeviceFailure) -> [UInt8] {
        while !isAtEnd { try fill() }
        return Array(buffer[start...])
    }

    /// Whether it begins like UTF-16, in which no LF can be found.
    mutating func isUTF16() throws(DeviceFailure) -> Bool { String(utf16: Array(try peek(4))) != nil }

    /// Puts UTF-8 with its byte order mark in the place of UTF-16, for which all of the file is read.
    mutating func decodeUTF16() throws(DeviceFailure) {
        buffer = [0xEF, 0xBB, 0xBF] + Array((String(utf16: try rest()) ?? "").utf8)
        (start, searched) = (0, 0)
    }

    mutating func next() throws(DeviceFailure) -> Line? {
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                return line(upTo: end, next: end + 1)
            }
            if isAtEnd {
                return start == buffer.count ? nil : line(upTo: buffer.count, next: buffer.count)
            }
            if buffer.count - start > Self.limit { shorten() }
            searched = buffer.count
            try fill()
        }
    }

    private mutating func line(upTo end: Int, next: Int) -> Line {
        var bytes = buffer[start..<end]
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        if number == 0, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes = bytes.dropFirst(3) }
        start = next
        searched = next
        number += 1
        return Line(number: number, bytes: bytes)
    }

    /// Bounds the memory for a line whose end is not in the buffer: drops the blanks before it, and all behind the limit but
    /// one byte. That is a byte which is no blank, if there is one, so that the line is found to be too long.
    private mutating func shorten() {
        start = buffer[start...].firstIndex { !CSVRow.isBlank($0) } ?? buffer.count
        guard buffer.count - start > Self.limit else { return }
        let rest = buffer[(start + Self.limit)...]
        if let byte = rest.first(where: { !CSVRow.isBlank($0) }) ?? rest.first {
            buffer.replaceSubrange(rest.indices, with: [byte])
        }
    }

    private mutating func fill() throws(DeviceFailure) {
        buffer.removeFirst(start)
        searched -= start
        start = 0
        isAtEnd = try !file.read(into: &buffer)
    }
}

import Foundation

/// How a GPX file ends.
struct FileEnding {
    /// The number of the line that the last character is on, from 1.
    private(set) var lastLine = 1
    /// The last characters but blanks.
    private var tail: [UInt8] = []
    /// Line feeds at the end, which are no lines of their own.
    private var pendingLines = 0

    /// Whether the root element is not closed at the end.
    var isCutOff: Bool { !tail.suffix(4).elementsEqual("gpx>".utf8) }

    init(of file: InputFile) throws(DeviceFailure) {
        var buffer: [UInt8] = []
        while try file.read(into: &buffer) {
            add(buffer)
            buffer.removeAll(keepingCapacity: true)
        }
    }

    init(of contents: some Sequence<UInt8>) {
        add(contents)
    }

    private mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                pendingLines += 1
            } else if byte > 0x20 {
                lastLine += pendingLines
                pendingLines = 0
                if tail.count >= 64 { tail.removeFirst(32) }
                tail.append(byte)
            }
        }
    }
}

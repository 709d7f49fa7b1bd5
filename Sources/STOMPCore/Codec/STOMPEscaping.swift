import MessagingWire

/// How header names and values are escaped: a matter of the version and of the command (STOMP 1.1 and 1.2
/// "Value Encoding").
public enum STOMPEscaping: UInt8, Sendable, Hashable {
    /// STOMP 1.0, and CONNECT, CONNECTED and STOMP in every version.
    case none
    /// `\n`, `\c` and `\\`.
    case v11
    /// `\r` too.
    case v12

    /// The escaping of frames with this command in this version.
    public init(_ version: STOMPVersion, for command: STOMPCommand) {
        self = command.isHandshake ? .none : STOMPEscaping(version)
    }

    init(_ version: STOMPVersion) {
        switch version {
        case .v10: self = .none
        case .v11: self = .v11
        case .v12: self = .v12
        }
    }

    /// The byte that a backslash and `letter` stand for, or nil when this version does not define it.
    @inline(__always)
    func meaning(of letter: UInt8) -> UInt8? {
        switch letter {
        case UInt8(ascii: "\\"): UInt8(ascii: "\\")
        case UInt8(ascii: "n"): UInt8(ascii: "\n")
        case UInt8(ascii: "c"): UInt8(ascii: ":")
        case UInt8(ascii: "r") where self == .v12: UInt8(ascii: "\r")
        default: nil
        }
    }

    /// The letter that stands for `byte` after a backslash, or nil when it is written as it is.
    @inline(__always)
    func letter(for byte: UInt8) -> UInt8? {
        guard self != .none else { return nil }
        switch byte {
        case UInt8(ascii: "\\"): return UInt8(ascii: "\\")
        case UInt8(ascii: "\n"): return UInt8(ascii: "n")
        case UInt8(ascii: ":"): return UInt8(ascii: "c")
        case UInt8(ascii: "\r") where self == .v12: return UInt8(ascii: "r")
        default: return nil
        }
    }
}

extension STOMPEscaping {
    /// The offset of the first backslash in `start..<end` that begins no escape of that version, or nil.
    func firstUndefined(in bytes: RawSpan, from start: Int, to end: Int) -> Int? {
        guard self != .none else { return nil }
        var offset = start
        while let backslash = bytes.firstOffset(of: UInt8(ascii: "\\"), from: offset, to: end) {
            guard backslash + 1 < end, meaning(of: bytes.byte(at: backslash + 1)) != nil else { return backslash }
            offset = backslash + 2
        }
        return nil
    }

    /// The bytes of `start..<end` after one pass of unescaping. Undefined escapes are not changed; callers that
    /// have to refuse them call ``firstUndefined(in:from:to:)`` first.
    func unescaped(_ bytes: RawSpan, from start: Int, to end: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(end - start)
        var offset = start
        while offset < end {
            let byte = bytes.byte(at: offset)
            offset += 1
            guard byte == UInt8(ascii: "\\"), offset < end, let meaning = self.meaning(of: bytes.byte(at: offset))
            else {
                result.append(byte)
                continue
            }
            result.append(meaning)
            offset += 1
        }
        return result
    }
}

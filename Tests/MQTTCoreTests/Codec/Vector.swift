import MQTTCore
import Testing

/// Bytes and what a decoder has to make of them, in which versions.
struct Vector: Sendable, CustomTestStringConvertible {
    /// What the decoder is expected to find.
    enum Outcome: Sendable {
        /// This packet, which also has to encode to these bytes.
        case packet(MQTTPacket)
        /// This packet, of which these bytes are not the form that we write.
        case reads(MQTTPacket)
        /// A violation with this reason code and clause.
        case refused(MQTTReasonCode, String)
        /// Nothing yet: the packet is not complete.
        case waits
    }

    let name: String
    let versions: [MQTTVersion]
    let bytes: [UInt8]
    let outcome: Outcome

    init(_ name: String, _ versions: [MQTTVersion], _ notation: String, _ outcome: Outcome) {
        self.name = name
        self.versions = versions
        self.bytes = notation.bytesOfNotation
        self.outcome = outcome
    }

    var testDescription: String { "\(name), \(versions.map { $0.description }.joined(separator: " and "))" }
}

extension [MQTTVersion] {
    static let all = MQTTVersion.allCases
    static let v3: [MQTTVersion] = [.v3_1, .v3_1_1]
    static let v31: [MQTTVersion] = [.v3_1]
    static let v311: [MQTTVersion] = [.v3_1_1]
    static let v5: [MQTTVersion] = [.v5_0]
    static let oasis: [MQTTVersion] = [.v3_1_1, .v5_0]
}

extension String {
    /// Bytes in a short notation: hexadecimal digits as they are, `'abc'` for text, `<abc>` for text behind its two
    /// bytes of length, `{…}` for what follows its property length, and `*` for the length of all that follows.
    fileprivate var bytesOfNotation: [UInt8] {
        var rest = Substring(self)
        return Self.bytes(&rest)
    }

    private static func bytes(_ rest: inout Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        while let first = rest.first {
            switch first {
            case " ": rest.removeFirst()
            case "}":
                rest.removeFirst()
                return bytes
            case "{":
                rest.removeFirst()
                let inner = Self.bytes(&rest)
                bytes += length(inner.count) + inner
            case "*":
                rest.removeFirst()
                let tail = Self.bytes(&rest)
                return bytes + length(tail.count) + tail
            case "'", "<":
                rest.removeFirst()
                let text = Array(rest.prefix { $0 != "'" && $0 != ">" }.utf8)
                rest = rest.drop { $0 != "'" && $0 != ">" }.dropFirst()
                if first == "<" { bytes += [UInt8(text.count >> 8), UInt8(text.count & 0xFF)] }
                bytes += text
            default:
                bytes.append(UInt8(rest.prefix(2), radix: 16)!)
                rest = rest.dropFirst(2)
            }
        }
        return bytes
    }

    private static func length(_ count: Int) -> [UInt8] {
        count < 128 ? [UInt8(count)] : [UInt8(count & 0x7F) | 0x80] + length(count >> 7)
    }
}

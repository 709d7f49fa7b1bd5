@testable import MessagingWebSocketCore

/// How a frame says its length.
enum LengthForm: Sendable {
    case short, sixteen, sixtyFour, shortest
}

/// Builds a frame bit by bit, apart from the code under test.
func frame(
    _ opcode: UInt8, _ payload: [UInt8] = [], from sender: WebSocketRole, isFinal: Bool = true, reserved: UInt8 = 0,
    isMasked: Bool? = nil, key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D], form: LengthForm = .shortest, claims: UInt64? = nil
) -> [UInt8] {
    let isMasked = isMasked ?? (sender == .client)
    let length = claims ?? UInt64(payload.count)
    var bytes = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
    let maskBit: UInt8 = isMasked ? 0x80 : 0
    switch form {
    case .short: bytes.append(maskBit | UInt8(length))
    case .shortest where length <= 125: bytes.append(maskBit | UInt8(length))
    case .sixteen: bytes += [maskBit | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
    case .shortest where length <= 65535: bytes += [maskBit | 126, UInt8(length >> 8), UInt8(length & 0xFF)]
    default: bytes += [maskBit | 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> UInt64(56 - 8 * $0)) }
    }
    guard isMasked else { return bytes + payload }
    return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
}

func text(_ string: String) -> [UInt8] { Array(string.utf8) }

/// A Close frame's payload.
func closing(_ code: UInt16, _ reason: String = "") -> [UInt8] {
    [UInt8(code >> 8), UInt8(code & 0xFF)] + text(reason)
}

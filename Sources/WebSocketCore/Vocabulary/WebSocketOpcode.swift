/// What a frame is (section 5.2); the raw value is its four bits on the wire, all others are reserved.
package enum WebSocketOpcode: UInt8, Sendable, Hashable, CaseIterable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether frames of this kind carry at most 125 bytes, are never fragmented and may stand between fragments.
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// What a message is: its first frame's opcode.
package enum WebSocketMessageKind: Sendable, Hashable {
    /// UTF-8.
    case text
    case binary

    package var opcode: WebSocketOpcode { self == .text ? .text : .binary }
}

import Testing

@testable import MessagingWebSocketCore

/// Frames of one side and what the other has to make of them.
struct FrameVector: Sendable, CustomTestStringConvertible {
    var name: String
    var receiver: WebSocketRole
    var bytes: [UInt8]
    var configuration = WebSocketConfiguration()
    var plaintext: [UInt8] = []
    var messages: [WebSocketEvents.Message] = []
    var pings = 0
    var pongs = 0
    /// The code of the violation, if there has to be one.
    var violation: WebSocketCloseCode?
    /// The code of the closing handshake, if there has to be one.
    var closed: WebSocketCloseCode?
    /// What has to be answered, built as frames of the receiver with keys that the comparison removes.
    var answers: [[UInt8]] = []

    var testDescription: String { "\(name) (at the \(receiver))" }
}

/// One answer: opcode and payload.
func answer(_ opcode: UInt8, _ payload: [UInt8]) -> [UInt8] { [opcode] + payload }

/// The frames in `output`, unmasked, as opcode and payload; only short frames, as answers are.
func answers(in output: [UInt8]) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    var rest = output[...]
    while rest.count >= 2 {
        let opcode = rest.removeFirst() & 0xF
        let second = rest.removeFirst()
        let key = second & 0x80 == 0 ? [0, 0, 0, 0] : Array(rest.prefix(4))
        if second & 0x80 != 0 { rest.removeFirst(4) }
        let count = Int(second & 0x7F)
        frames.append([opcode] + rest.prefix(count).enumerated().map { $1 ^ key[$0 % 4] })
        rest.removeFirst(count)
    }
    return frames
}

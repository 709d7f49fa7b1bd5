import Wire

/// The first line of a frame. Commands are case-sensitive (STOMP 1.2 "Augmented BNF").
public enum STOMPCommand: UInt8, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case connect, stomp, connected
    case send, subscribe, unsubscribe
    case ack, nack
    case begin, commit, abort
    case disconnect
    case message, receipt, error
    /// A command that no version of the specification lists; ``STOMPFrame/commandName`` holds its name.
    case unknown

    /// The name on the wire; empty for ``unknown``.
    public var description: String {
        switch self {
        case .connect: "CONNECT"
        case .stomp: "STOMP"
        case .connected: "CONNECTED"
        case .send: "SEND"
        case .subscribe: "SUBSCRIBE"
        case .unsubscribe: "UNSUBSCRIBE"
        case .ack: "ACK"
        case .nack: "NACK"
        case .begin: "BEGIN"
        case .commit: "COMMIT"
        case .abort: "ABORT"
        case .disconnect: "DISCONNECT"
        case .message: "MESSAGE"
        case .receipt: "RECEIPT"
        case .error: "ERROR"
        case .unknown: ""
        }
    }

    /// Only SEND, MESSAGE and ERROR may have a body (STOMP 1.2 "Body"); what an unknown command may have is unknown.
    public var mayHaveBody: Bool {
        switch self {
        case .send, .message, .error, .unknown: true
        default: false
        }
    }

    /// Whether the headers of this frame are never escaped (STOMP 1.2 "Value Encoding"; STOMP is CONNECT by another
    /// name, so it is meant too).
    public var isHandshake: Bool {
        switch self {
        case .connect, .stomp, .connected: true
        default: false
        }
    }
}

extension STOMPCommand {
    /// The command whose name fills exactly the bytes `start..<end`.
    init(_ bytes: RawSpan, _ start: Int, _ end: Int) {
        let candidate: STOMPCommand
        switch end - start {
        case 3: candidate = .ack
        case 4: candidate = bytes.byte(at: start) == UInt8(ascii: "S") ? .send : .nack
        case 5:
            switch bytes.byte(at: start) {
            case UInt8(ascii: "S"): candidate = .stomp
            case UInt8(ascii: "B"): candidate = .begin
            case UInt8(ascii: "A"): candidate = .abort
            default: candidate = .error
            }
        case 6: candidate = .commit
        case 7:
            switch bytes.byte(at: start) {
            case UInt8(ascii: "M"): candidate = .message
            case UInt8(ascii: "C"): candidate = .connect
            default: candidate = .receipt
            }
        case 9: candidate = bytes.byte(at: start) == UInt8(ascii: "C") ? .connected : .subscribe
        case 10: candidate = .disconnect
        case 11: candidate = .unsubscribe
        default:
            self = .unknown
            return
        }
        self = bytes.holds(candidate.wireName, at: start) ? candidate : .unknown
    }

    /// The name as bytes that live as long as the program.
    var wireName: StaticString {
        switch self {
        case .connect: "CONNECT"
        case .stomp: "STOMP"
        case .connected: "CONNECTED"
        case .send: "SEND"
        case .subscribe: "SUBSCRIBE"
        case .unsubscribe: "UNSUBSCRIBE"
        case .ack: "ACK"
        case .nack: "NACK"
        case .begin: "BEGIN"
        case .commit: "COMMIT"
        case .abort: "ABORT"
        case .disconnect: "DISCONNECT"
        case .message: "MESSAGE"
        case .receipt: "RECEIPT"
        case .error: "ERROR"
        case .unknown: ""
        }
    }
}

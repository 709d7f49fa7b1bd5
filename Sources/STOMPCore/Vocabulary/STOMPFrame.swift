import MessagingWire

/// A frame: a command, ordered headers and a body of bytes.
public struct STOMPFrame: Sendable, Hashable {
    public var command: STOMPCommand {
        didSet { if command != .unknown { unlistedName = "" } }
    }
    private var unlistedName = ""
    public var headers: STOMPHeaders
    /// Bytes, NULs included; text only according to `content-type`.
    public var body: [UInt8]

    public init(_ command: STOMPCommand, headers: STOMPHeaders = [:], body: [UInt8] = []) {
        self.command = command
        self.headers = headers
        self.body = body
    }

    /// A frame whose command the specification does not list.
    public init(unlisted name: String, headers: STOMPHeaders = [:], body: [UInt8] = []) {
        self.init(.unknown, headers: headers, body: body)
        unlistedName = name
    }

    /// The command as written in the first line.
    public var commandName: String { command == .unknown ? unlistedName : command.description }
}

extension STOMPFrame {
    /// The frame that the scanner found at `base`, as values of its own.
    init(
        _ scanner: FrameScanner, in bytes: RawSpan, from base: Int, version: STOMPVersion,
        connectEscaping: STOMPEscaping = .none
    ) {
        let block = bytes.extracting((base + scanner.headerStart)..<(base + scanner.headerEnd))
        var reader = STOMPHeaderReader(version: version, command: scanner.command)
        if scanner.command.isHandshake {
            // A handshake without a version header is one of 1.0, whatever version is agreed on.
            reader.trimsBlanks = false
            let names = scanner.command == .connected ? "version" : "accept-version"
            reader.trimsBlanks = reader.rawValue(of: names, in: block) == nil
            if scanner.command != .connected { reader.escaping = connectEscaping }
        }
        self.init(
            scanner.command, headers: reader.headers(in: block),
            body: bytes.bytes(in: base + scanner.bodyStart..<base + scanner.bodyEnd))
        if scanner.command == .unknown {
            self.init(unlisted: scanner.name(in: bytes, base), headers: headers, body: body)
        }
    }
}

/// Where the frames end in whole frames that were written or read, one after the other. Nothing is copied.
package struct STOMPFrameBoundaries {
    /// Where the last frame ends, or the line ends behind it.
    package private(set) var end = 0
    /// Whether there were line ends in front of a frame or in place of one: heart-beats, or separators.
    package private(set) var hasLineEnds = false
    /// Where the command of the last frame is, behind line ends.
    package private(set) var start = 0
    /// Where the values of the last frame's headers with secrets are, from its command on.
    package private(set) var secrets: [Range<Int>] = []

    package init() {}

    /// Finds the next frame and returns its command; nil at the end of the bytes and where no frame ends.
    package mutating func next(in bytes: RawSpan) -> STOMPCommand? {
        var scanner = FrameScanner()
        let beats = scanner.lineEnds(in: bytes, from: end)
        if beats.bytes > 0 { hasLineEnds = true }
        start = end + beats.bytes
        // Without a version nothing is unescaped, and the frames were found good when they were written or read.
        guard (try? scanner.scan(bytes, from: start, version: nil, limits: .unbounded)) == true else { return nil }
        end = start + scanner.frameEnd
        secrets = Self.secrets(of: scanner, in: bytes.extracting(start..<end))
        return scanner.command
    }

    private static func secrets(of scanner: FrameScanner, in bytes: RawSpan) -> [Range<Int>] {
        var (secrets, line) = ([Range<Int>](), scanner.headerStart)
        let end = scanner.headerEnd
        while let feed = bytes.firstOffset(of: UInt8(ascii: "\n"), from: line, to: end) {
            if let colon = bytes.firstOffset(of: UInt8(ascii: ":"), from: line, to: feed),
                SecretNames.isSecret(bytes, line..<colon)
            {
                let hasReturn = bytes.byte(at: feed - 1) == UInt8(ascii: "\r")
                secrets.append(colon + 1..<(hasReturn ? feed - 1 : feed))
            }
            line = feed + 1
        }
        return secrets
    }
}

extension STOMPFrame {
    package enum First {
        case frame(STOMPFrame)
        /// A heart-beat.
        case lineEnds
        case invalid
    }

    /// What bytes that were written or read begin with. The body of a frame that they hold in part ends where they do.
    package static func first(in bytes: RawSpan, version: STOMPVersion) -> First {
        var scanner = FrameScanner()
        let start = scanner.lineEnds(in: bytes, from: 0).bytes
        if start == bytes.byteCount { return .lineEnds }
        guard let isWhole = try? scanner.scan(bytes, from: start, version: version, limits: .unbounded) else {
            return .invalid
        }
        if !isWhole {
            guard scanner.step == .countedBody || scanner.step == .openBody else { return .invalid }
            scanner.bodyEnd = bytes.byteCount - start
        }
        return .frame(STOMPFrame(scanner, in: bytes, from: start, version: version))
    }
}

extension STOMPFrame {
    /// The number of bytes of the first frame or heart-beat in bytes that were written; all of them where no frame ends.
    package static func lengthOfFirst(in bytes: RawSpan) -> Int {
        var scanner = FrameScanner()
        let beats = scanner.lineEnds(in: bytes, from: 0)
        guard beats.bytes == 0 else { return beats.bytes }
        // Without a version nothing is unescaped, and the writer has observed the limits.
        guard (try? scanner.scan(bytes, from: 0, version: nil, limits: .unbounded)) == true else {
            return bytes.byteCount
        }
        return scanner.frameEnd
    }
}

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
    public var description: String { wireName.description }

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

import MessagingWire

/// The heart-beats that one side offers and requests, and the agreement of both (STOMP 1.2 "Heart-beating").
public struct STOMPHeartBeat: Sendable, Hashable, CustomStringConvertible {
    /// The shortest time in milliseconds between two writes that this side can promise; 0 promises nothing.
    public var outgoing: Int
    /// The time in milliseconds between two reads that this side would like; 0 asks for nothing.
    public var incoming: Int

    public static let none = STOMPHeartBeat(outgoing: 0, incoming: 0)

    public init(outgoing: Int, incoming: Int) {
        self.outgoing = outgoing
        self.incoming = incoming
    }

    /// Reads `cx,cy`. Nil when it is not two decimal numbers of milliseconds; blanks around them are forgiven.
    public init?(_ header: String) {
        let parts = header.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count == 2, let outgoing = Self.milliseconds(parts[0]), let incoming = Self.milliseconds(parts[1])
        else { return nil }
        self.init(outgoing: outgoing, incoming: incoming)
    }

    /// The longest interval that is distinguished, a little more than 24 days; longer ones count as this.
    public static let longestInterval = Int(Int32.max)

    private static func milliseconds(_ part: Substring.UTF8View.SubSequence) -> Int? {
        let digits = String(Substring(part)).trimmingBlanks()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return min(Int(digits) ?? .max, longestInterval)
    }

    public var description: String { "\(outgoing),\(incoming)" }

    /// What two sides agree on, seen from the side `self`: either zero turns a direction off, otherwise the longer of
    /// what one side promises and the other asks.
    public func agreed(with peer: STOMPHeartBeat) -> STOMPHeartBeat {
        func agree(_ promised: Int, _ asked: Int) -> Int {
            promised <= 0 || asked <= 0 ? 0 : min(max(promised, asked), Self.longestInterval)
        }
        return STOMPHeartBeat(outgoing: agree(outgoing, peer.incoming), incoming: agree(peer.outgoing, incoming))
    }
}

/// When to write a heart-beat and when to give the peer up (STOMP 1.2 "Heart-beating"). Nanoseconds throughout.
package struct HeartBeatTiming: Sendable {
    /// The agreed interval for writing; 0 turns it off.
    private var outgoing: Int64 = 0
    /// The agreed interval for reading; 0 turns it off.
    private var incoming: Int64 = 0
    /// When the last frame or heart-beat was encoded or written.
    package private(set) var lastWrite: Int64 = 0
    /// The clock of all that is awaited from the peer.
    var listening = ListeningClock()
    /// We do not read until the peer has taken more of what we wrote: its silence is that it takes nothing.
    var isHeldUp = false

    static let off = HeartBeatTiming()

    init() {}

    init(_ agreed: STOMPHeartBeat, at now: Int64) {
        outgoing = Int64(agreed.outgoing) * 1_000_000
        incoming = Int64(agreed.incoming) * 1_000_000
        listening.noteSign(at: now)
        lastWrite = now
    }

    mutating func wrote(at now: Int64) { lastWrite = max(lastWrite, now) }

    /// For how long nothing was written, and nothing read although we listened.
    func silence(at now: Int64) -> Int64 { min(now - lastWrite, listening.silence(at: now)) }

    mutating func stopHeartBeats() { (outgoing, incoming) = (0, 0) }

    var isReading: Bool { listening.isRunning && !isHeldUp }

    /// At three fifths of the interval: the peer expects data at least that often, and timers and networks are late.
    var writeDeadline: Int64 {
        outgoing == 0 ? .max : lastWrite.advanced(byNanoseconds: outgoing / 5 * 3)
    }

    /// After two and a half times the interval of silence: ActiveMQ checks once in an interval whether it has sent
    /// anything since the last check, so that up to two intervals pass between a frame and its next heart-beat.
    var readDeadline: Int64 {
        incoming == 0 ? .max : listening.moment(of: listening.lastSign.advanced(byNanoseconds: incoming / 2 * 5))
    }

    var nextDeadline: Int64 { min(writeDeadline, readDeadline) }
}

/// What one side can and wants to do about heart-beats, and what both make of it (STOMP 1.2 "Heart-beating").
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

    /// The longest interval that is told apart, a little more than 24 days; longer ones count as this.
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

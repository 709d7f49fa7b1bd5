import MQTTCore
import MessagingWire

/// Something that happened in a simulation.
package enum SimulatedStep: Sendable {
    /// Bytes were written on a connection.
    case wrote(link: Int, isUp: Bool, bytes: [UInt8])
    /// Bytes of a connection have arrived.
    case arrived(link: Int, isUp: Bool, bytes: [UInt8])
    case note(String)
    /// A line of the test itself.
    case testNote(String)
    /// An entry of the plan.
    case plan(String)
    /// What must not happen, such as a rule that a client breaks.
    case violation(String)

    /// Whether it is a heart-beat of STOMP, a ping of MQTT or the answer to one, which say that nothing else happens.
    fileprivate var isBeat: Bool {
        switch self {
        case .wrote(_, _, let bytes), .arrived(_, _, let bytes):
            // A ping may come in two pieces.
            bytes == [0xC0, 0] || bytes == [0xD0, 0] || bytes == [0xC0] || bytes == [0xD0] || bytes == [0]
                || bytes.allSatisfy { $0 == UInt8(ascii: "\n") }
        case .note, .testNote, .plan, .violation: false
        }
    }
}

/// What happened in a simulation: a hash of everything, the latest steps, and the latest notes of the test.
struct SimulatedTrace: Sendable {
    private struct Line: Sendable {
        var number: Int
        var time: Int64
        var step: SimulatedStep
        /// How many heart-beats and pings this line stands for.
        var beats = 0
    }

    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var count = 0
    /// The last hundred of each.
    private var latest = Ring<Line>()
    private var notes = Ring<Line>()
    private static let kept = 100
    /// All of them, for a report; nil while nobody asks for it.
    private var whole: [Line]?

    /// - Parameter keepsAll: whether ``report`` will be asked for.
    init(keepsAll: Bool = false) { whole = keepsAll ? [] : nil }

    private static func add(_ line: Line, to lines: inout Ring<Line>) {
        lines.append(line)
        if lines.count > kept { _ = lines.popFirst() }
    }

    /// Adds a heart-beat or ping: those in a row are one line.
    private mutating func addBeat(_ line: Line) {
        if !latest.isEmpty, latest[latest.count - 1].beats > 0 {
            latest[latest.count - 1].beats += 1
        } else {
            var line = line
            line.beats = 1
            Self.add(line, to: &latest)
        }
    }

    mutating func mix(_ number: UInt64) {
        hash = (hash ^ number) &* 0x9E37_79B9_7F4A_7C15
        hash ^= hash >> 29
    }

    private mutating func mix(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    }

    mutating func add(_ step: SimulatedStep, at time: Int64) {
        mix(UInt64(bitPattern: time))
        switch step {
        case .wrote(let link, let isUp, let bytes):
            mix(UInt64(link) << 1 | (isUp ? 1 : 0))
            mix(bytes)
        case .arrived(let link, let isUp, let bytes):
            mix(UInt64(link) << 1 | (isUp ? 1 : 0))
            mix(UInt64(bytes.count))
        case .note(let text), .testNote(let text), .plan(let text), .violation(let text): mix(text.utf8)
        }
        let line = Line(number: count, time: time, step: step)
        whole?.append(line)
        if step.isBeat { addBeat(line) } else { Self.add(line, to: &latest) }
        if case .testNote = step { Self.add(line, to: &notes) }
        count += 1
    }

    /// The latest notes and steps, one line each, oldest first.
    var lines: [String] {
        let first = latest.first?.number ?? 0
        let older = (0..<notes.count).map { notes[$0] }.filter { $0.number < first }
        return (older + (0..<latest.count).map { latest[$0] }).map { line in
            let text = line.beats > 1 ? Self.beats(line.beats) : Self.text(of: line.step)
            return "\(Self.seconds(line.time)) \(text)"
        }
    }

    private static func beats(_ count: Int) -> String { "\(count) heart-beats and pings, written or received" }

    private static func seconds(_ nanoseconds: Int64) -> String {
        let micro = String(nanoseconds / 1000 % 1_000_000)
        return "\(nanoseconds / 1_000_000_000)." + String(repeating: "0", count: 6 - micro.utf8.count) + micro + " s"
    }

    private static func text(of step: SimulatedStep) -> String {
        switch step {
        case .note(let text), .testNote(let text), .plan(let text), .violation(let text): text
        case .arrived(let link, let isUp, let bytes):
            "#\(link) \(isUp ? "server" : "client") received \(bytes.count) bytes"
        case .wrote(let link, let isUp, let bytes):
            "#\(link) \(isUp ? "client" : "server") wrote \(TracedPackets.shown(bytes))"
        }
    }

    // MARK: The report of a failure

    /// How many lines are shown on each side of an entry of the plan and of the first violation, and at the end.
    private static let (aroundEntry, aroundViolation, atEnd) = (8, 30, 40)

    private struct Shown {
        var text: String
        var isChosen = false
    }

    /// The steps around the entries of the plan, around the first violation and at the end, and the latest notes: packets one
    /// line each, when they were written and, if that was later, when they had arrived.
    var report: [String] {
        guard let whole else { return lines }
        var shown: [Shown] = []
        var (entries, notes, violation) = ([Int](), [Int](), Int?.none)
        // Of each direction of a connection.
        var written: [Int: TracedPackets] = [:]
        var arrived: [Int: TracedPackets] = [:]
        var (beats, beatTime) = (0, Int64(0))
        func add(_ text: String, at time: Int64) {
            if beats > 0 { shown.append(Shown(text: "\(Self.seconds(beatTime)) \(Self.beats(beats))")) }
            beats = 0
            shown.append(Shown(text: "\(Self.seconds(time)) \(text)"))
        }
        func addPackets(
            _ link: Int, _ isUp: Bool, _ bytes: [UInt8], at time: Int64, in packets: inout [Int: TracedPackets],
            _ what: String
        ) {
            let key = link << 1 | (isUp ? 1 : 0)
            var version: MQTTVersion?
            let texts = packets[key, default: TracedPackets(isUp: isUp)].add(bytes) { version = $0 }
            if let version, isUp { packets[key ^ 1, default: TracedPackets(isUp: false)].use(version) }
            for text in texts {
                guard !["PINGREQ", "PINGRESP"].contains(text) else {
                    (beats, beatTime) = (beats + 1, time)
                    continue
                }
                add("#\(link) \(what) \(text)", at: time)
            }
        }
        for (index, line) in whole.enumerated() {
            switch line.step {
            case .wrote(let link, let isUp, let bytes):
                addPackets(link, isUp, bytes, at: line.time, in: &written, "\(isUp ? "client" : "server") wrote")
            case .arrived(let link, let isUp, let bytes):
                // What arrives at once was written in the line before.
                let before = index > 0 ? whole[index - 1] : line
                if case .wrote(link, isUp, _) = before.step, before.time == line.time {
                    _ = arrived[link << 1 | (isUp ? 1 : 0), default: TracedPackets(isUp: isUp)].add(bytes) { _ in }
                } else {
                    addPackets(
                        link, isUp, bytes, at: line.time, in: &arrived, "\(isUp ? "server" : "client") received")
                }
            case .note(let text): add(text, at: line.time)
            case .plan(let text):
                add(text, at: line.time)
                entries.append(shown.count - 1)
            case .testNote(let text):
                add(text, at: line.time)
                notes.append(shown.count - 1)
            case .violation(let text):
                add(text, at: line.time)
                violation = violation ?? shown.count - 1
            }
        }
        if beats > 0 { shown.append(Shown(text: "\(Self.seconds(beatTime)) \(Self.beats(beats))")) }
        func choose(around index: Int, _ count: Int) {
            for place in max(0, index - count)..<min(shown.count, index + count + 1) { shown[place].isChosen = true }
        }
        for entry in entries { choose(around: entry, Self.aroundEntry) }
        if let violation { choose(around: violation, Self.aroundViolation) }
        for place in shown.indices.suffix(Self.atEnd) { shown[place].isChosen = true }
        for note in notes.suffix(Self.kept) { shown[note].isChosen = true }
        var lines: [String] = []
        var leftOut = 0
        for line in shown {
            guard line.isChosen else {
                leftOut += 1
                continue
            }
            if leftOut > 0 { lines.append("… \(leftOut) more") }
            leftOut = 0
            lines.append(line.text)
        }
        return lines
    }
}

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

    /// Whether it is a heart-beat of STOMP, a ping of MQTT or the answer to one, which say that nothing else happens.
    fileprivate var isBeat: Bool {
        switch self {
        case .wrote(_, _, let bytes), .arrived(_, _, let bytes):
            // A ping may come in two pieces.
            bytes == [0xC0, 0] || bytes == [0xD0, 0] || bytes == [0xC0] || bytes == [0xD0] || bytes == [0]
                || bytes.allSatisfy { $0 == UInt8(ascii: "\n") }
        case .note, .testNote: false
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
        case .note(let text), .testNote(let text): mix(text.utf8)
        }
        let line = Line(number: count, time: time, step: step)
        if step.isBeat { addBeat(line) } else { Self.add(line, to: &latest) }
        if case .testNote = step { Self.add(line, to: &notes) }
        count += 1
    }

    /// The latest notes and steps, one line each, oldest first.
    var lines: [String] {
        let first = latest.first?.number ?? 0
        let older = (0..<notes.count).map { notes[$0] }.filter { $0.number < first }
        return (older + (0..<latest.count).map { latest[$0] }).map { line in
            let text =
                line.beats > 1 ? "\(line.beats) heart-beats and pings, written or received" : Self.text(of: line.step)
            return "\(Self.seconds(line.time)) \(text)"
        }
    }

    private static func seconds(_ nanoseconds: Int64) -> String {
        let micro = String(nanoseconds / 1000 % 1_000_000)
        return "\(nanoseconds / 1_000_000_000)." + String(repeating: "0", count: 6 - micro.utf8.count) + micro + " s"
    }

    private static func text(of step: SimulatedStep) -> String {
        switch step {
        case .note(let text), .testNote(let text): return text
        case .arrived(let link, let isUp, let bytes):
            return "#\(link) \(isUp ? "server" : "client") received \(bytes.count) bytes"
        case .wrote(let link, let isUp, let bytes):
            let shown = bytes.prefix(48).map { byte -> String in
                switch byte {
                case 0x20...0x7E: return String(UnicodeScalar(byte))
                default: return "\\" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
                }
            }
            let text = shown.joined() + (bytes.count > 48 ? "…" : "")
            return "#\(link) \(isUp ? "client" : "server") wrote \(bytes.count) bytes: \(text)"
        }
    }
}

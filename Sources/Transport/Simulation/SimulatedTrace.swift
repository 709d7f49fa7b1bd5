import Wire

/// Something that happened in a simulation.
package enum SimulatedStep: Sendable {
    /// Bytes were written on a connection.
    case wrote(link: Int, isUp: Bool, bytes: [UInt8])
    /// Bytes of a connection have arrived.
    case arrived(link: Int, isUp: Bool, count: Int)
    case note(String)
}

/// What happened in a simulation: a hash of everything, and the latest steps.
struct SimulatedTrace: Sendable {
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var count = 0
    private var latest: [(time: Int64, step: SimulatedStep)] = []
    private static let kept = 100

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
        case .arrived(let link, let isUp, let count):
            mix(UInt64(link) << 1 | (isUp ? 1 : 0))
            mix(UInt64(count))
        case .note(let text): mix(text.utf8)
        }
        if latest.count < Self.kept { latest.append((time, step)) } else { latest[count % Self.kept] = (time, step) }
        count += 1
    }

    /// The latest steps, one line each, oldest first.
    var lines: [String] {
        let start = latest.count < Self.kept ? 0 : count % Self.kept
        return (latest[start...] + latest[..<start]).map { time, step in
            "\(Self.seconds(time)) \(Self.text(of: step))"
        }
    }

    private static func seconds(_ nanoseconds: Int64) -> String {
        let micro = String(nanoseconds / 1000 % 1_000_000)
        return "\(nanoseconds / 1_000_000_000)." + String(repeating: "0", count: 6 - micro.utf8.count) + micro + " s"
    }

    private static func text(of step: SimulatedStep) -> String {
        switch step {
        case .note(let text): return text
        case .arrived(let link, let isUp, let count):
            return "#\(link) \(isUp ? "server" : "client") received \(count) bytes"
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

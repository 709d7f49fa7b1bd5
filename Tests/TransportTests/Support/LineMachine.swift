import MessagingWire
import Synchronization
import TestSupport
import Transport

/// A tiny protocol for tests: complete lines are delivered, and echoed if asked for.
struct LineMachine: LinkMachine, ~Copyable {
    let probe: Probe
    var output: [UInt8] = []
    var nextDeadline = Int64.max
    var wantsClose = false
    var abandonsOutput = false
    var wantsReadingPaused = false
    var isOpen = false
    var lastTaken: Int64 = 0
    /// Lines that were not written, or not whole, and are not reported yet.
    var discardedLines = 0
    /// Sends complete lines back.
    var echoes = false
    /// Consumes one line per call, as engines do that want their effects performed in between.
    var stopsEarly = false
    /// Written when a connection opens.
    var greeting: [UInt8] = []

    init(_ probe: Probe) {
        self.probe = probe
    }

    mutating func outputTaken(at now: Int64) { lastTaken = now }

    mutating func outputDiscarded(_ bytes: RawSpan, leavingOut payload: LargePayload?, writtenUpTo offset: Int) {
        bytes.withUnsafeBytes { raw in
            discardedLines += raw.indices.count { $0 >= offset && raw[$0] == UInt8(ascii: "\n") }
        }
    }

    mutating func reportDiscarded(into afterLock: LineAfterLock) {
        afterLock.probe = probe
        afterLock.discardedLines = discardedLines
        discardedLines = 0
    }

    mutating func connectionOpened(at now: Int64, into afterLock: LineAfterLock) {
        isOpen = true
        output += greeting
        afterLock.probe = probe
        afterLock.opened = true
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: LineAfterLock) {
        isOpen = false
        wantsClose = false
        wantsReadingPaused = false
        afterLock.probe = probe
        afterLock.closed = .some(error)
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: LineAfterLock) -> Int {
        afterLock.probe = probe
        let newline = UInt8(ascii: "\n")
        let count = bytes.withUnsafeBytes { raw in
            let end = stopsEarly ? raw.firstIndex(of: newline) : raw.lastIndex(of: newline)
            let count = end.map { $0 + 1 } ?? 0
            if echoes { output.append(contentsOf: raw[..<count]) }
            return count
        }
        afterLock.count = count
        return count
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: LineAfterLock) {
        afterLock.probe = probe
        afterLock.progress = progress
        // An early call is harmless.
        guard now >= nextDeadline else { return }
        afterLock.timeouts.append(now)
        nextDeadline = .max
    }
}

final class LineAfterLock: LinkAfterLock {
    var probe: Probe?
    var count = 0
    var opened = false
    var closed: TransportError??
    var timeouts: [Int64] = []
    var progress: OutputProgress?
    var discardedLines = 0

    init() {}

    func perform(_ bytes: RawSpan) {
        guard let probe else { return }
        probe.state.withLock { state in
            if opened { state.connections.append([]) }
            if count > 0 {
                state.byteCount += count
                if state.keepsBytes {
                    bytes.withUnsafeBytes { state.connections[state.connections.count - 1] += $0[..<count] }
                }
            }
            if let closed { state.ends.append(closed) }
            state.timeouts += timeouts
            state.discardedLines += discardedLines
            if let progress { state.progress = progress }
        }
        self.probe = nil
        count = 0
        opened = false
        closed = nil
        timeouts.removeAll()
        progress = nil
        discardedLines = 0
    }
}

/// What a machine saw, for tests to look at.
final class Probe: Sendable {
    struct State {
        /// The bytes of the lines of each connection.
        var connections: [[UInt8]] = []
        var keepsBytes = true
        var byteCount = 0
        var ends: [TransportError?] = []
        var timeouts: [Int64] = []
        /// What the last timeout was told.
        var progress = OutputProgress()
        var discardedLines = 0
    }

    let state = Mutex(State())

    var bytes: [UInt8] { state.withLock { $0.connections.flatMap(\.self) } }
    var byteCount: Int { state.withLock { $0.byteCount } }
    var connections: [[UInt8]] { state.withLock { $0.connections } }
    var openings: Int { state.withLock { $0.connections.count } }
    var ends: [TransportError?] { state.withLock { $0.ends } }
    var progress: OutputProgress { state.withLock { $0.progress } }
    var timeouts: [Int64] { state.withLock { $0.timeouts } }
    var discardedLines: Int { state.withLock { $0.discardedLines } }
    func dropBytes() { state.withLock { $0.keepsBytes = false } }
}

extension SeededGenerator {
    /// A line of `length` bytes with its end, without newlines inside.
    mutating func line(_ length: Int) -> [UInt8] {
        // Eight bytes at a time: lengths are large and debug builds slow.
        let length = max(1, length)
        var line = [UInt8](repeating: 0, count: (length + 7) & ~7)
        line.withUnsafeMutableBytes { raw in
            for offset in stride(from: 0, to: raw.count, by: 8) {
                // No byte is a newline (0x0A) once each has its highest bit.
                raw.storeBytes(of: next() | 0x8080_8080_8080_8080, toByteOffset: offset, as: UInt64.self)
            }
        }
        line.removeLast(line.count - length)
        line[length - 1] = UInt8(ascii: "\n")
        return line
    }
}

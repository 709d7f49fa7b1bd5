import Synchronization

/// What one stream of a child has written, bounded: the oldest bytes and lines go first.
final class OutputBuffer: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var lines: [String] = []
        /// The number of the first line that is still kept.
        var firstLine = 0
        var lineBytes = 0
        var partial: [UInt8] = []
        /// All bytes since the start, those included that are no longer kept.
        var total = 0
        var ended = false
    }

    private let state = Mutex(State())
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    func append(_ chunk: some Collection<UInt8>) {
        state.withLock { state in
            state.total += chunk.count
            state.bytes.append(contentsOf: chunk)
            // Twice the bound before cutting, so that the cost of moving is paid once per `limit` bytes.
            if state.bytes.count > 2 * limit { state.bytes.removeFirst(state.bytes.count - limit) }
            for byte in chunk {
                if byte == UInt8(ascii: "\n") || state.partial.count >= limit { finishLine(&state) }
                if byte != UInt8(ascii: "\n") { state.partial.append(byte) }
            }
        }
    }

    /// An unfinished last line counts as a line once no more can come.
    func end() {
        state.withLock { state in
            if !state.partial.isEmpty { finishLine(&state) }
            state.ended = true
        }
    }

    private func finishLine(_ state: inout State) {
        // A terminal turns "\n" into "\r\n".
        if state.partial.last == UInt8(ascii: "\r") { state.partial.removeLast() }
        state.lines.append(String(decoding: state.partial, as: UTF8.self))
        state.lineBytes += state.partial.count + 1
        state.partial.removeAll(keepingCapacity: true)
        guard state.lineBytes > 2 * limit else { return }
        var dropped = 0
        while dropped < state.lines.count - 1, state.lineBytes > limit {
            state.lineBytes -= state.lines[dropped].utf8.count + 1
            dropped += 1
        }
        state.lines.removeFirst(dropped)
        state.firstLine += dropped
    }

    var bytes: [UInt8] { state.withLock { Array($0.bytes.suffix(limit)) } }
    var total: Int { state.withLock { $0.total } }
    var lines: [String] { state.withLock { $0.lines } }

    /// The lines from number `start` on, the number after the last, and whether more can come.
    func lines(from start: Int) -> (first: Int, lines: [String], ended: Bool) {
        state.withLock { state in
            let first = max(start, state.firstLine)
            return (first, Array(state.lines.dropFirst(first - state.firstLine)), state.ended)
        }
    }
}

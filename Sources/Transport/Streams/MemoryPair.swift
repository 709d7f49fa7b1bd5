import Synchronization

/// Two connected streams inside one process, for tests: whatever one end writes the other can read, as far as the
/// script of faults lets it.
package enum MemoryPair {
    /// What goes wrong on the way. Values may be changed while the pair is in use.
    package struct Faults: Sendable {
        /// The most bytes that one `read` returns; small values split packets everywhere.
        package var bytesPerRead = Int.max
        /// The most bytes that lie between the two ends; a full pipe blocks the writer.
        package var capacity = 1 << 20
        /// After this many more bytes the connection is cut, both ways: what was written before can still be read.
        package var bytesUntilCut = Int.max
        /// Whether nothing moves and nothing is reported, as with a half-open connection.
        package var isFrozen = false
        /// How many of the next bytes are inverted.
        package var bytesToCorrupt = 0

        package init() {}
    }

    package static func make() -> (client: MemoryStream, server: MemoryStream) {
        let upward = MemoryPipe()
        let downward = MemoryPipe()
        return (
            MemoryStream(incoming: downward, outgoing: upward, peerName: "the other end of a memory pair"),
            MemoryStream(incoming: upward, outgoing: downward, peerName: "the other end of a memory pair")
        )
    }
}

/// One direction of a memory pair.
final class MemoryPipe: Sendable {
    struct State {
        private var storage: [UInt8] = []
        private var head = 0
        var faults = MemoryPair.Faults()
        /// Bytes that were ever written.
        var written = 0
        var writerIsClosed = false
        var readerIsClosed = false
        var isCut = false
        var reader: StreamNotifier?
        var writer: StreamNotifier?

        var count: Int { storage.count - head }

        // Safe: callers pass buffers that live for the call, as streams do.
        mutating func append(_ bytes: UnsafeRawBufferPointer, inverting inverted: Int) {
            let start = storage.count
            written += bytes.count
            unsafe storage.append(contentsOf: bytes)
            for index in start..<(start + inverted) { storage[index] = ~storage[index] }
        }

        mutating func remove(_ count: Int, into buffer: UnsafeMutableRawBufferPointer) {
            unsafe storage.withUnsafeBytes { bytes in
                unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[head..<(head + count)]))
            }
            head += count
            if head * 2 >= storage.count {
                storage.removeFirst(head)
                head = 0
            }
        }
    }

    let state = Lock(State())

    /// Notifies both ends of a change.
    func notifyBoth() {
        let (reader, writer) = state.withLock { ($0.reader, $0.writer) }
        reader?.notify()
        writer?.notify()
    }
}

/// One end of a memory pair.
package final class MemoryStream: NotifyingStream, @unchecked Sendable {
    // Sendable because the pipes are locked, and `notifier` is touched on the loop's thread only.
    private let incoming: MemoryPipe
    private let outgoing: MemoryPipe
    private var notifier: StreamNotifier?
    package let peerName: String

    init(incoming: MemoryPipe, outgoing: MemoryPipe, peerName: String) {
        self.incoming = incoming
        self.outgoing = outgoing
        self.peerName = peerName
    }

    package var callersMaySend: Bool { true }

    /// Changes what goes wrong with the bytes that this end sends.
    package func changeFaults(_ change: (inout MemoryPair.Faults) -> Void) {
        outgoing.state.withLock { change(&$0.faults) }
        outgoing.notifyBoth()
    }

    package func attach(_ handler: LoopHandler, interest: Readiness) {
        self.notifier?.handler = nil
        let notifier = StreamNotifier(handler: handler, stream: self, interest: interest)
        self.notifier = notifier
        incoming.state.withLock { $0.reader = notifier }
        outgoing.state.withLock { $0.writer = notifier }
        notifier.notify()
    }

    package func setInterest(_ interest: Readiness) {
        notifier?.interest = interest
        notifier?.notify()
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        let result = incoming.state.withLock { state -> IOResult in
            if state.faults.isFrozen { return .wouldBlock }
            let count = min(buffer.count, state.count, max(1, state.faults.bytesPerRead))
            guard count > 0 else {
                return state.isCut ? .failed(ECONNRESET) : state.writerIsClosed ? .endOfStream : .wouldBlock
            }
            unsafe state.remove(count, into: buffer)
            return .bytes(count)
        }
        incoming.notifyBoth()
        return result
    }

    package func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        let (result, cut) = outgoing.state.withLock { state -> (IOResult, Bool) in
            if state.isCut || state.readerIsClosed || state.writerIsClosed { return (.failed(EPIPE), false) }
            let room = max(0, state.faults.capacity - state.count)
            let count = min(buffer.count, room, max(0, state.faults.bytesUntilCut))
            let damaged = min(count, max(0, state.faults.bytesToCorrupt))
            unsafe state.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]), inverting: damaged)
            state.faults.bytesToCorrupt -= damaged
            if state.faults.bytesUntilCut != .max {
                state.faults.bytesUntilCut -= count
                if state.faults.bytesUntilCut == 0 {
                    state.isCut = true
                    return (.bytes(count), true)
                }
            }
            return (count == 0 ? .wouldBlock : .bytes(count), false)
        }
        if cut { incoming.state.withLock { $0.isCut = true } }
        outgoing.notifyBoth()
        if cut { incoming.notifyBoth() }
        return result
    }

    package var progress: StreamProgress {
        outgoing.state.withLock { StreamProgress(written: $0.written, acknowledged: $0.written - $0.count) }
    }

    package func endWriting() {
        outgoing.state.withLock { $0.writerIsClosed = true }
        outgoing.notifyBoth()
    }

    package func detach() {
        notifier?.handler = nil
        notifier = nil
        incoming.state.withLock { $0.reader = nil }
        outgoing.state.withLock { $0.writer = nil }
    }

    package func close() {
        detach()
        endWriting()
        incoming.state.withLock { $0.readerIsClosed = true }
        incoming.notifyBoth()
    }

    package var readiness: Readiness {
        var readiness: Readiness = []
        incoming.state.withLock { state in
            if !state.faults.isFrozen && (state.count > 0 || state.isCut || state.writerIsClosed) {
                readiness.insert(.read)
            }
        }
        outgoing.state.withLock { state in
            if state.isCut || state.readerIsClosed || state.count < state.faults.capacity {
                readiness.insert(.write)
            }
        }
        return readiness
    }
}

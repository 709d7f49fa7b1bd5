import MessagingWire
import Transport

/// A stream that can be frozen (nothing is read, written or reported, as with a half-open connection) and that can delay
/// what is written.
final class ServedStream: ByteStream, @unchecked Sendable {
    // Sendable because everything is touched on the loop's thread only: the broker runs its links nowhere else.
    private let inner: any ByteStream
    private let loop: EventLoop
    private var handler: LoopHandler?
    private var interest: Readiness = []
    private(set) var isFrozen: Bool
    /// Nanoseconds by which what is written is delayed.
    private var latency: Int64
    private var delayed = Ring<(due: Int64, bytes: [UInt8])>()
    private var delayedBytes = 0
    /// The end of our direction follows the bytes that are delayed.
    private var endsLater = false
    /// The writer found no room.
    private var owesRoom = false
    /// Made with the first delay.
    private var alarm: LoopAlarm?

    /// Bytes that are delayed before the writer has to wait.
    private static let maximumDelayedBytes = 16 << 20
    /// Nanoseconds after which another attempt is made to write to a stream that had no room.
    private static let retryPause: Int64 = 1_000_000

    init(_ inner: any ByteStream, loop: EventLoop, isFrozen: Bool, latency: Int64) {
        self.inner = inner
        self.loop = loop
        self.isFrozen = isFrozen
        self.latency = latency
    }

    var callersMaySend: Bool { true }
    var peerName: String { inner.peerName }
    var heldBytesDue: Int64? { isFrozen || delayed.isEmpty ? nil : delayed[delayed.count - 1].due }

    var progress: StreamProgress {
        var progress = inner.progress
        progress.written += delayedBytes
        return progress
    }

    func attach(_ handler: LoopHandler, interest: Readiness) {
        self.handler = handler
        self.interest = interest
        if !isFrozen { inner.attach(handler, interest: innerInterest) }
    }

    func setInterest(_ interest: Readiness) {
        self.interest = interest
        if !isFrozen { inner.setInterest(innerInterest) }
    }

    /// A writer that waits for what is delayed would be told again and again that the inner stream has room.
    private var innerInterest: Readiness { owesRoom ? interest.subtracting(.write) : interest }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe isFrozen ? .wouldBlock : inner.read(into: buffer)
    }

    func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        if isFrozen { return .wouldBlock }
        guard latency > 0 || !delayed.isEmpty else { return unsafe inner.write(from: buffer) }
        guard delayedBytes < Self.maximumDelayedBytes else {
            owesRoom = true
            return .wouldBlock
        }
        delay(unsafe Array(buffer))
        return .bytes(buffer.count)
    }

    func endWriting() {
        if delayed.isEmpty { inner.endWriting() } else { endsLater = true }
    }

    func detach() {
        handler = nil
        if !isFrozen { inner.detach() }
    }

    func close() {
        handler = nil
        delayed = Ring()
        delayedBytes = 0
        alarm?.set(.max)
        inner.close()
    }

    /// Freezes or thaws; on the loop's thread. A frozen stream is not watched at all, so that a hang-up is not seen.
    func setFrozen(_ frozen: Bool) {
        guard frozen != isFrozen else { return }
        isFrozen = frozen
        if !frozen { writeDue(at: loop.now) }
        guard let handler else { return }
        if frozen { inner.detach() } else { inner.attach(handler, interest: innerInterest) }
    }

    // MARK: Latency

    /// Delays what is written from now on; on the loop's thread.
    func setLatency(_ nanoseconds: Int64) {
        latency = nanoseconds
    }

    private func delay(_ bytes: [UInt8]) {
        // Never before what was written earlier, when the latency has become shorter.
        let last = delayed.isEmpty ? 0 : delayed[delayed.count - 1].due
        let due = max(last, loop.now.advanced(byNanoseconds: latency))
        delayed.append((due, bytes))
        delayedBytes += bytes.count
        if alarm == nil { alarm = LoopAlarm(loop: loop) { [weak self] now in self?.writeDue(at: now) } }
        if delayed.count == 1 { alarm?.set(due) }
    }

    private func writeDue(at now: Int64) {
        guard !isFrozen else { return }
        while let (due, bytes) = delayed.first {
            guard due <= now else {
                alarm?.set(due)
                return
            }
            // Safe: the stream reads the buffer during the call only.
            switch unsafe bytes.withUnsafeBytes({ unsafe inner.write(from: $0) }) {
            case .bytes(let count):
                delayedBytes -= count
                if count == bytes.count {
                    _ = delayed.popFirst()
                } else {
                    delayed[0].bytes.removeFirst(count)
                }
            case .wouldBlock:
                alarm?.set(now + Self.retryPause)
                return
            case .endOfStream, .failed:
                // The link finds out when it reads.
                delayed = Ring()
                delayedBytes = 0
            }
        }
        if endsLater { inner.endWriting() }
        if owesRoom {
            owesRoom = false
            if handler != nil { inner.setInterest(innerInterest) }
            handler?.ready(.write, at: now)
        }
    }
}

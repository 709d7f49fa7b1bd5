import Transport

/// A stream that can be frozen: nothing is read, nothing is written and nobody is told, as with a half-open link.
final class ServedStream: ByteStream, @unchecked Sendable {
    // Sendable because everything is touched on the loop's thread only: the broker runs its links nowhere else.
    private let inner: any ByteStream
    private var handler: LoopHandler?
    private var interest: Readiness = []
    private(set) var isFrozen: Bool

    init(_ inner: any ByteStream, isFrozen: Bool) {
        self.inner = inner
        self.isFrozen = isFrozen
    }

    var callersMaySend: Bool { true }
    var peerName: String { inner.peerName }
    var progress: StreamProgress { inner.progress }

    func attach(_ handler: LoopHandler, interest: Readiness) {
        self.handler = handler
        self.interest = interest
        if !isFrozen { inner.attach(handler, interest: interest) }
    }

    func setInterest(_ interest: Readiness) {
        self.interest = interest
        if !isFrozen { inner.setInterest(interest) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        isFrozen ? .wouldBlock : inner.read(into: buffer)
    }

    func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        isFrozen ? .wouldBlock : inner.write(from: buffer)
    }

    func endWriting() { inner.endWriting() }

    func detach() {
        handler = nil
        if !isFrozen { inner.detach() }
    }

    func close() {
        handler = nil
        inner.close()
    }

    /// Freezes or thaws; on the loop's thread. A frozen stream is not watched at all, so that a hang-up is not seen.
    func setFrozen(_ frozen: Bool) {
        guard frozen != isFrozen else { return }
        isFrozen = frozen
        guard let handler else { return }
        if frozen { inner.detach() } else { inner.attach(handler, interest: interest) }
    }
}

import Synchronization
import Transport

/// Passes everything on to another stream, but fails a write when told to, as a system without memory does, or asks
/// a test what to answer.
final class FaultyStream: ByteStream {
    private let inner: MemoryStream
    private let fails = Atomic(false)
    private let answer: (@Sendable () -> IOResult?)?
    let keepsWrittenBytes: Bool

    /// - Parameters:
    ///   - keepsWrittenBytes: whether what the peer has not read counts as bytes that have not left the process.
    ///   - answer: called for each write, on the thread that writes; nil lets it happen.
    init(_ inner: MemoryStream, keepsWrittenBytes: Bool = false, answer: (@Sendable () -> IOResult?)? = nil) {
        self.inner = inner
        self.keepsWrittenBytes = keepsWrittenBytes
        self.answer = answer
    }

    func failNextWrite() {
        fails.store(true, ordering: .sequentiallyConsistent)
    }

    func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        if fails.exchange(false, ordering: .sequentiallyConsistent) { return .failed(105) }
        return answer?() ?? inner.write(from: buffer)
    }

    func attach(_ handler: LoopHandler, interest: Readiness) { inner.attach(handler, interest: interest) }
    func setInterest(_ interest: Readiness) { inner.setInterest(interest) }
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { inner.read(into: buffer) }
    func endWriting() { inner.endWriting() }
    func detach() { inner.detach() }
    func close() { inner.close() }
    var callersMaySend: Bool { true }
    var progress: StreamProgress {
        let progress = inner.progress
        guard keepsWrittenBytes else { return progress }
        return StreamProgress(written: progress.written, passedOn: progress.acknowledged)
    }
    var peerName: String { "a faulty stream" }
}

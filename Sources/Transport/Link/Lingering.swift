import Wire

/// Reads and drops what a peer still sends after we have said everything, until it ends or two seconds are over.
///
/// Closing a socket with unread bytes resets the connection, and a reset can destroy our own last bytes on their way.
final class Lingering: LoopHandler, @unchecked Sendable {
    // Sendable because all is touched on the loop's thread only.
    private var stream: (any ByteStream)?

    static func start(_ stream: any ByteStream, loop: EventLoop, at now: Int64) {
        let lingering = Lingering(loop: loop)
        lingering.stream = stream
        stream.endWriting()
        stream.attach(lingering, interest: .read)
        loop.setDeadline(lingering, to: now.advanced(byNanoseconds: 2_000_000_000))
    }

    override func ready(_ readiness: Readiness, at now: Int64) {
        guard let stream else { return }
        switch stream.read(into: loop.readBuffer) {
        case .bytes, .wouldBlock: break
        case .endOfStream, .failed: finish()
        }
    }

    override func deadlineReached(at now: Int64) {
        finish()
    }

    private func finish() {
        loop.setDeadline(self, to: .max)
        stream?.close()
        stream = nil
    }
}

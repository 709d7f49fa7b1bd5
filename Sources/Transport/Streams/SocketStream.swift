import Synchronization

/// A connected TCP or Unix-domain socket.
package final class SocketStream: ByteStream, @unchecked Sendable {
    // Sendable because the descriptor never changes and lives until the last reference is gone (so a sender on
    // another thread can never hit a reused number), and the other `var`s are touched on the loop's thread only.
    private let descriptor: Int32
    private var handler: LoopHandler?
    private var hasEndedWriting = false
    /// Changed by the one thread that writes; others only read it.
    private let acceptedBytes = Atomic(0)
    package let peerName: String
    package var callersMaySend: Bool { true }

    /// Takes over `descriptor`, which must be non-blocking.
    package init(descriptor: Int32, peerName: String, isTCP: Bool) {
        self.descriptor = descriptor
        self.peerName = peerName
        if isTCP { System.disableNagle(descriptor) }
    }

    deinit {
        _ = closeDescriptor(descriptor)
    }

    package func attach(_ handler: LoopHandler, interest: Readiness) {
        self.handler = handler
        handler.loop.register(handler, descriptor: descriptor, interest: interest)
    }

    package func setInterest(_ interest: Readiness) {
        guard let handler else { return }
        handler.loop.change(handler, descriptor: descriptor, interest: interest)
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe System.read(descriptor, into: buffer)
    }

    package func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        let result = unsafe System.write(descriptor, from: buffer)
        if case .bytes(let count) = result {
            acceptedBytes.store(written &+ count, ordering: .relaxed)
        }
        return result
    }

    package var written: Int { acceptedBytes.load(ordering: .relaxed) }

    package var progress: StreamProgress {
        let written = written
        return StreamProgress(written: written, acknowledged: max(0, written - System.unacknowledged(descriptor)))
    }

    package func endWriting() {
        hasEndedWriting = true
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    package func detach() {
        guard let handler else { return }
        handler.loop.unregister(handler, descriptor: descriptor)
        self.handler = nil
    }

    package func close() {
        detach()
        // The descriptor itself is closed in deinit; shutdown makes a sender on another thread fail at once.
        if !hasEndedWriting { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    package func abort() {
        detach()
        System.reset(descriptor)
    }
}

/// `close(2)` under a name that does not collide with methods.
func closeDescriptor(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}

import Synchronization

/// A connected TCP or Unix-domain socket.
package final class SocketStream: ByteStream, @unchecked Sendable {
    // Sendable because the descriptor never changes and is used within `using` only, and the `var`s are touched on the
    // loop's thread only.
    private let descriptor: Int32
    private var handler: LoopHandler?
    private var interest: Readiness = []
    private var hasEndedWriting = false
    /// Calls that use the descriptor, and `closing` once no other may begin. The last of them closes it: none meets a number
    /// that the system has given to something else.
    private let users = Atomic<UInt32>(0)
    private static let closing: UInt32 = 1 << 31
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
        endUse()
    }

    package func attach(_ handler: LoopHandler, interest: Readiness) {
        if let known = self.handler {
            // The system watches the descriptor already.
            handler.loop.replace(known, by: handler)
            self.handler = handler
            setInterest(interest)
        } else {
            self.handler = handler
            self.interest = interest
            handler.loop.register(handler, descriptor: descriptor, interest: interest)
        }
    }

    package func setInterest(_ interest: Readiness) {
        guard let handler, interest != self.interest else { return }
        self.interest = interest
        handler.loop.change(handler, descriptor: descriptor, interest: interest)
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        using { unsafe System.read(descriptor, into: buffer) } ?? .endOfStream
    }

    package func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        let result = using { unsafe System.write(descriptor, from: buffer) } ?? .failed(EPIPE)
        if case .bytes(let count) = result {
            acceptedBytes.store(written &+ count, ordering: .relaxed)
        }
        return result
    }

    package var written: Int { acceptedBytes.load(ordering: .relaxed) }

    package var progress: StreamProgress {
        let written = written
        let unacknowledged = using { System.unacknowledged(descriptor) } ?? .max
        return StreamProgress(written: written, acknowledged: max(0, written - unacknowledged))
    }

    package func endWriting() {
        hasEndedWriting = true
        _ = using { shutdown(descriptor, Int32(SHUT_WR)) }
    }

    package func detach() {
        guard let handler else { return }
        handler.loop.unregister(handler, descriptor: descriptor)
        self.handler = nil
    }

    package func close() {
        if let handler { handler.loop.unregister(handler, closing: descriptor) }
        handler = nil
        // A child process has a copy of the descriptor between its fork and its exec, which would keep the connection open.
        if !hasEndedWriting { _ = using { shutdown(descriptor, Int32(SHUT_RDWR)) } }
        endUse()
    }

    package func abort() {
        _ = using { System.reset(descriptor) }
        close()
    }

    /// Calls `body`, unless the stream is closed.
    private func using<Result>(_ body: () -> Result) -> Result? {
        var count = users.load(ordering: .relaxed)
        while true {
            guard count < Self.closing else { return nil }
            let attempt = users.weakCompareExchange(
                expected: count, desired: count + 1, successOrdering: .acquiring, failureOrdering: .relaxed)
            if attempt.exchanged { break }
            count = attempt.original
        }
        defer {
            if users.subtract(1, ordering: .acquiringAndReleasing).newValue == Self.closing {
                _ = closeDescriptor(descriptor)
            }
        }
        return body()
    }

    /// Closes the descriptor, or leaves that to the last call that uses it.
    private func endUse() {
        let before = users.bitwiseOr(Self.closing, ordering: .acquiringAndReleasing).oldValue
        if before == 0 { _ = closeDescriptor(descriptor) }
    }
}

/// `close(2)` under a name that does not collide with methods.
func closeDescriptor(_ descriptor: Int32) -> Int32 {
    close(descriptor)
}

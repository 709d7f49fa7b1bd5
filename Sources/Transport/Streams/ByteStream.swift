import Synchronization

/// A connected, non-blocking stream of bytes: a socket, or one end of an in-memory pair.
///
/// `attach`, `setInterest` and `close` are called on the loop's thread. `write` may be called from any thread, but
/// by one at a time (the link's `sending` flag sees to it); `read` on the loop's thread.
package protocol ByteStream: AnyObject, Sendable {
    /// Reports readiness to `handler` from now on, and to no other.
    func attach(_ handler: LoopHandler, interest: Readiness)
    func setInterest(_ interest: Readiness)
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult
    func write(from buffer: UnsafeRawBufferPointer) -> IOResult
    /// How far what was written has come; from any thread.
    var progress: StreamProgress { get }
    /// Bytes that the stream has accepted since it was opened; from any thread.
    var written: Int { get }
    /// Ends our direction of the stream; reading continues.
    func endWriting()
    /// Stops reports to the handler that is attached; another may be attached then.
    func detach()
    /// Stops reports and ends the stream both ways; what the system holds of our last bytes still goes out.
    func close()
    /// Does the same without waiting for a peer that is silent: what it has not taken is dropped, and its system is
    /// notified by a reset.
    func abort()
    /// Whether callers may write from their own threads.
    var callersMaySend: Bool { get }
    /// Whether bytes that were written wait in this process, and are lost if it exits before they have left.
    var keepsWrittenBytes: Bool { get }
    /// When the last written byte that is held back on purpose will be sent; nil if no bytes are held back. On the
    /// loop's thread.
    var heldBytesDue: Int64? { get }
    /// The peer, for messages to people.
    var peerName: String { get }
    /// What a `failed` result of this stream means; `code` is what it carried.
    func failure(_ code: Int32) -> TransportError
}

extension ByteStream {
    package func abort() { close() }

    package var written: Int { progress.written }

    package var keepsWrittenBytes: Bool { false }

    package var heldBytesDue: Int64? { nil }

    /// Writes `bytes` from `offset`, which it moves, to `end`, until all of them are written or the stream takes no more.
    ///
    /// - Returns: what came of the last attempt: `.bytes` if none is left.
    func write(_ bytes: [UInt8], from offset: inout Int, to end: Int, attempts: inout Int) -> IOResult {
        while offset < end {
            // Safe: the stream reads the buffer during the call only.
            let result = unsafe bytes.withUnsafeBytes {
                unsafe write(from: UnsafeRawBufferPointer(rebasing: $0[offset..<end]))
            }
            attempts += 1
            guard case .bytes(let count) = result else { return result }
            offset += count
        }
        return .bytes(0)
    }

    package func failure(_ code: Int32) -> TransportError { .lost(peerName, code) }
}

/// How far the bytes of a stream have come.
package struct StreamProgress: Sendable, Equatable {
    /// Bytes that the stream has accepted since it was opened.
    package var written = 0
    /// Bytes among them that the peer's system has acknowledged: a lower bound while others are being written.
    package var acknowledged = 0

    /// Bytes among them that the stream keeps no longer: all, unless it keeps written bytes.
    package var passedOn = 0

    /// Changes when bytes have moved: when some were acknowledged or, where the stream reports no acknowledgements, passed on.
    var movement: Movement { Movement(acknowledged: acknowledged, passedOn: acknowledged == 0 ? passedOn : 0) }

    struct Movement: Equatable {
        var acknowledged = 0
        var passedOn = 0
        var bytes: Int { acknowledged + passedOn }
    }

    package init(written: Int = 0, acknowledged: Int = 0, passedOn: Int? = nil) {
        self.written = written
        self.acknowledged = acknowledged
        self.passedOn = passedOn ?? written
    }
}

/// A stream that no selector watches: it reports by itself when it has become ready.
package protocol NotifyingStream: ByteStream {
    /// What the stream is ready for now.
    var readiness: Readiness { get }
}

/// Plays the selector for a stream: notifies the handler on its loop as long as the stream is ready for what the handler
/// is interested in. Allocates nothing to do so.
package final class StreamNotifier: LoopHandler, @unchecked Sendable {
    // Sendable because `isPosted` is atomic and the rest is touched on the loop's thread only.
    /// Held until it is detached, as the loop holds the handler of a socket.
    package var handler: LoopHandler?
    private let stream: any NotifyingStream
    package var interest: Readiness
    private let isPosted = Atomic(false)

    package init(handler: LoopHandler, stream: any NotifyingStream, interest: Readiness) {
        self.handler = handler
        self.stream = stream
        self.interest = interest
        super.init(loop: handler.loop)
    }

    /// The stream may have become ready; from any thread.
    package func notify() {
        if isPosted.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged {
            loop.post(self, 0)
        }
    }

    override package func posted(_ code: Int, at now: Int64) {
        isPosted.store(false, ordering: .releasing)
        let ready = stream.readiness.intersection(interest.union(.hangUp))
        guard !ready.isEmpty, let handler else { return }
        handler.ready(ready, at: now)
        // Level-triggered: notify again until there is nothing to report.
        if self.handler != nil, !stream.readiness.intersection(interest.union(.hangUp)).isEmpty { notify() }
    }
}

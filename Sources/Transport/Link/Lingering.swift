import MessagingWire

/// Reads and drops what a peer still sends after we have written everything, until it ends. Once the peer's system has our
/// last bytes it is given a second for that; as long as they move, they may take their time.
///
/// Closing a socket with unread bytes resets the connection, and a reset can destroy our own last bytes on their way: a
/// server that did not read DISCONNECT publishes the will.
final class Lingering: LoopHandler, @unchecked Sendable {
    // Sendable because all is touched on the loop's thread only.
    private let stream: any ByteStream
    private var closing = MovementWatch()
    /// Called when the peer has ended, or none of the last bytes has moved for a second.
    private var waiter: (() -> Void)?
    /// The progress at the last check.
    private var movement: StreamProgress.Movement

    /// The interval between checks of the progress, in nanoseconds.
    private static let pause: Int64 = 1_000_000_000

    private init(_ stream: any ByteStream, loop: EventLoop, _ waiter: (() -> Void)?) {
        self.stream = stream
        self.waiter = waiter
        movement = stream.progress.movement
        super.init(loop: loop)
    }

    /// Ends our direction of the stream, and takes the place of the handler that is attached.
    ///
    /// - Parameter waiter: called once on the loop's thread, when the peer has ended its direction too, or none of the last
    ///   bytes has moved for a second.
    static func start(_ stream: any ByteStream, loop: EventLoop, at now: Int64, waiter: (() -> Void)? = nil) {
        let lingering = Lingering(stream, loop: loop, waiter)
        stream.endWriting()
        stream.attach(lingering, interest: .read)
        loop.setDeadline(lingering, to: now.advanced(byNanoseconds: pause))
    }

    override func ready(_ readiness: Readiness, at now: Int64) {
        switch unsafe stream.read(into: loop.readBuffer) {
        case .bytes, .wouldBlock: break
        // The peer may have ended its direction alone, and still wait for ours.
        case .endOfStream where stream.heldBytesDue != nil: stream.detach()
        case .endOfStream, .failed: finish()
        }
    }

    override func deadlineReached(at now: Int64) {
        let progress = stream.progress
        let isStill = progress.movement == movement
        if isStill { resume() }
        movement = progress.movement
        if (stream.heldBytesDue ?? 0) <= now {
            _ = closing.begin(at: now, progress)
            let hasHadItsSecond = isStill && progress.acknowledged >= progress.written
            if hasHadItsSecond || closing.isDue(at: now, progress) { return finish() }
        }
        loop.setDeadline(self, to: now.advanced(byNanoseconds: Self.pause))
    }

    private func finish() {
        loop.setDeadline(self, to: .max)
        stream.close()
        resume()
    }

    private func resume() {
        waiter.take()?()
    }
}

/// Watches over bytes that wait, such as the last ones of a connection: as long as they move, they may take their time.
struct MovementWatch {
    private var deadline = Int64.max
    private var start = StreamProgress.Movement()

    /// Timeout for a peer that takes none of them, in nanoseconds.
    static let patience: Int64 = 5_000_000_000

    /// Starts the watch unless it runs; returns when to look again.
    mutating func begin(at now: Int64, _ progress: @autoclosure () -> StreamProgress) -> Int64 {
        if deadline == .max {
            deadline = now.advanced(byNanoseconds: Self.patience)
            start = progress().movement
        }
        return deadline
    }

    /// Whether the timeout has passed; ends the watch if bytes have moved since.
    mutating func isDue(at now: Int64, _ progress: StreamProgress) -> Bool {
        guard now >= deadline else { return false }
        if progress.movement == start { return true }
        deadline = .max
        return false
    }
}

/// Watches over bytes that callers wait for. An object, so that a connection without waiting callers has no memory for
/// it.
final class StallWatch {
    private var watch = MovementWatch()
    /// When the bytes stopped to move, once that was noticed.
    private(set) var start = Int64.max

    /// Starts the watch unless it runs; returns when to look again.
    func begin(at now: Int64, _ progress: @autoclosure () -> StreamProgress) -> Int64 {
        watch.begin(at: now, progress())
    }

    /// Whether no byte has moved for so long; begins again.
    func isDue(at now: Int64, _ progress: StreamProgress) -> Bool {
        guard watch.isDue(at: now, progress) else { return false }
        watch = MovementWatch()
        start = min(start, now.advanced(byNanoseconds: -MovementWatch.patience))
        return true
    }
}

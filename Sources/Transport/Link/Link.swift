import Synchronization

/// Joins a protocol machine to a stream: the machine and its outbox behind one lock, driven by one event loop.
///
/// **Sending.** Callers run `perform` on their own thread: lock, let the machine encode into its outbox, unlock.
/// Whoever finds bytes there while nobody is sending either wakes the loop or takes the `sending` token and writes
/// by itself. The holder of the token swaps the outbox out, writes without the lock, and looks again; what was
/// appended meanwhile goes out in its next round. So one `write` carries everything that came in during the last.
///
/// **Receiving.** The loop reads into its one large buffer, lets the machine parse in place under the lock, and
/// performs the effects (deliveries, resumed continuations) after the lock is released. The link keeps only the
/// tail of an incomplete packet.
///
/// A link outlives its connections: `attach` gives it the next stream, and the machine hears of every end.
package final class Link<Machine: LinkMachine & ~Copyable>: LoopHandler, @unchecked Sendable {
    // Sendable because shared fields are in `state`, fields of the sender belong to whoever set `state.sending`,
    // and the rest is touched on the loop's thread only.
    struct State: ~Copyable, Sendable {
        var machine: Machine
        var stream: (any ByteStream)?
        /// Somebody owns `wire` and will look at the outbox again before letting go.
        var sending = false
        /// The loop was asked to flush and has not looked yet.
        var flushIsDue = false
        /// The deadline that the loop knows.
        var armedDeadline = Int64.max
        var readingIsPaused = false
        var roomWaiters = RoomWaiters()
        /// Bytes in the outbox from which on callers wait.
        var outboxLimit: Int
    }

    let state: Mutex<State>

    // Owned by the sender (`state.sending`).
    var wire: [UInt8] = []
    var wireOffset = 0
    var wireStream: (any ByteStream)?
    private(set) var bytesSent = 0

    // The loop's thread only.
    var tail: [UInt8] = []
    var sendIsBlocked = false
    var layers: LayerStack?
    var lastScratch: Machine.Scratch?

    /// Bytes that a caller sends by itself instead of waking the loop.
    static var selfSendThreshold: Int { 64 * 1024 }

    package init(machine: consuming Machine, loop: EventLoop, outboxLimit: Int) {
        state = Mutex(State(machine: machine, outboxLimit: outboxLimit))
        super.init(loop: loop)
    }

    // MARK: From any thread

    /// Runs `body` on the machine under the lock, then sees to it that what it wrote leaves.
    ///
    /// - Parameter urgent: send at once on this thread if nobody else is sending, rather than wake the loop:
    ///   saves a thread switch where somebody waits for the answer.
    package func perform<Result, Failure: Error>(
        urgent: Bool = false, _ body: (inout Machine) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var action = LinkAction.nothing
        defer { act(action) }
        return try state.withLock { (state) throws(Failure) -> Result in
            defer { action = Self.decide(&state, urgent: urgent) }
            return try body(&state.machine)
        }
    }

    /// Whether a caller should wait for `room()` before it adds more.
    package var outboxIsFull: Bool {
        state.withLock { $0.outboxIsFull }
    }

    private static func decide(_ state: inout State, urgent: Bool) -> LinkAction {
        if state.machine.nextDeadline < state.armedDeadline || state.machine.wantsClose
            || state.machine.wantsReadingPaused != state.readingIsPaused
        {
            return .update
        }
        let waiting = state.machine.output.count
        guard waiting > 0, !state.sending, let stream = state.stream else { return .nothing }
        if (urgent || waiting >= selfSendThreshold) && stream.callersMaySend {
            state.sending = true
            return .send
        }
        guard !state.flushIsDue else { return .nothing }
        state.flushIsDue = true
        return .wakeLoop
    }

    private func act(_ action: LinkAction) {
        switch action {
        case .nothing: break
        case .wakeLoop: loop.post(self, LinkPost.flush)
        case .update: loop.post(self, LinkPost.update)
        case .send: send(rounds: 4)
        }
    }

    /// Gives the link its next connection; the machine hears of it once all layers are open.
    package func attach(_ stream: any ByteStream, layers: LayerStack? = nil) {
        loop.execute { self.adopt(stream, layers: layers) }
    }

    /// Ends the connection, if there is one, as if the peer had; the machine hears of it.
    package func dropConnection() {
        loop.post(self, LinkPost.drop)
    }

    // MARK: On the loop's thread

    override package func posted(_ code: Int, at now: Int64) {
        switch code {
        case LinkPost.flush, LinkPost.update: settle(at: now)
        case LinkPost.continueSending: send(rounds: 16)
        case LinkPost.drop: connectionEnded(nil, at: now)
        default: break
        }
    }

    override package func ready(_ readiness: Readiness, at now: Int64) {
        if readiness.contains(.write) || (sendIsBlocked && readiness.contains(.hangUp)) {
            continueBlockedSend()
        }
        if readiness.contains(.read) || readiness.contains(.hangUp) {
            receive(at: now, mustEnd: !readiness.contains(.read))
        }
    }

    override package func deadlineReached(at now: Int64) {
        if let layers, !layers.isOpen {
            if now >= layers.deadline {
                connectionEnded(layers.timeout, at: now)
            } else {
                loop.setDeadline(self, to: layers.deadline)
            }
            return
        }
        let scratch = self.scratch
        state.withLock { state in
            state.armedDeadline = .max
            state.machine.handleTimeout(at: now, into: scratch)
            state.trimIfIdle()
        }
        scratch.perform(RawSpan())
        settle(at: now)
    }

    var scratch: Machine.Scratch {
        if let lastScratch { return lastScratch }
        let scratch = loop.scratch(Machine.Scratch.self) { Machine.Scratch() }
        lastScratch = scratch
        return scratch
    }

    private func adopt(_ stream: any ByteStream, layers: LayerStack?) {
        let now = MonotonicClock.now
        connectionEnded(nil, at: now)
        self.layers = layers
        tail.removeAll()
        stream.attach(self, interest: .read)
        state.withLock { state in
            state.stream = stream
            state.readingIsPaused = false
        }
        guard let layers else { return open(at: now) }
        do {
            loop.setDeadline(self, to: layers.deadline)
            try layers.opened(at: now)
            if layers.isOpen { open(at: now) }
            settle(at: now)
        } catch {
            connectionEnded(error, at: now)
        }
    }

    func open(at now: Int64) {
        let scratch = self.scratch
        state.withLock { $0.machine.connectionOpened(at: now, into: scratch) }
        scratch.perform(RawSpan())
        settle(at: now)
    }

    /// After anything that may have changed the machine: deadline, pause, flush, close.
    func settle(at now: Int64) {
        var interest: (any ByteStream, Bool)?
        var deadline = Int64.max
        let next = state.withLock { state -> SettleStep in
            state.flushIsDue = false
            if let layers, !layers.isOpen {
                deadline = layers.deadline
            } else {
                deadline = state.machine.nextDeadline
            }
            state.armedDeadline = deadline
            guard let stream = state.stream else { return .nothing }
            if state.machine.wantsReadingPaused != state.readingIsPaused {
                state.readingIsPaused.toggle()
                interest = (stream, state.readingIsPaused)
            }
            if state.sending { return .nothing }
            if !state.machine.output.isEmpty || layers?.hasOutput == true {
                state.sending = true
                return .send
            }
            return state.machine.wantsClose ? .close : .nothing
        }
        loop.setDeadline(self, to: deadline)
        if let (stream, paused) = interest {
            stream.setInterest(sendIsBlocked ? (paused ? .write : [.read, .write]) : (paused ? [] : .read))
        }
        switch next {
        case .nothing: break
        case .send: send(rounds: 16)
        case .close: closeInOrder(at: now)
        }
    }

    /// The machine has said its last word and it is written: ends our side and lets the peer's last bytes run out,
    /// so that closing with unread bytes does not reset what we sent.
    private func closeInOrder(at now: Int64) {
        guard let stream = state.withLock({ $0.stream }) else { return }
        detachStream(nil, at: now)
        Lingering.start(stream, loop: loop, at: now)
    }

    func connectionEnded(_ error: TransportError?, at now: Int64) {
        guard let stream = state.withLock({ $0.stream }) else { return }
        stream.close()
        detachStream(error, at: now)
    }

    private func detachStream(_ error: TransportError?, at now: Int64) {
        let scratch = self.scratch
        let waiters = state.withLock { state in
            state.stream?.detach()
            state.stream = nil
            state.readingIsPaused = false
            state.machine.output.removeAll()
            state.machine.connectionClosed(error, at: now, into: scratch)
            if sendIsBlocked { state.sending = false }
            return state.roomWaiters.takeAll()
        }
        if sendIsBlocked {
            sendIsBlocked = false
            wire.removeAll()
            wireOffset = 0
            wireStream = nil
        }
        layers = nil
        tail.removeAll()
        waiters.resume()
        scratch.perform(RawSpan())
        settle(at: now)
    }
}

/// What is left to do for a caller once the lock is released.
private enum LinkAction {
    case nothing, wakeLoop, send, update
}

private enum SettleStep {
    case nothing, send, close
}

/// What links post to themselves.
enum LinkPost {
    static let flush = 0
    static let update = 1
    static let continueSending = 2
    static let drop = 3
}

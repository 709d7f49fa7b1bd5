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
/// A link outlives its connections: `attach` gives it the next stream, and the machine hears of every end. The loop
/// keeps a link alive while it has a connection or a deadline: owners end the connection when they go.
package final class Link<Machine: LinkMachine & ~Copyable>: LoopHandler, @unchecked Sendable {
    // Sendable because shared fields are in `state`, fields of the sender belong to whoever set `state.sending`,
    // and the rest is touched on the loop's thread only.
    struct State: ~Copyable, Sendable {
        var machine: Machine
        var stream: (any ByteStream)?
        /// Whether callers may write to `stream` from their own threads; layers are the loop's alone.
        var callersMaySend = false
        /// Somebody owns `wire` and will look at the outbox again before letting go.
        var sending = false
        /// Why nothing more can be written to `stream`, until the loop has ended the connection.
        var broken: TransportError?
        /// The loop was asked to settle and has not looked yet.
        var settleIsDue = false
        /// The deadline that the loop knows.
        var armedDeadline = Int64.max
        var readingIsPaused = false
        var roomWaiters = RoomWaiters()
        var tap: (any LinkTap)?
        /// Bytes in the outbox from which on callers wait.
        let outboxLimit: Int
        var traffic = LinkTraffic()
    }

    let state: Mutex<State>

    // Owned by the sender (`state.sending`).
    var wire: [UInt8] = []
    var wireOffset = 0
    var wireStream: (any ByteStream)?
    /// Swapped out of the outbox, on its way through the layers.
    var plain: [UInt8] = []
    /// Not yet added to `state.traffic`.
    var sent = LinkTraffic()

    // The loop's thread only.
    var tail: [UInt8] = []
    var received = LinkTraffic()
    var sendIsBlocked = false
    /// What the selector watches the stream for.
    var watched: Readiness = []
    var isReadingPaused = false
    var layers: LayerStack?
    var lastScratch: Machine.Scratch?
    var closing = ClosingProgress()

    /// Bytes that a caller sends by itself instead of waking the loop.
    static var selfSendThreshold: Int { 64 * 1024 }

    /// Nanoseconds between two looks of the loop at an outbox that grows.
    static var gatherPause: Int64 { 1_500 }

    package init(machine: consuming Machine, loop: EventLoop, outboxLimit: Int) {
        state = Mutex(State(machine: machine, outboxLimit: max(1, outboxLimit)))
        super.init(loop: loop)
    }

    // MARK: From any thread

    /// Runs `body` on the machine under the lock, then sees to it that what it wrote leaves.
    ///
    /// - Parameter urgent: somebody waits for the answer: unless others do as well, send at once on this thread rather
    ///   than wake the loop, which saves a thread switch.
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

    /// What was moved so far; current whenever nothing is under way.
    package var traffic: LinkTraffic {
        state.withLock { $0.traffic }
    }

    /// Lets `tap` see what comes and goes from now on.
    package func setTap(_ tap: any LinkTap) {
        state.withLock { $0.tap = tap }
    }

    private static func decide(_ state: inout State, urgent: Bool) -> LinkAction {
        var loopHasToLook = state.machine.nextDeadline < state.armedDeadline
        var sends = false
        if state.stream != nil {
            let waiting = state.machine.output.count
            if waiting > 0 && !state.sending {
                sends =
                    state.callersMaySend && ((urgent && state.machine.isLatencyBound) || waiting >= selfSendThreshold)
                state.sending = sends
                loopHasToLook = loopHasToLook || !sends
            }
            loopHasToLook =
                loopHasToLook || state.machine.wantsClose || state.wantsReadingPaused != state.readingIsPaused
        }
        // One post is enough until the loop has looked.
        let wakes = loopHasToLook && !state.settleIsDue
        if wakes { state.settleIsDue = true }
        return sends ? (wakes ? .sendAndWake : .send) : (wakes ? .wakeLoop : .nothing)
    }

    private func act(_ action: LinkAction) {
        switch action {
        case .nothing: break
        case .wakeLoop: loop.post(self, LinkPost.settle)
        case .send: send(rounds: 4)
        case .sendAndWake:
            send(rounds: 4)
            loop.post(self, LinkPost.settle)
        }
    }

    /// Gives the link its next connection; the machine hears of it once all layers are open.
    ///
    /// A connection that is still there is ended first. Attaching and dropping happen in the order of the calls.
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
        case LinkPost.settle:
            gather()
            settle(at: now)
        case LinkPost.continueSending: send(rounds: 16)
        case LinkPost.broken: endBrokenConnection(at: now)
        case LinkPost.drop: connectionEnded(nil, at: now)
        default: break
        }
    }

    override package func ready(_ readiness: Readiness, at now: Int64) {
        if readiness.contains(.write) || (sendIsBlocked && readiness.contains(.hangUp)) {
            continueBlockedSend()
        }
        if readiness.contains(.read) || readiness.contains(.hangUp) {
            receive(at: now, evenIfPaused: !readiness.contains(.read))
        }
    }

    override package func deadlineReached(at now: Int64) {
        if closing.isDue(at: now, bytesSent: traffic.bytesSent) {
            // The peer takes nothing of our last bytes.
            connectionEnded(nil, at: now)
        } else if let layers, !layers.isOpen {
            if now >= layers.deadline { return connectionEnded(layers.timeout, at: now) }
            settle(at: now)
        } else {
            let scratch = self.scratch
            state.withLock { state in
                state.armedDeadline = .max
                state.machine.handleTimeout(at: now, into: scratch)
                if state.machine.output.isEmpty && !state.sending { trimBuffers(&state) }
            }
            scratch.perform(RawSpan())
            settle(at: now)
        }
    }

    var scratch: Machine.Scratch {
        if let lastScratch { return lastScratch }
        let scratch = loop.scratch(Machine.Scratch.self) { Machine.Scratch() }
        lastScratch = scratch
        return scratch
    }

    /// After anything that may have changed the machine: deadline, pause, flush, close.
    func settle(at now: Int64) {
        var deadline = Int64.max
        let (next, stream) = state.withLock { state -> (SettleStep, (any ByteStream)?) in
            state.settleIsDue = false
            state.traffic += received
            received = LinkTraffic()
            if let layers, !layers.isOpen {
                deadline = layers.deadline
            } else {
                deadline = state.machine.nextDeadline
            }
            var next = SettleStep.nothing
            if state.stream != nil {
                isReadingPaused = state.wantsReadingPaused
                state.readingIsPaused = isReadingPaused
                if state.machine.wantsClose {
                    deadline = min(deadline, closing.begin(at: now, bytesSent: state.traffic.bytesSent))
                }
                if !state.sending {
                    let hasOutput = !state.machine.output.isEmpty || layers?.hasOutput == true
                    state.sending = hasOutput
                    next = hasOutput ? .send : state.machine.wantsClose ? .close : .nothing
                }
            }
            state.armedDeadline = deadline
            return (next, state.stream)
        }
        loop.setDeadline(self, to: deadline)
        if let stream { watch(stream) }
        switch next {
        case .nothing: break
        case .send: send(rounds: 16)
        case .close: closeInOrder(at: now)
        }
    }

    /// Tells the selector what the stream is to be watched for, if that has changed.
    func watch(_ stream: any ByteStream) {
        var wanted: Readiness = isReadingPaused ? [] : .read
        if sendIsBlocked { wanted.insert(.write) }
        guard wanted != watched else { return }
        watched = wanted
        stream.setInterest(wanted)
    }
}

extension Link.State where Machine: ~Copyable {
    var outboxIsFull: Bool { machine.output.count >= outboxLimit }

    /// Callers wait at the limit; what grows beyond twice of it are answers to a peer that sends but does not read.
    /// The outbox is taken as a whole, so that there is nothing to flap between.
    var wantsReadingPaused: Bool {
        let (twice, overflow) = outboxLimit.multipliedReportingOverflow(by: 2)
        return machine.wantsReadingPaused || (!overflow && machine.output.count >= twice)
    }
}

/// What is left to do for a caller once the lock is released.
private enum LinkAction {
    case nothing, wakeLoop, send, sendAndWake
}

private enum SettleStep {
    case nothing, send, close
}

/// What links post to themselves.
enum LinkPost {
    static let settle = 0
    /// Hands the `sending` token to the loop.
    static let continueSending = 1
    static let broken = 2
    static let drop = 3
}

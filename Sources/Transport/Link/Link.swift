public import MessagingWire
public import Synchronization

/// Joins a protocol machine to a stream: the machine and its outbox behind one lock, driven by one event loop.
///
/// **Sending.** Callers run `perform` on their own thread: lock, let the machine encode into its outbox, unlock.
/// A caller that finds bytes there while no thread is sending either wakes the loop or takes the `sending` token and
/// writes by itself. The holder of the token swaps the outbox out, writes without the lock, and looks again; what was
/// appended meanwhile goes out in its next round. So one `write` carries everything that came in during the last.
///
/// **Receiving.** The loop reads into its one large buffer, lets the machine parse in place under the lock, and
/// performs the effects (deliveries, resumed continuations) after the lock is released. The link keeps only the
/// tail of an incomplete packet.
///
/// A link outlives its connections: `attach` gives it the next stream, and the machine is notified of every end. The
/// loop keeps a link alive while it has a connection or a deadline: owners end the connection when they go.
@usableFromInline
package final class Link<Machine: LinkMachine & ~Copyable>: LoopHandler, @unchecked Sendable {
    // Sendable because shared fields are in `state` or under its lock, fields for writing belong to the thread
    // that set `state.sending`, and the rest is touched on the loop's thread only.
    /// What callers share with the loop. `Lock` is the standard library's `Mutex`.
    @usableFromInline package let state: Lock<LinkState>
    /// The machine, under the lock of `state`, which is why unchecked access is safe. It is not inside the lock,
    /// because the type of the lock would then depend on the machine's type, and code that serves all machines would
    /// have to look it up at run time with each access. It is boxed for the same reason: the offsets of the fields
    /// below stay constant.
    @safe @exclusivity(unchecked) @usableFromInline package var machine: Box<Machine>

    /// The current connection, and connections that were attached and that the loop has not adopted yet.
    let connections = Atomic<Int32>(0)

    // Safe without checks for overlapping accesses, which cost more than a small write: each field below has one owner
    // at a time, and no access lasts while something else is called that may use the same field.

    // Owned by the thread that has set `state.sending`. The small field is first, where there is room for it.
    /// Whether `wire` is what was taken out of the outbox, unchanged by layers.
    @safe @exclusivity(unchecked) var wireIsChunk = false
    @safe @exclusivity(unchecked) var wire: [UInt8] = []
    @safe @exclusivity(unchecked) var wireOffset = 0
    /// A payload that belongs into `wire` and is written without a copy. `wireOffset` counts its bytes.
    @safe @exclusivity(unchecked) var wirePayload: LargePayload?
    @safe @exclusivity(unchecked) var wireStream: (any ByteStream)?
    /// Swapped out of the outbox for the layers; kept until their output, in `wire`, is written.
    @safe @exclusivity(unchecked) var plain: [UInt8] = []
    /// Not yet added to `state.traffic`.
    @safe @exclusivity(unchecked) var sent = LinkTraffic.Half()

    // The loop's thread only.
    @safe @exclusivity(unchecked) var tail: [UInt8] = []
    @safe @exclusivity(unchecked) var received = LinkTraffic.Half()
    @safe @exclusivity(unchecked) var sendIsBlocked = false
    /// What the selector watches the stream for.
    @safe @exclusivity(unchecked) var watched: Readiness = []
    @safe @exclusivity(unchecked) var isReadingPaused = false
    /// Whether reading is paused by the link, because the outbox is full, and not by the machine.
    @safe @exclusivity(unchecked) var isReadingHeldUp = false
    /// Whether our direction of the stream has ended, and what is left of the connection is another handler's.
    @safe @exclusivity(unchecked) var isFinishing = false
    @safe @exclusivity(unchecked) var layers: LayerStack?
    @safe @exclusivity(unchecked) var lastAfterLock: Machine.AfterLock?
    var closing = MovementWatch()
    /// While something waits for the peer to take more bytes.
    @safe @exclusivity(unchecked) var stall: StallWatch?

    /// Bytes that a caller sends by itself instead of waking the loop.
    @inlinable package static var selfSendThreshold: Int { 64 * 1024 }
    /// Received bytes after which machines let others have the lock.
    package static var longestPiece: Int { 64 * 1024 }

    package init(machine: consuming Machine, loop: EventLoop, maximumOutboxBytes: Int) {
        state = Lock(LinkState(maximumOutboxBytes: max(1, maximumOutboxBytes)))
        self.machine = Box(machine)
        super.init(loop: loop)
    }

    // MARK: From any thread

    /// Whether a caller should wait for `outboxRoom()` before it adds more.
    package var outboxIsFull: Bool {
        state.withLock { outboxIsFull($0) }
    }

    /// What was moved so far; current whenever nothing is under way.
    package var traffic: LinkTraffic {
        state.withLock { $0.traffic }
    }

    /// Whether nothing more can be sent on the connection, because it is about to end or is gone.
    package var isEnding: Bool {
        state.withLock { $0.stream == nil || $0.broken != nil || machine.value.wantsClose }
    }

    /// The object that sees the traffic, if there is one.
    package var tap: (any LinkTap)? {
        state.withLock { $0.tap }
    }

    /// The tap that sees the traffic: the present one, or one that `make` makes and that sees it from now on.
    package func tap<Tap: LinkTap>(orElse make: () -> Tap) -> Tap {
        if let known = tap as? Tap { return known }
        let made = make()
        return state.withLock { state in
            if let known = state.tap as? Tap { return known }
            state.tap = made
            return made
        }
    }

    /// Gives the link its next connection and notifies the machine. The layers are open: see ``LayerHandshake``.
    ///
    /// A connection that is still there is ended first. Attaching and dropping happen in the order of the calls.
    package func attach(_ stream: any ByteStream, layers: LayerStack? = nil) {
        connections.add(1, ordering: .relaxed)
        loop.execute { self.adopt(stream, layers: layers) }
    }

    /// Does the same before it returns; on the loop's thread.
    package func attachNow(_ stream: any ByteStream, layers: LayerStack? = nil) {
        connections.add(1, ordering: .relaxed)
        adopt(stream, layers: layers)
    }

    /// Ends the connection, if there is one, as if the peer had; the machine is notified.
    package func dropConnection() {
        // Most clients are released after their connection has ended: the loop need not wake for them.
        if connections.load(ordering: .relaxed) > 0 { loop.post(self, LinkPost.drop) }
    }

    /// Does the same before it returns. Call it on the loop's thread, but not while effects are performed.
    package func dropConnectionNow() { endConnection(nil, at: loop.now) }

    /// Ends the connection if the machine wants that, after what is left to send. Bytes that the stream has no room for
    /// are sent later. Call it on the loop's thread, but not while effects are performed.
    package func closeNow() {
        // The machine's last bytes, those of the layers, then the end.
        for _ in 0..<3 { settle(at: loop.now) }
    }

    // MARK: On the loop's thread

    override package func posted(_ code: Int, at now: Int64) {
        switch code {
        case LinkPost.settle:
            settle(at: now)
        case LinkPost.continueSending: sendOnLoop(at: now)
        case LinkPost.broken: endBrokenConnection(at: now)
        case LinkPost.drop: endConnection(nil, at: now)
        case LinkPost.reportDiscarded: reportDiscarded()
        default: assert(false, "The loop has passed on what no link posts.")
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

    override package func deadlineReached(at now: Int64) { timePassed(at: now) }

    override package func systemSlept(since start: Int64, at now: Int64) {
        // That the peer took nothing meanwhile proves nothing.
        if stall?.start == .max { stall = nil }
        closing = MovementWatch()
        timePassed(at: now, asleepSince: start)
    }

    private func timePassed(at now: Int64, asleepSince start: Int64? = nil) {
        let stream = state.withLock { $0.stream }
        let streamProgress = stream?.progress ?? StreamProgress()
        if closing.isDue(at: now, streamProgress) {
            // The peer takes nothing of our last bytes.
            endConnection(nil, at: now)
        } else {
            let afterLock = self.afterLock
            let isDue = stall?.isDue(at: now, streamProgress) == true
            state.withLock { state in
                state.armedDeadline = .max
                if isDue, !state.standsStill, waitsForPeer(state) {
                    state.standsStill = true
                    machine.value.report(.began, into: afterLock)
                }
                let progress = progress(state, streamProgress)
                if let start { machine.value.systemSlept(since: start, at: now, progress: progress) }
                machine.value.handleTimeout(at: now, progress: progress, into: afterLock)
                if machine.value.outputCount == 0 && !state.sending { trimBuffers(&state) }
            }
            afterLock.perform(RawSpan())
            settle(at: now)
        }
    }

    var afterLock: Machine.AfterLock {
        if let lastAfterLock { return lastAfterLock }
        let afterLock = loop.sharedObject(Machine.AfterLock.self) { Machine.AfterLock() }
        lastAfterLock = afterLock
        return afterLock
    }

    /// After anything that may have changed the machine: deadline, pause, flush, close.
    func settle(at now: Int64) {
        var deadline = Int64.max
        var ended: StallWatch?
        let (next, stream) = state.withLock { state -> (SettleStep, (any ByteStream)?) in
            state.settleIsDue = false
            state.traffic.addReceived(received)
            received = LinkTraffic.Half()
            if !isFinishing, state.isAttached { pauseOrResumeReading(&state, at: now) }
            deadline = machine.value.nextDeadline
            var next = SettleStep.nothing
            if !isFinishing, let stream = state.stream {
                let waits = waitsForPeer(state)
                if !waits || state.standstillIsOver {
                    if state.standsStill { ended = stall }
                    stall = nil
                    (state.standsStill, state.standstillIsOver) = (false, false)
                }
                if waits {
                    let watch = stall ?? StallWatch()
                    stall = watch
                    deadline = min(deadline, watch.begin(at: now, stream.progress))
                }
                let wantsClose = machine.value.wantsClose
                if wantsClose && machine.value.abandonsOutput {
                    next = .abandon
                } else if !state.sending {
                    let hasOutput = machine.value.outputCount > 0 || layers?.hasOutput == true
                    state.sending = hasOutput
                    next = hasOutput ? .send : wantsClose ? .close : .nothing
                }
                if wantsClose && state.sending && next == .nothing {
                    deadline = min(deadline, closing.begin(at: now, stream.progress))
                }
            }
            state.armedDeadline = deadline
            assert(state.checkInvariants())
            checkInvariants(state)
            return (next, isFinishing ? nil : state.stream)
        }
        loop.setDeadline(self, to: deadline)
        if let stream { watch(stream) }
        if let ended {
            let (afterLock, time) = (self.afterLock, now - ended.start)
            state.withLock { _ in machine.value.report(.ended(after: time), into: afterLock) }
            afterLock.perform(RawSpan())
        }
        switch next {
        case .nothing: break
        case .send: sendOnLoop(at: now)
        case .close: closeInOrder(at: now)
        case .abandon: endConnection(nil, at: now)
        }
    }

    /// Whether to read, which the machine may not know; under the lock.
    private func pauseOrResumeReading(_ state: inout LinkState, at now: Int64) {
        state.answerBytes = layers?.outputCount ?? 0
        isReadingPaused = wantsReadingPaused(state)
        state.readingIsPaused = isReadingPaused
        let isHeldUp = isReadingPaused && !machine.value.wantsReadingPaused
        guard isHeldUp != isReadingHeldUp else { return }
        isReadingHeldUp = isHeldUp
        machine.value.setReadingHeldUp(isHeldUp, at: now)
    }

    /// Writes, and settles once more if the stream has no room for everything: the last bytes of a connection have a deadline.
    private func sendOnLoop(at now: Int64) {
        send(rounds: 16)
        if sendIsBlocked { settle(at: now) }
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

private enum SettleStep {
    case nothing, send, close, abandon
}

/// What links post to themselves.
enum LinkPost {
    static let settle = 0
    /// Hands the `sending` token to the loop.
    static let continueSending = 1
    static let broken = 2
    static let drop = 3
    static let reportDiscarded = 4
}

/// What a link and its callers share, but for the machine.
@usableFromInline
package struct LinkState: ~Copyable, Sendable {
    var stream: (any ByteStream)? { didSet { isAttached = stream != nil } }
    // Small fields are next to each other, because every idle client has them.
    @usableFromInline package private(set) var isAttached = false
    /// Whether callers may write to `stream` from their own threads; layers are the loop's alone.
    @usableFromInline package var callersMaySend = false
    /// Whether a thread owns `wire`; it checks the outbox again before it ends.
    @usableFromInline package var sending = false
    /// Whether the tap has not seen yet what the machine has received last. Until it has, callers send nothing, so that it
    /// sees answers behind what they answer.
    @usableFromInline package var receivedIsUnshown = false
    /// Whether the loop was asked to settle and has not done so yet.
    @usableFromInline package var settleIsDue = false
    @usableFromInline package var readingIsPaused = false
    /// Whether a standstill was reported whose end was not.
    @usableFromInline package var standsStill = false
    /// Whether there has been room in the outbox since.
    var standstillIsOver = false
    /// Why nothing more can be written to `stream`, until the loop has ended the connection.
    var broken: Shared<TransportError>?
    /// The deadline that the loop knows.
    @usableFromInline package var armedDeadline = Int64.max
    /// The callers that wait for room in the outbox: nil to try again, or why there will be none.
    var outboxWaiters = Waiters<String?>()
    var tap: (any LinkTap)?
    /// Bytes in the outbox from which on callers wait.
    @usableFromInline package let maximumOutboxBytes: Int
    var traffic = LinkTraffic()
    /// Bytes of this connection that were written to the stream or are in `wire`, in its order.
    var queuedBytes = 0
    /// Bytes that layers wrote by themselves and that are not in `wire` yet.
    @usableFromInline package var answerBytes = 0

    init(maximumOutboxBytes: Int) {
        self.maximumOutboxBytes = maximumOutboxBytes
    }
}

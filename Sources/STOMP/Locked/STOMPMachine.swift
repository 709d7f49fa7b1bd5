import MessagingShell
import MessagingWire
import STOMPCore
import Transport

/// The engine and what the client keeps beside it. Used under the link's lock only; results that need the loop's side go
/// into a ``STOMPAfterLock``, which is performed after the lock is released.
struct STOMPMachine: ClientMachine, ~Copyable {
    typealias ReceiptAnswer = Result<Void, STOMPError>

    var engine: STOMPEngine
    weak var core: STOMPClientCore?
    /// Callers that wait for the receipt of their frame.
    var receipts = Waiters<ReceiptAnswer>()
    /// Frames whose receipts are awaited together.
    var batches = SendBatches<STOMPReadySend?, ReceiptAnswer>()
    /// Frames that the engine took from `send`.
    var sentCount = 0
    /// Messages in the outbox of a connection that has ended, which are not reported yet.
    private var unsentCount = 0
    var asksToClose = false
    /// The server did not answer CONNECT, sent nothing for much longer than its heart-beat, or no receipt for too long.
    private var serverIsSilent = false
    private(set) var slowSubscription: Shared<String>?
    private var trimming = MemoryTrimming()

    /// Set in the tokens of SUBSCRIBE and UNSUBSCRIBE, whose answers go to ``STOMPSubscriptions``.
    /// The tokens of ``batches`` have a bit of their own above it, those of ``receipts`` are below.
    static let requestBit: UInt64 = 1 << 61

    init(engine: consuming STOMPEngine) {
        self.engine = engine
    }

    var backlog: ClientBacklog {
        ClientBacklog(
            messagesInFlight: engine.pendingReceipts, unacknowledgedMessages: engine.unansweredCount,
            outboxBytes: outputCount)
    }

    var pauseReason: String? {
        slowSubscription.map { Self.isSlow($0.value) + " A prefetch keeps the broker from filling the buffer." }
            ?? (engine.isReadingHeldUp ? Self.serverIsSlow : nil)
    }
    var wantsReadingPaused: Bool { slowSubscription != nil }

    var output: [UInt8] {
        get { engine.output }
        _modify { yield &engine.output }
    }
    var outputCount: Int { engine.outputCount }
    var ownBytes: Int { engine.ownBytes }
    var largePayload: LargePayload? {
        get { engine.largePayload }
        set { engine.largePayload = newValue }
    }
    var leastPayloadLeftOut: Int {
        get { engine.leastPayloadLeftOut }
        set { engine.leastPayloadLeftOut = newValue }
    }

    var nextDeadline: Int64 { mutating get { min(engine.nextDeadlineInPlace(), trimming.deadline) } }
    var isLatencyBound: Bool { mutating get { engine.pendingReceiptsInPlace() <= 1 } }
    var wantsClose: Bool { mutating get { asksToClose || engine.shouldClose } }
    var abandonsOutput: Bool { mutating get { serverIsSilent || engine.phase == .connecting } }

    mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64) { engine.setReadingHeldUp(isHeldUp, at: now) }
    mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress) {
        engine.systemSlept(since: start, at: now)
    }
    mutating func outputTaken(at now: Int64) { engine.outputTaken(at: now) }

    mutating func outputDiscarded(_ bytes: RawSpan, leavingOut payload: LargePayload?, writtenUpTo offset: Int) {
        unsentCount += engine.countUnconfirmedSends(in: bytes, leavingOut: payload, endingAfter: offset)
    }

    mutating func reportDiscarded(into afterLock: STOMPAfterLock) {
        guard unsentCount > 0 else { return }
        (afterLock.core, afterLock.unsentCount, unsentCount) = (core, unsentCount, 0)
    }

    mutating func report(_ standstill: Standstill, into afterLock: STOMPAfterLock) {
        (afterLock.core, afterLock.standstill) = (core, standstill)
    }

    mutating func connectionOpened(at now: Int64, into afterLock: STOMPAfterLock) {
        serverIsSilent = false
        // The client checked the configuration, the only reason for a failure, before it opened the connection.
        asksToClose = (try? engine.connectionOpened(at: now, deadline: core?.supervisor.attemptDeadline)) == nil
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: STOMPAfterLock) {
        afterLock.core = core
        engine.connectionClosed(at: now, into: &afterLock.effects)
        asksToClose = false
        trimming = MemoryTrimming()
        slowSubscription = nil
        afterLock.closed = .some(error)
        collect(into: afterLock, at: now)
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: STOMPAfterLock) -> Int {
        afterLock.core = core
        var consumed = afterLock.pieceStart
        let end = min(bytes.byteCount, consumed + Link<STOMPMachine>.longestPiece)
        consumed = engine.receive(bytes.extracting(..<end), from: consumed, at: now, into: &afterLock.effects)
        // Bytes after an event are read under the same lock; so is a frame that is longer than a piece.
        if end < bytes.byteCount, consumed > afterLock.pieceStart, afterLock.effects.events.isEmpty {
            afterLock.pieceStart = consumed
            return 0
        }
        if end < bytes.byteCount {
            consumed = engine.receive(bytes, from: consumed, at: now, into: &afterLock.effects)
        }
        afterLock.pieceStart = 0
        afterLock.version = engine.version
        afterLock.connection = engine.connection
        if afterLock.hasConnected, let core { afterLock.subscriptions = subscribeAll(core, at: now) }
        if !afterLock.effects.messages.isEmpty { route(into: afterLock) }
        if bytes.byteCount >= BatchPool<STOMPMessageRecord>.minimumBytes { trimming.noteUse(at: now) }
        collect(into: afterLock, at: now)
        return consumed
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: STOMPAfterLock) {
        afterLock.core = core
        afterLock.isQuiet = trimming.isDue(at: now)
        let beats = engine.heartBeatsSent
        engine.handleTimeout(at: now, progress: progress, into: &afterLock.effects)
        afterLock.hasSentHeartBeat = engine.heartBeatsSent != beats
        if afterLock.hasLostServer { serverIsSilent = true }
        collect(into: afterLock, at: now)
    }

    /// Writes SEND with a receipt.
    mutating func send(
        _ message: STOMPReadySend, _ waiter: consuming Waiter<ReceiptAnswer>, at now: Int64,
        _ refusal: inout STOMPUsageError?
    ) -> BegunWait<ReceiptAnswer> {
        awaitReceipt(waiter, at: now, &refusal) { machine, token, now throws(STOMPUsageError) in
            try machine.engine.send(
                destination: message.destination, headers: message.headers, body: message.body, receiptToken: token,
                transaction: message.transaction, omitsContentLength: message.omitsContentLength, at: now)
            machine.sentCount += 1
        }
    }

    /// Lets `body` write a frame with a receipt.
    ///
    /// - Parameter refusal: why the engine did not write it; the caller gets that instead of its answer.
    mutating func awaitReceipt(
        _ waiter: consuming Waiter<ReceiptAnswer>, at now: Int64, _ refusal: inout STOMPUsageError?,
        _ body: (inout STOMPMachine, _ receiptToken: UInt64, _ now: Int64) throws(STOMPUsageError) -> Void
    ) -> BegunWait<ReceiptAnswer> {
        if Task.isCancelled { return .ended(Resumption(waiter, .failure(.cancelledWait))) }
        let token = receipts.add(waiter)
        do throws(STOMPUsageError) {
            try body(&self, token, now)
        } catch {
            refusal = error
            if let waiter = receipts.take(token) { return .ended(Resumption(waiter, .success(()))) }
        }
        return .waits(token)
    }

    /// Ends the connection without waiting until its output is written, which the server may never take. Returns false, and
    /// changes nothing, if DISCONNECT has been written.
    mutating func giveUp() -> Bool {
        guard engine.phase != .leaving else { return false }
        asksToClose = true
        serverIsSilent = true
        return true
    }

    mutating func setSlowSubscription(_ name: Shared<String>?, at now: Int64) {
        slowSubscription = name
        engine.setReadingPaused(name != nil, at: now)
    }

    /// Nothing is read: all callers fail that wait for the receipts of their frames, but for those of subscriptions.
    mutating func readingStandsStill(at now: Int64, into afterLock: STOMPAfterLock) {
        afterLock.core = core
        let batchBit = SendBatches<STOMPReadySend?, ReceiptAnswer>.bit
        let error = STOMPError(.timedOut, nil, unreadBecause: pauseReason, hint: engine.receiptHint)
        // Confirmations of a batch that nobody awaits yet may still come.
        batches.failAll(awaitedOnly: true, .failure(error), into: &afterLock.batchEnds)
        engine.expireReceipts(where: { $0 & (Self.requestBit | batchBit) == 0 }, into: &afterLock.effects)
        collect(into: afterLock, at: now)
    }

    /// Takes the callers whose frames are complete out of the table, to be resumed after the lock is released.
    private mutating func collect(into afterLock: STOMPAfterLock, at now: Int64) {
        guard !afterLock.effects.completions.isEmpty else { return }
        let error = afterLock.effects.events.lazy.compactMap { record -> STOMPServerError? in
            if case .errorReceived(let error) = record.kind { error } else { nil }
        }.first
        // Made once: when a connection ends, thousands of frames may fail for one reason.
        var failed: (outcome: STOMPReceiptCompletion.Outcome, answer: ReceiptAnswer)?
        for completion in afterLock.effects.completions {
            var answer = ReceiptAnswer.success(())
            if completion.outcome != .received {
                answer =
                    failed?.outcome == completion.outcome
                    ? failed?.answer ?? answer
                    : .failure(
                        STOMPError(
                            completion.outcome, error, unreadBecause: pauseReason, hint: engine.receiptHint))
                failed = (completion.outcome, answer)
            }
            if completion.token & SendBatches<STOMPReadySend?, ReceiptAnswer>.bit != 0 {
                batches.answer(completion.token, completion.outcome == .received ? nil : answer)
            } else if completion.token & Self.requestBit != 0 {
                afterLock.requestAnswers.append((completion.token, answer))
            } else if let waiter = receipts.take(completion.token) {
                afterLock.resumptions.append(Resumption(waiter, answer))
            }
        }
        continueBatches(into: afterLock, at: now)
    }
}

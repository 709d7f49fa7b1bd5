// The life of a connection: open, timeouts, the end.

// Exported, because callers of `handleTimeout` make it.
public import MessagingWire
@_exported public import struct MessagingWire.OutputProgress

extension STOMPEngine {
    /// A connection to the peer is open. A client writes CONNECT; a server awaits it.
    ///
    /// - Parameter deadline: when CONNECTED (client) or CONNECT (server) is late, for callers whose time for connecting
    ///   began before there was a connection. By default ``STOMPEngineConfiguration/connectTimeout`` from now on.
    /// - Throws: what ``STOMPEngineConfiguration/checkConnect()`` throws; then nothing is written and no connection is
    ///   begun.
    public mutating func connectionOpened(at now: Int64, deadline: Int64? = nil) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        let connect = role == .client ? try configuration.connect.encoded() : []
        clearConnection()
        limits = configuration.limits.clamped
        connection &+= 1
        phase = .connecting
        phaseDeadline = deadline ?? now.advanced(byNanoseconds: configuration.connectTimeout)
        output += connect
    }

    /// The stream has ended, by whomever. All waits end; one end is reported unless it was before.
    public mutating func connectionClosed(at now: Int64, into effects: inout STOMPEffects) {
        defer { assert(checkInvariants()) }
        let isReported = phase == .closed || phase == .closing
        if !isReported { endByClosing(at: now, into: &effects) }
        clearConnection()
        phase = .closed
    }

    private mutating func endByClosing(at now: Int64, into effects: inout STOMPEffects) {
        switch phase {
        case .closed, .closing: assert(false, "The end of a connection is reported twice.")
        case .leaving:
            // The RECEIPT may never come; the end of the stream after DISCONNECT is a success (STOMP 1.2
            // "Connection Lingering").
            finishDisconnect(into: &effects)
        case .connecting: fail(closedBeforeConnected, waits: .connectionLost, into: &effects)
        case .deciding, .connected:
            // Only a client sends DISCONNECT, and only a server sends ERROR.
            let failure: STOMPConnectionFailure =
                role == .client ? .closedByServer(idleHint(at: now) + unfinishedHint) : .closedByClient
            fail(failure, waits: .connectionLost, into: &effects)
        }
    }

    /// What to add to the report of a connection that the server has closed after a silence in which a proxy may do so; empty
    /// for others.
    private func idleHint(at now: Int64) -> String {
        let silence = timing.silence(at: now)
        guard silence >= Self.suspiciousSilence, listening.isRunning else { return "" }
        let own = configuration.connect.heartBeat
        let longest = Int(Self.suspiciousSilence / 1_000_000)
        let asksOften = (1..<longest).contains(own.outgoing) || (1..<longest).contains(own.incoming)
        return STOMPConnectionFailure.hint(atSilence: silence, asksOften: asksOften)
    }

    /// The shortest time without traffic, in nanoseconds, after which usual proxies and load balancers end a connection.
    private static var suspiciousSilence: Int64 { 40_000_000_000 }

    /// The caller stopped or resumed reading by its own decision: while it does not read, silence of the peer proves
    /// nothing. Heart-beats are still written.
    public mutating func setReadingPaused(_ paused: Bool, at now: Int64) {
        timing.listening.setRunning(!paused, at: now)
    }

    /// The clock by which answers are awaited.
    var listening: ListeningClock { timing.listening }

    /// Whatever is awaited from the peer is awaited for its whole time from now on.
    private mutating func awaitAnew(at now: Int64) {
        timing.listening.beginAnew(at: now)
        receiptWait.beginAnew(at: listening.time(at: now))
    }

    /// The system slept from `start` until now. That time does not count for any answer. After a long sleep all answers and the next
    /// heart-beat of the peer are awaited anew, but not a second time without a sign of life, or short times awake would keep a
    /// dead connection for ever.
    package mutating func systemSlept(since start: Int64, at now: Int64) {
        defer { assert(checkInvariants()) }
        if phase == .connecting {
            let patience = min(configuration.connectTimeout, configuration.receiptTimeout)
            phaseDeadline = max(phaseDeadline, now.advanced(byNanoseconds: patience))
        }
        let time = timing.listening.slept(since: start, at: now)
        receiptWait.limit(to: time)
        receipts.limitDeadlines(to: time.advanced(byNanoseconds: configuration.receiptTimeout))
        if listening.isRunning, now - start >= .longSleep, listening.hasSign { awaitAnew(at: now) }
    }

    /// The caller reads nothing until the peer has taken more of ``output``, or reads again. Meanwhile what the peer takes is its
    /// sign of life: see ``OutputProgress/movedBytes``.
    package mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64) {
        timing.isHeldUp = isHeldUp
        if isHeldUp { noteSign(at: now) } else { awaitAnew(at: now) }
    }

    /// The peer takes what waits, which is its sign of life while nothing is read.
    private mutating func noteSign(at now: Int64) {
        timing.listening.noteSign(at: now)
        receiptWait.restart(at: listening.time(at: now))
    }

    /// Whether the caller reads nothing until the peer has taken more of ``output``.
    package var isReadingHeldUp: Bool { timing.isHeldUp }

    /// ``output`` was taken out to be written. Optional: it makes the time of the last byte sent, on which heart-beats
    /// are measured, that of the write for callers who send with an older time.
    public mutating func outputTaken(at now: Int64) {
        outputEmptied()
        timing.wrote(at: now)
    }

    /// The bytes in ``output`` are written now, or dropped.
    package mutating func outputEmptied() { ownBytes = 0 }

    /// Does what is due at `now`. Calls that come early, late or twice do no harm.
    ///
    /// - Parameter progress: lets a client whose frames take long on a slow link wait for their receipts. Default: not known.
    public mutating func handleTimeout(
        at now: Int64, progress: OutputProgress = OutputProgress(), into effects: inout STOMPEffects
    ) {
        defer { assert(checkInvariants()) }
        guard phase != .closed else { return }
        if now >= phaseDeadline { handlePhaseTimeout(at: now, into: &effects) }
        guard phase.isOpen else { return }
        // While nothing is read because the peer has not taken our bytes, taking some is its sign of life.
        if let movedBytes = progress.movedBytes, movedBytes != movedAtTimeout {
            movedAtTimeout = movedBytes
            noteSign(at: now)
        }
        let time = listening.time(at: now)
        var isLate = awaitsReceipts && receiptWait.isOver(progress, at: time)
        if isLate, isReadingFrame(at: now), receiptWait.postpone(at: time) { isLate = false }
        if isLate { oweFrame(ofCommit: owedReceipt) }
        let owed = isLate ? TransactionReceipts.id(of: owedReceipt) ?? receipts.id(of: owedReceipt) : ""
        if now >= receiptDeadline, !isLate, isReadingFrame(at: now) {
            receipts.postponeOldest(until: time.advanced(byNanoseconds: max(1, configuration.receiptTimeout / 16)))
        }
        while now >= receiptDeadline, let oldest = receipts.oldest, let token = receipts.expireOldest() {
            expired(oldest, token, into: &effects)
        }
        if isLate { return failForReceipts(owed, into: &effects) }
        if now >= timing.readDeadline {
            let failure: STOMPConnectionFailure =
                timing.isHeldUp
                ? .outputIsStuck(outputCount, heartBeat: heartBeat.incoming)
                : .heartBeatIsMissing(heartBeat.incoming, unfinishedHint)
            return fail(failure, waits: .connectionLost, into: &effects)
        }
        if now >= timing.writeDeadline {
            output.append(UInt8(ascii: "\n"))
            heartBeatsSent &+= 1
            timing.wrote(at: now)
        }
    }

    private mutating func expired(_ number: UInt64, _ token: UInt64, into effects: inout STOMPEffects) {
        oweFrame(ofCommit: number)
        transactionReceipts.expired(number)
        effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .timedOut))
    }

    /// The callers with such tokens wait no longer: nothing is read until somebody does what they may be about to do.
    package mutating func expireReceipts(where isChosen: (UInt64) -> Bool, into effects: inout STOMPEffects) {
        defer { assert(checkInvariants()) }
        for (number, token) in receipts.expire(where: isChosen) { expired(number, token, into: &effects) }
    }

    /// When the receipt that is awaited longest is late.
    var receiptDeadline: Int64 {
        listening.moment(of: receipts.nextDeadline, patience: configuration.receiptTimeout)
    }

    /// Whether a frame is arriving in pieces, behind which a RECEIPT may come: nothing else can come before its end.
    private func isReadingFrame(at now: Int64) -> Bool {
        bytesLeft > 0 && timing.isReading
            && listening.lastSign.advanced(byNanoseconds: configuration.receiptTimeout / 2) > listening.time(at: now)
    }

    /// The server sent no receipt for too long.
    private mutating func failForReceipts(_ receiptID: String, into effects: inout STOMPEffects) {
        let silence = receiptWait.gaveUp()
        effects.report(.acknowledgementTimedOut(receiptID: receiptID, after: silence))
        let failure: STOMPConnectionFailure =
            timing.isHeldUp
            ? .outputIsStuck(outputCount, receiptTimeout: silence)
            : .receiptIsMissing(receiptID, after: silence, receiptHint, unfinishedHint)
        fail(failure, waits: .connectionLost, into: &effects)
    }

    private mutating func handlePhaseTimeout(at now: Int64, into effects: inout STOMPEffects) {
        phaseDeadline = .max
        switch phase {
        case .closed, .closing: break
        case .connected: reportAborted(into: &effects)
        case .connecting, .deciding:
            fail(
                .noHandshake(role, within: configuration.connectTimeout), waits: .connectionLost, into: &effects)
        case .leaving:
            finishDisconnect(into: &effects)
        }
    }

    /// The connection ended as requested.
    mutating func finishDisconnect(into effects: inout STOMPEffects) {
        end(waits: .disconnected, into: &effects)
        effects.report(.disconnected)
    }

    /// The connection failed: waits end first, so that the event is the last of the effects. If an ERROR has arrived
    /// whose end is missing or wrong, its readable part is the reason.
    mutating func fail(
        _ failure: STOMPConnectionFailure, waits outcome: STOMPReceiptCompletion.Outcome,
        into effects: inout STOMPEffects
    ) {
        var (failure, outcome) = (failure, outcome)
        if let error = takeUnfinishedError() {
            effects.report(.errorReceived(error))
            var flaw = STOMPConnectionFailure.endOfErrorIsMissing
            if case .violation = failure.reason { flaw = STOMPConnectionFailure.errorIsInvalid(failure) }
            (failure, outcome) = (self.failure(by: error, flaw), .sessionEnded)
        }
        end(waits: outcome, into: &effects)
        effects.report(.connectionFailed(failure))
    }

    private mutating func end(waits outcome: STOMPReceiptCompletion.Outcome, into effects: inout STOMPEffects) {
        if let disconnectReceipt { _ = receipts.take(disconnectReceipt) }
        disconnectReceipt = nil
        reportAborted(into: &effects)
        transactionReceipts.removeAll()
        while let token = receipts.takeOldest() {
            effects.completions.append(STOMPReceiptCompletion(token: token, outcome: outcome))
        }
        phase = .closing
        phaseDeadline = .max
        timing = .off
        receipts.forgetNames()
    }

    private mutating func reportAborted(into effects: inout STOMPEffects) {
        for token in transactionReceipts.takeAbortedTokens() {
            effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .aborted))
        }
    }

    private var closedBeforeConnected: STOMPConnectionFailure {
        role == .client ? .closedBeforeConnected(configuration.connect) : .closedBeforeConnect
    }

    private mutating func clearConnection() {
        output.removeAll(keepingCapacity: output.capacity <= 1 << 16)
        largePayload = nil
        outputEmptied()
        scanner.reset()
        bytesLeft = 0
        unfinished = []
        movedAtTimeout = 0
        subscriptions.removeAll()
        transactions.removeAll()
        transactionReceipts.removeAll()
        disconnectReceipt = nil
        owedReceipt = 0
        hasLeftMessages = false
        version = .v12
        profile = configuration.profile ?? .generic
        heartBeat = .none
        peerHeartBeat = .none
        timing = .off
        phaseDeadline = .max
    }
}

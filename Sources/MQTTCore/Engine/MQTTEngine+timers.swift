// Timeouts: connecting, requests, keep alive.

// Exported, because callers of `handleTimeout` make it.
public import MessagingWire
@_exported public import struct MessagingWire.OutputProgress

extension MQTTEngine {
    /// ``output`` was taken out to be written. Optional: it makes the time of the last packet sent, on which keep alive
    /// is measured [MQTT 5.0 3.1.2-20], that of the write for callers who publish QoS 0 with an older time.
    public mutating func outputTaken(at now: Int64) {
        outputEmptied()
        if phase == .connected { keepAlive.sent(at: now) }
    }

    /// The bytes in ``output`` are written now, or dropped.
    package mutating func outputEmptied() {
        publishBytes = 0
        session.window.outputEmptied()
    }

    /// Time passed, possibly beyond ``nextDeadline``.
    ///
    /// - Parameter progress: lets a client whose PINGREQ waits behind bytes on a slow link wait on, as long as the peer
    ///   takes those. Without it an answer has to come within the ping timeout.
    public mutating func handleTimeout(
        at now: Int64, progress: OutputProgress = OutputProgress(), into effects: inout MQTTEffects
    ) {
        defer { assert(checkInvariants()) }
        if now >= expiryDeadline { dropExpired(at: now, into: &effects) }
        switch phase {
        case .closed, .closing: return
        case .leaving:
            if now >= paceDeadline { paceDeadline = .max }
            leaveIfDone(at: now, into: &effects)
        case .connecting, .deciding:
            if now >= authenticationDue { return fail(.authenticationTimeout, nil, into: &effects) }
            if now >= connectDeadline { fail(.connectTimeout, nil, into: &effects) }
        case .connected:
            if now >= authenticationDue {
                return fail(.authenticationTimeout, .notAuthorized, into: &effects)
            }
            if keepAlive.hasMoved(progress) { noteSign(at: now) }
            reportLateRequests(progress, at: now, into: &effects)
            guard phase == .connected else { return }
            checkAcknowledgements(progress, at: now, into: &effects)
            guard phase == .connected else { return }
            if now >= paceDeadline {
                // Whatever else holds messages back: a time that has come is not a deadline any more.
                paceDeadline = .max
                pump(at: now, into: &effects)
            }
            keepAlive.extendIfProgressed(progress, at: now)
            switch keepAlive.due(at: now) {
            case .none: break
            case .ping: writePing(at: now, progress)
            case .dead where isServer: fail(.keepAliveTimeout, .keepAliveTimeout, into: &effects)
            case .dead: fail(.pingTimeout, nil, into: &effects)
            }
        }
    }

    /// The caller stopped or resumed reading by its own decision: silence of the peer then proves nothing, but we still
    /// write our pings.
    public mutating func setReadingPaused(_ paused: Bool, at now: Int64) {
        keepAlive.listening.setRunning(!paused, at: now)
    }

    package var isReadingPaused: Bool { !listening.isRunning }

    /// The clock by which answers are awaited.
    var listening: ListeningClock { keepAlive.listening }

    /// Whatever is awaited from the peer is awaited for its whole time from now on.
    private mutating func awaitAnew(at now: Int64) {
        keepAlive.listening.beginAnew(at: now)
        acknowledgementWait.beginAnew(at: listening.time(at: now))
    }

    /// The caller reads nothing until the peer has taken more of ``output``, or reads again. Meanwhile what the peer takes is its
    /// sign of life: see ``OutputProgress/movedBytes``.
    package mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64) {
        keepAlive.setReadingHeldUp(isHeldUp)
        if isHeldUp { noteSign(at: now) } else { awaitAnew(at: now) }
    }

    /// The peer takes what waits, which is its sign of life while nothing is read.
    private mutating func noteSign(at now: Int64) {
        keepAlive.listening.noteSign(at: now)
        acknowledgementWait.restart(at: listening.time(at: now))
    }

    /// When the next step of an authentication is late.
    var authenticationDue: Int64 {
        guard keepAlive.isReading, let turns = authenticationTurns.value else { return .max }
        return listening.moment(of: turns.deadline, patience: options.value.requestTimeout)
    }

    /// Writes PINGREQ now, whether or not the keep alive asks for it; the answer is
    /// ``MQTTEngineEvent/Kind/pingAnswered(after:)``. Clients only.
    ///
    /// - Throws: ``MQTTUsageError/Code/notConnected``, ``MQTTUsageError/Code/wrongRole``.
    public mutating func ping(
        at now: Int64, progress: OutputProgress = OutputProgress()
    ) throws(MQTTUsageError) {
        guard !isServer else { throw .isSentByClients("PINGREQ") }
        guard phase == .connected else { throw .cannotSend("PINGREQ", in: phase) }
        writePing(at: now, progress)
    }

    /// The network has changed, and the connection may be dead without either side being notified. A client with keep alive
    /// has ``nextDeadline`` now, and then writes PINGREQ, unless one is unanswered or reading is paused.
    package mutating func networkChanged(at now: Int64) {
        if phase == .connected { keepAlive.networkChanged(at: now) }
    }

    /// The system slept from `start` until now. That time does not count for any answer. After a long sleep the connection may be
    /// dead without either side being notified: all answers are awaited anew, but not a second time without a sign of life, or
    /// short times awake would keep a dead connection for ever. A client with keep alive then writes PINGREQ, unless one is
    /// unanswered or reading is paused.
    ///
    /// - Parameter progress: as for ``handleTimeout(at:progress:into:)``, which follows.
    package mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress) {
        defer { assert(checkInvariants()) }
        if phase == .connecting {
            // An attempt that has begun before is likely to be dead, and the next one is made at once.
            let patience = min(options.value.connectTimeout, options.value.pingTimeout)
            connectDeadline = max(connectDeadline, now.advanced(byNanoseconds: patience))
        }
        keepAlive.systemSlept(since: start, at: now)
        acknowledgementWait.limit(to: listening.time(at: now))
        filters.limitTimes(to: listening.time(at: now))
        guard listening.isRunning, now - start >= .longSleep else { return }
        if listening.hasSign { awaitAnew(at: now) }
        // At once: a message that is due now would count as what was sent last.
        if phase == .connected { probe(progress, at: now) }
    }

    mutating func writePing(at now: Int64, _ progress: OutputProgress) {
        keepAlive.pinged(at: now, progress: progress)
        MQTTPacket.encodePingreq(into: &output)
        countWritten(2)
        if isCareful { quarantine.pinged() }
    }

    /// Whether the server owes an acknowledgement of a message, and we would read it.
    var awaitsAcknowledgements: Bool {
        session.window.used > 0 && phase == .connected && !isServer && listening.isRunning
    }

    /// Ends the connection if nothing was acknowledged for too long while something was awaited.
    private mutating func checkAcknowledgements(
        _ progress: OutputProgress, at now: Int64, into effects: inout MQTTEffects
    ) {
        guard awaitsAcknowledgements else { return }
        let time = listening.time(at: now)
        // PUBREL that waits for our own store: the server has nothing to answer yet.
        guard heldPackets.isEmpty else { return acknowledgementWait.restart(at: time) }
        guard acknowledgementWait.isOver(progress, at: time) else { return }
        if time < mayFollowUntil(options.value.acknowledgementTimeout), acknowledgementWait.postpone(at: time) {
            return probe(progress, at: now)
        }
        guard let oldest = session.window.oldestExchange else {
            assert(false, "An acknowledgement is late although none is awaited.")
            return acknowledgementWait.restart(at: time)
        }
        let silence = acknowledgementWait.gaveUp()
        fail(.acknowledgementTimeout(topic: oldest.topic, oldest.qos, after: silence), nil, into: &effects)
    }

    /// How many times its time an answer to SUBSCRIBE or UNSUBSCRIBE is waited for while bytes arrive.
    private static var longestPatience: Int64 { 60 }

    /// Until when an answer that is late may follow what is arriving: on a slow link it comes behind the messages that the server
    /// has sent before.
    ///
    /// - Parameter timeout: how long the answer is awaited; bytes must have arrived in the last half of that time.
    private func mayFollowUntil(_ timeout: Int64) -> Int64 {
        keepAlive.isReading ? listening.lastSign.advanced(byNanoseconds: timeout / 2) : .min
    }

    private var mayProbe: Bool { keepAlive.interval > 0 && keepAlive.pingSent == .max && !isServer }

    /// Writes PINGREQ, whose answer proves that the server has read what is unanswered, unless one is on its way already.
    private mutating func probe(_ progress: OutputProgress, at now: Int64) {
        if mayProbe { writePing(at: now, progress) }
    }

    /// PINGRESP arrived for the PINGREQ that was written at `time`. Servers answer in order, so the deadlines of requests that
    /// were written before it are not extended any more, however much the server sends.
    mutating func noteAnswered(writtenAt time: Int64) {
        filters.overtaken(by: time)
        acknowledgementWait.overtaken(by: time)
    }

    /// The times of the answer to SUBSCRIBE or UNSUBSCRIBE that is awaited longest: when it is late if nothing arrives, and when it is
    /// late although bytes arrive. These are equal once it cannot follow anything any more.
    private var requestEnds: (due: Int64, late: Int64)? {
        guard let request = filters.oldestRequest else { return nil }
        // The answer may be among what we do not read, and the connection must not end for it.
        if keepAlive.isHeldUpByOutput, filters.comesFirst(request) { return (.max, .max) }
        let timeout = max(1, options.value.requestTimeout)
        guard filters.mayBeBehind(request) else {
            let due = request.time.advanced(byNanoseconds: timeout)
            return (due, due)
        }
        let due = listening.end(of: timeout, since: request.time)
        let (longest, overflow) = timeout.multipliedReportingOverflow(by: Self.longestPatience)
        let last = overflow ? .max : listening.end(of: longest, since: request.time)
        return (due, max(due, min(mayFollowUntil(timeout), last)))
    }

    /// When to look at the answer that is awaited longest: as soon as it is due, if a PINGREQ can tell whether it may still come.
    var requestDeadline: Int64 {
        guard let ends = requestEnds else { return .max }
        return listening.moment(of: mayProbe ? ends.due : ends.late)
    }

    private mutating func reportLateRequests(
        _ progress: OutputProgress, at now: Int64, into effects: inout MQTTEffects
    ) {
        while now >= requestDeadline, let ends = requestEnds, var request = filters.oldestRequest {
            if listening.time(at: now) < ends.late { return probe(progress, at: now) }
            request.comesFirst = filters.comesFirst(request)
            effects.report(.requestLate(request))
            // Messages wait for this answer: without it they would wait as long as the connection lasts.
            if request.comesFirst { return fail(.subscribeTimeout, .unspecifiedError, into: &effects) }
            filters.late(request)
            if !request.isUnsubscribe { noteRefusal(comesFirst: false) }
            pump(at: now, into: &effects)
        }
    }
}

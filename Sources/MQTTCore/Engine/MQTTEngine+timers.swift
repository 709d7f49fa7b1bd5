// Timeouts: connecting, requests, keep alive.

// Exported, because callers of `handleTimeout` make it.
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
            if now >= authentication.deadline { return fail(.authenticationTimeout, nil, into: &effects) }
            if now >= connectDeadline { fail(.connectTimeout, nil, into: &effects) }
        case .connected:
            if now >= authenticationDue {
                return fail(.authenticationTimeout, .notAuthorized, into: &effects)
            }
            if keepAlive.hasMoved(progress, at: now) { acknowledgementWait.restart(at: now) }
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
        guard paused != keepAlive.readingPaused else { return }
        keepAlive.setReadingPaused(paused, at: now)
        acknowledgementWait.restart(at: now)
        if !paused { authentication.extend(until: now.advanced(byNanoseconds: options.value.requestTimeout)) }
    }

    package var isReadingPaused: Bool { keepAlive.readingPaused }

    /// The caller reads nothing until the peer has taken more of ``output``, or reads again. Meanwhile what the peer takes is its
    /// sign of life: see ``OutputProgress/movedBytes``.
    package mutating func setReadingHeldUp(_ isHeldUp: Bool, at now: Int64) {
        keepAlive.setReadingHeldUp(isHeldUp, at: now)
        acknowledgementWait.restart(at: now)
        if !isHeldUp { authentication.extend(until: now.advanced(byNanoseconds: options.value.requestTimeout)) }
    }

    /// When the next step of a re-authentication is late: never while we do not read it.
    var authenticationDue: Int64 { keepAlive.isReading ? authentication.deadline : .max }

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

    /// The system slept from `start` until now, and the connection may be dead without either side being notified. Nothing was
    /// read meanwhile: PINGRESP, acknowledgements and AUTH are awaited anew, and a SUBSCRIBE or UNSUBSCRIBE that is late now is
    /// judged as after a pause of reading. After a long sleep a client with keep alive writes PINGREQ, unless one is
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
        guard !keepAlive.readingPaused else { return }
        setReadingPaused(true, at: start)
        setReadingPaused(false, at: now)
        // At once: a message that is due now would count as what was sent last.
        if phase == .connected, !isServer, now - start >= .longSleep { probe(progress, at: now) }
    }

    mutating func writePing(at now: Int64, _ progress: OutputProgress) {
        keepAlive.pinged(at: now, progress: progress)
        MQTTPacket.encodePingreq(into: &output)
        countWritten(2)
        if isCareful { quarantine.pinged() }
    }

    /// Whether the server owes an acknowledgement of a message, and we would read it.
    var awaitsAcknowledgements: Bool {
        session.window.used > 0 && phase == .connected && !isServer && !keepAlive.readingPaused
    }

    /// Ends the connection if nothing was acknowledged for too long while something was awaited.
    private mutating func checkAcknowledgements(
        _ progress: OutputProgress, at now: Int64, into effects: inout MQTTEffects
    ) {
        guard awaitsAcknowledgements else { return }
        // PUBREL that waits for our own store: the server has nothing to answer yet.
        guard heldPackets.isEmpty else { return acknowledgementWait.restart(at: now) }
        guard acknowledgementWait.isOver(progress, at: now) else { return }
        if mayFollow(within: options.value.acknowledgementTimeout, at: now), acknowledgementWait.postpone(at: now) {
            return probe(progress, at: now)
        }
        guard let oldest = session.window.oldestExchange else {
            assert(false, "An acknowledgement is late although none is awaited.")
            return acknowledgementWait.restart(at: now)
        }
        let silence = acknowledgementWait.gaveUp()
        fail(.acknowledgementTimeout(topic: oldest.topic, oldest.qos, after: silence), nil, into: &effects)
    }

    /// How often an answer that is late is waited for once more while bytes arrive, each time for as long as before.
    static let maximumPostponements: UInt8 = 60

    /// Whether an answer that is late may follow what is arriving: on a slow link it comes behind the messages that the server
    /// has sent before.
    ///
    /// - Parameter timeout: how long the answer was awaited; bytes must have arrived in the last half of that time.
    func mayFollow(within timeout: Int64, at now: Int64) -> Bool {
        keepAlive.isReading && keepAlive.hasSign(within: timeout / 2, at: now)
    }

    /// Writes PINGREQ, whose answer proves that the server has read what is unanswered, unless one is on its way already.
    private mutating func probe(_ progress: OutputProgress, at now: Int64) {
        if keepAlive.interval > 0, keepAlive.pingSent == .max { writePing(at: now, progress) }
    }

    /// PINGRESP arrived for the PINGREQ that was written at `time`. Servers answer in order, so the deadlines of requests that
    /// were written before it are not extended any more, however much the server sends.
    mutating func noteAnswered(writtenAt time: Int64) {
        filters.overtaken(by: time)
        acknowledgementWait.overtaken(by: time)
    }

    private mutating func reportLateRequests(
        _ progress: OutputProgress, at now: Int64, into effects: inout MQTTEffects
    ) {
        let timeout = options.value.requestTimeout
        let next = now.advanced(byNanoseconds: max(1, timeout))
        while var request = filters.firstLate(at: now) {
            request.comesFirst = filters.comesFirst(request)
            if request.comesFirst && !keepAlive.hasRead(for: timeout, at: now) {
                // The answer may be among what we have not read.
                filters.postpone(request, until: next, counts: false)
                continue
            }
            if filters.mayBeBehind(request), request.postponements < Self.maximumPostponements,
                mayFollow(within: timeout, at: now)
            {
                filters.postpone(request, until: next, counts: true)
                probe(progress, at: now)
                continue
            }
            effects.report(.requestLate(request))
            // Messages wait for this answer: without it they would wait as long as the connection lasts.
            if request.comesFirst { return fail(.subscribeTimeout, .unspecifiedError, into: &effects) }
            filters.late(request)
            if !request.isUnsubscribe { noteRefusal(comesFirst: false) }
            pump(at: now, into: &effects)
        }
    }
}

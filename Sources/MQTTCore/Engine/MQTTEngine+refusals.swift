// Requests that the server answers by ending the connection: see ``RefusalSearch``; and messages that leave at a limited pace.
// As long as nothing is suspected, no request was refused so and no pace is set, only the end of a connection comes here.

import Wire

extension MQTTEngine {
    /// Whether each SUBSCRIBE is to have one filter, since requests are sent one at a time.
    package var sendsSingly: Bool { isCareful && refusals.sendsSingly }

    /// Whether a SUBSCRIBE with this filter is to have no other, since the server has ended connections because of it.
    package func sendsAlone(filter: String) -> Bool { isCareful && refusals.sendsAlone(filters: [filter]) }

    /// Connections in a row that ended while the same requests were unanswered.
    package var endsWithoutAnswer: Int { refusals.ends }

    /// The search, which most engines never begin.
    var refusals: RefusalSearch {
        get { refusalSearch.value ?? RefusalSearch() }
        set {
            refusalSearch.value = newValue.isEmpty ? nil : newValue
            isCareful = newValue.isCareful
        }
    }

    // MARK: Connections

    /// CONNACK arrived: requests wait until PINGREQ is answered.
    mutating func beginCarefully(at now: Int64) {
        guard isCareful else { return }
        refusals.probed(writeProbe(at: now), at: now)
    }

    /// Writes PINGREQ and returns its number.
    private mutating func writeProbe(at now: Int64) -> UInt32 {
        // Any progress counts: it may wait behind a large message.
        writePing(at: now, MQTTOutputProgress(total: .max))
        return keepAlive.pingCount
    }

    /// PINGRESP arrived.
    mutating func continueAfterPong(at now: Int64, into effects: inout MQTTEffects) {
        guard isCareful else { return }
        refusals.pingAnswered(writtenUpTo: keepAlive.pingCount, at: now)
        if refusals.needsProbe(at: now) { return refusals.probed(writeProbe(at: now), at: now) }
        pump(at: now, into: &effects)
    }

    /// What this connection, which is closed, leaves unanswered; nil if nothing is, or its end is no answer.
    mutating func findUnanswered() -> RefusalSearch.Unanswered? {
        if case .unrelated = connectionEnd { return nil }
        return session.window.unanswered
    }

    /// The connection is closed: gives up the request because of which it ended, if that is known.
    mutating func judgeEnd(_ unanswered: RefusalSearch.Unanswered?, at now: Int64, into effects: inout MQTTEffects) {
        var search = refusals
        let culprit = search.connectionEnded(connectionEnd, unanswered: unanswered, at: now)
        for request in search.connectionClosed() {
            effects.report(.requestFailed(token: request.token))
            session.window.releaseID(request.packetID)
        }
        refusals = search
        if let culprit { giveUp(culprit, into: &effects) }
    }

    private mutating func giveUp(_ culprit: RefusalSearch.Request, into effects: inout MQTTEffects) {
        let isSilence = if case .unanswered = connectionEnd { true } else { false }
        let disconnect: MQTTPacket.Disconnect? =
            if case .disconnected(let packet) = connectionEnd { packet } else { nil }
        guard case .message(let sequence) = culprit.name else {
            effects.report(
                .requestRefused(
                    MQTTRefusal(.subscription(filters: culprit.texts), disconnect: disconnect, isSilence: isSilence)))
            return
        }
        let found = session.window.inFlight.first { session.window.slots[Int($0)].sequence == sequence }
        guard let index = found else { return }
        let head = session.window.slots[Int(index)].head
        effects.report(
            .requestRefused(
                MQTTRefusal(
                    .message(topic: head.topic, head.flags.qos), disconnect: disconnect, isSilence: isSilence,
                    byteCount: session.window.slots[Int(index)].messageBytes)))
        let remark = Int32(truncatingIfNeeded: effects.events.count - 1)
        retire(index)
        complete(index, .refused, disconnect?.reasonCode ?? .unspecifiedError, remark, &effects)
    }

    // MARK: Sending with care

    /// Publishes while messages may have to be alone, or may leave at a limited pace only.
    mutating func publishCarefully(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, _ token: UInt64, _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        let search = refusals
        let isAlone = !head.flags.isAtMostOnce && search.sendsAlone(topic: head.topic)
        let mayLeave =
            !search.isWaiting && search.held.isEmpty
            && (!isAlone || session.window.isQuiet && session.window.queue.count == 0 && session.window.resend < 0)
        // The pace has its deadline before the queue may refuse the message, whose publisher then waits for room.
        guard mayLeave, paceAllows(at: now) else { return try queueForLater(head, payload, properties, token, now) }
        let outcome = try publishNow(head, payload, properties, token, now)
        guard outcome == .written else { return outcome }
        addToPace(head.topic.utf8.count + payload.count, at: now)
        if isAlone {
            sentAlone(.message(session.window.lastSequence), [head.topic], head.flags.isExactlyOnce, at: now)
        }
        return outcome
    }

    /// A request was written while no other one was unanswered.
    private mutating func sentAlone(
        _ name: RefusalSearch.Request.Name?, _ texts: [String], _ isExactlyOnce: Bool, at now: Int64
    ) {
        let request = name.map { RefusalSearch.Request(name: $0, texts: texts, isExactlyOnce: isExactlyOnce) }
        let ping = writeProbe(at: now)
        refusals.sentAlone(request, ping: ping, at: now)
    }

    /// SUBSCRIBE or UNSUBSCRIBE waits for its turn, which may have come.
    mutating func hold(_ request: RefusalSearch.HeldRequest, at now: Int64) {
        refusals.held.append(request)
        sendHeld(at: now)
    }

    private mutating func sendHeld(at now: Int64) {
        while let request = refusals.held.first, !refusals.isWaiting {
            let isAlone = refusals.sendsAlone(filters: request.filters)
            if isAlone, !session.window.isQuiet { return }
            refusals.held.removeFirst()
            output += request.bytes
            session.window.recordRequest(
                request.packetID, request.kind, token: request.token, filterCount: request.filters.count,
                comesFirst: request.comesFirst, deadline: now.advanced(byNanoseconds: options.value.requestTimeout))
            keepAlive.sent(at: now)
            guard isAlone else { continue }
            let name = request.kind == .subscribe ? request.filters.map { ByteKey($0) } : nil
            sentAlone(name.map { .subscription($0) }, request.filters, request.isExactlyOnce, at: now)
        }
    }

    /// When the first of the requests that wait for their turn is late.
    var heldRequestDue: Int64 { isCareful ? refusals.held.reduce(.max) { min($0, $1.deadline) } : .max }

    /// Reports those that wait for their turn and are late: what they wait for may never come.
    mutating func reportLateHeldRequests(at now: Int64, into effects: inout MQTTEffects) {
        guard heldRequestDue <= now else { return }
        let timeout = options.value.requestTimeout
        var held: [RefusalSearch.HeldRequest] = []
        for var request in refusals.held {
            if request.deadline > now || request.deadline == .max {
                held.append(request)
            } else if request.comesFirst, !keepAlive.hasRead(for: timeout, at: now) {
                request.deadline = now.advanced(byNanoseconds: max(1, timeout))
                held.append(request)
            } else if keepAlive.pingSent != .max, request.postponements < Self.maximumPostponements,
                mayFollow(within: timeout, at: now)
            {
                // The answer to PINGREQ that it waits for comes behind what is arriving.
                request.postponements += 1
                request.deadline = now.advanced(byNanoseconds: max(1, timeout))
                held.append(request)
            } else {
                effects.report(.requestLate(token: request.token))
                if request.comesFirst { return fail(.subscribeTimeout, .unspecifiedError, into: &effects) }
                session.window.releaseID(request.packetID)
            }
        }
        refusals.held = held
        pump(at: now, into: &effects)
    }

    /// The same as `pump`: first the requests that wait, then messages, each of them alone if it has to be, and at the
    /// pace that is set.
    mutating func pumpCarefully(at now: Int64, into effects: inout MQTTEffects) {
        noteAnswers()
        sendHeld(at: now)
        if messagesMayLeave { return pump(at: now, into: &effects) }
        if session.window.used == 0 { acknowledgementWait.restart(at: now) }
        while subscribingStage == .done, !refusals.isWaiting, refusals.held.isEmpty {
            let isResent = session.window.resend >= 0
            let index = isResent ? session.window.resend : session.window.queue.first
            guard index >= 0 else { break }
            let head = session.window.slots[Int(index)].head
            let (byteCount, written) = (session.window.slots[Int(index)].messageBytes, publishesWritten)
            let isAlone = !head.flags.isAtMostOnce && refusals.sendsAlone(topic: head.topic)
            if isAlone, !session.window.isQuiet { break }
            guard paceAllows(at: now) else { break }
            if isResent {
                guard session.window.used < windowLimit else { break }
                resendNext(at: now, into: &effects)
            } else {
                guard sendQueued(index, at: now, into: &effects) else { break }
            }
            // It may have been given up instead.
            if publishesWritten != written { addToPace(byteCount, at: now) }
            guard isAlone, !session.window.isQuiet else { continue }
            // It got a sequence of its sending, if the newest goes first.
            let sequence = session.window.slots[Int(index)].sequence
            sentAlone(.message(sequence), [head.topic], head.flags.isExactlyOnce, at: now)
        }
        if options.value.persists { identifyQueued() }
        reportRoom(&effects)
    }

    /// The request that was alone may have its answer, and the search may be over.
    private mutating func noteAnswers() {
        guard session.window.isQuiet else { return }
        var search = refusals
        if search.alone != nil { search.answeredAlone() }
        if let last = search.singlyThrough, subscribingStage == .done, search.held.isEmpty, !search.isWaiting,
            session.window.published.count == 0, !session.window.queues(upTo: last)
        {
            search.finish()
        }
        refusals = search
    }
}

extension SendWindow {
    /// Whether nothing that was sent on this connection awaits an answer. Requests that are late do not count.
    var isQuiet: Bool { used == 0 && requests.count == 0 }

    /// Whether one of these messages is in the queue, which begins with those that were in flight when a session was lost.
    func queues(upTo sequence: UInt64) -> Bool {
        guard queue.first >= 0, slots[Int(queue.first)].kind == .requeued else { return false }
        return slots[Int(queue.first)].sequence <= sequence
    }

    /// What was sent on this connection and is unanswered.
    var unanswered: RefusalSearch.Unanswered? {
        // The connection ends with a late one that comes first.
        let hasSubscription =
            requests.indices(slots).contains { slots[Int($0)].kind == .subscribe }
        var sequences: [UInt64] = []
        for index in [published.first, received.first] where index >= 0 && slots[Int(index)].connection == connection {
            sequences.append(slots[Int(index)].sequence)
        }
        guard let first = sequences.min() else {
            return hasSubscription ? RefusalSearch.Unanswered(hasSubscription: true) : nil
        }
        for index in [published.last, received.last] where index >= 0 {
            sequences.append(slots[Int(index)].sequence)
        }
        return RefusalSearch.Unanswered(
            hasSubscription: hasSubscription, messages: first...(sequences.max() ?? first))
    }
}

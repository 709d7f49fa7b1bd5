// Sending while some requests have to be alone (see ``RefusalSearch``), or messages leave at a limited pace only. With
// neither, nothing comes here.

import MessagingWire

extension MQTTEngine {
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

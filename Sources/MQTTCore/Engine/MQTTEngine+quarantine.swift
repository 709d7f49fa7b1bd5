// Requests that end connections: when they leave, and what becomes of them; see ``Quarantine``. As long as nothing is
// suspected, only the end of a connection comes here.

import MessagingWire

extension MQTTEngine {
    /// Whether each SUBSCRIBE is to have one filter, since requests are sent one at a time.
    package var sendsSingly: Bool { isCareful && quarantine.sendsSingly }

    /// Whether a SUBSCRIBE with this filter is to have no other, since connections have ended because of it.
    package func sendsAlone(filter: String) -> Bool { turn(ofFilters: [filter]) != .freely }

    /// Connections in a row that ended while the same requests were unanswered.
    package var endsWithoutAnswer: Int { quarantine.ends }

    /// What is remembered of such requests, which for most engines is nothing.
    var quarantine: Quarantine {
        get { quarantineBox.value ?? Quarantine() }
        set {
            quarantineBox.value = newValue.isEmpty ? nil : newValue
            isCareful = newValue.isCareful
        }
    }

    private func turn(ofFilters filters: [String]) -> Quarantine.Turn {
        isCareful ? quarantine.turn(of: Quarantine.Name(filters: filters)) : .freely
    }

    /// Whether messages do not wait for a SUBSCRIBE with these filters, because others pass it.
    func isPassed(filters: [String]) -> Bool { turn(ofFilters: filters) == .later }

    /// Whether a message that is published now may leave at once, and how.
    func turnToPublish(_ head: PublishHead) -> Quarantine.Turn {
        guard isCareful else { return .freely }
        let quarantine = quarantine
        let isFirst =
            session.window.pending < 0 && session.window.resend < 0 && session.window.waitingRequestCount == 0
        guard !quarantine.isWaiting, isFirst else { return .later }
        if head.flags.isAtMostOnce { return .freely }
        switch quarantine.turn(of: Quarantine.Name(topic: head.topic)) {
        case .freely: return .freely
        case .alone: return session.window.isQuiet && quarantine.isProven ? .alone : .later
        case .later: return .later
        }
    }

    /// The filters of a SUBSCRIBE that has waited for its turn, whose packet its slot keeps, and whether they ask for QoS 2.
    private func subscription(of slot: OutboundSlot) -> (filters: [String], isExactlyOnce: Bool) {
        // The bytes of an array of bytes: nothing to reinterpret.
        let bytes = unsafe slot.payload.span.bytes
        guard
            let header = try? MQTTFrameHeader.parse(bytes, at: 0, maximumPacketSize: .max, version: version),
            case .subscribe(let packet)? = try? MQTTPacket.decode(
                header, body: bytes.extracting(header.headerCount..<header.packetCount), version: version)
        else { return ([], false) }
        return (packet.subscriptions.map { $0.filter }, packet.subscriptions.contains { $0.qos == .exactlyOnce })
    }

    // MARK: Sending what waits

    /// What waits, because others pass it, is no longer wanted.
    mutating func dropPassedSubscriptions(to filters: [String]) {
        guard isCareful else { return }
        for index in session.window.waitingRequests {
            let slot = session.window.slots[Int(index)]
            let waiting = subscription(of: slot).filters
            guard slot.kind == .subscribe, isPassed(filters: waiting), waiting.allSatisfy(filters.contains) else {
                continue
            }
            session.window.finishRequest(index)
        }
    }

    /// Whether a request waits because others pass it, so that its answer cannot be late.
    func isPassed(request slot: OutboundSlot) -> Bool {
        isCareful && slot.kind == .subscribe && slot.connection != session.window.connection
            && isPassed(filters: subscription(of: slot).filters)
    }

    /// Sends requests that wait for their turn. False if messages have to wait for them.
    mutating func sendWaitingRequests(at now: Int64) -> Bool {
        for index in session.window.waitingRequests {
            let slot = session.window.slots[Int(index)]
            let (filters, isExactlyOnce) = subscription(of: slot)
            let turn = slot.kind == .subscribe ? turn(ofFilters: filters) : quarantine.sendsSingly ? .alone : .freely
            if turn == .later { continue }
            guard !quarantine.isWaiting, turn == .freely || mayBeAlone(at: now) else { return false }
            output += slot.payload
            countWritten(slot.payload.count)
            session.window.recordWaitingSent(
                index, deadline: now.advanced(byNanoseconds: options.value.requestTimeout))
            keepAlive.sent(at: now)
            guard turn == .alone else { continue }
            let name = slot.kind == .subscribe ? Quarantine.Name(filters: filters) : nil
            sentAlone(name, isExactlyOnce: isExactlyOnce, at: now)
        }
        return !quarantine.isWaiting
    }

    /// How the next message may leave; it is passed if others go first. Nil if it has to wait, and all behind it.
    mutating func turnOfNext(_ index: Int32, at now: Int64) -> Quarantine.Turn? {
        if isCareful {
            let head = session.window.slots[Int(index)].head
            guard !quarantine.isWaiting else { return nil }
            switch head.flags.isAtMostOnce ? .freely : quarantine.turn(of: Quarantine.Name(topic: head.topic)) {
            case .freely: break
            case .alone:
                guard mayBeAlone(at: now), paceAllows(at: now) else { return nil }
                return .alone
            case .later:
                session.window.pass(index)
                return .later
            }
        }
        return paceAllows(at: now) ? .freely : nil
    }

    /// Writes PINGREQ, whose answer proves that the connection has carried what was written before it. Any progress of the output
    /// is a sign of life: it may wait behind a large message.
    private mutating func writeProof(at now: Int64) { writePing(at: now, OutputProgress(total: .max)) }

    /// Whether nothing is unanswered, not even messages of QoS 0: an answer to PINGREQ proves that these ended no connection.
    private mutating func mayBeAlone(at now: Int64) -> Bool {
        guard session.window.isQuiet else { return false }
        if quarantine.needsPing { writeProof(at: now) }
        return quarantine.isProven
    }

    /// A message has left while nothing else was unanswered.
    mutating func sentAlone(_ head: PublishHead, at now: Int64) {
        // It may have been given up instead.
        guard !session.window.isQuiet else { return }
        sentAlone(Quarantine.Name(topic: head.topic), isExactlyOnce: head.flags.isExactlyOnce, at: now)
    }

    private mutating func sentAlone(_ name: Quarantine.Name?, isExactlyOnce: Bool, at now: Int64) {
        writeProof(at: now)
        quarantine.sentAlone(name, isExactlyOnce: isExactlyOnce, at: now)
    }

    /// The request of a slot has its answer.
    mutating func noteAnswered(_ index: Int32) {
        guard isCareful else { return }
        let slot = session.window.slots[Int(index)]
        let name: Quarantine.Name? =
            switch slot.kind {
            case .published, .received: Quarantine.Name(topic: slot.head.topic)
            case .subscribe: Quarantine.Name(filters: subscription(of: slot).filters)
            case .free, .queued, .requeued, .unsubscribe: nil
            }
        if let name { quarantine.answered(name) }
    }

    /// Nothing can be sent now: the turn of a request that others have passed may have come. Returns whether it has.
    mutating func chooseNext(at now: Int64) -> Bool {
        guard isCareful, !quarantine.isWaiting, session.window.hasPassed else { return false }
        let isThrough = session.window.pending < 0 && session.window.resend < 0
        let isIdle = isThrough && session.window.isQuiet
        let pings = isIdle ? quarantine.pingsToWrite : 0
        for _ in 0..<pings { writeProof(at: now) }
        guard pings == 0 else { return false }
        guard !quarantine.choose(isThrough: isThrough, isIdle: isIdle, at: now) else {
            session.window.rewind()
            return true
        }
        paceDeadline = min(paceDeadline, quarantine.nextTurn(isIdle: isIdle))
        return false
    }

    /// Ends messages that others pass, although they were sent, without completions. Returns whether there were any.
    @discardableResult
    package mutating func withdrawPassed(where isWithdrawn: (UInt64) -> Bool) -> Bool {
        guard isCareful else { return false }
        defer { assert(checkInvariants()) }
        let waiting = session.window.notSentHere.filter { index in
            let slot = session.window.slots[Int(index)]
            return isWithdrawn(slot.token) && quarantine.turn(of: Quarantine.Name(topic: slot.head.topic)) == .later
        }
        for index in waiting {
            guard session.window.slots[Int(index)].kind == .published else {
                dropQueued(at: index)
                continue
            }
            retire(index)
            let sequence = session.window.slots[Int(index)].sequence
            store(.finished(sequence: sequence))
            session.window.finish(index)
        }
        // What waited behind them, or for room, goes on.
        if !waiting.isEmpty { paceDeadline = 0 }
        return !waiting.isEmpty
    }

    // MARK: What happened

    /// CONNACK arrived.
    mutating func beginCarefully(at now: Int64) {
        if isCareful { quarantine.connectionBegan(at: now) }
    }

    /// So many bytes were added to the output.
    ///
    /// - Parameter isAtMostOnce: whether they are a message of QoS 0.
    mutating func countWritten(_ bytes: Int, packets: Int = 1, isAtMostOnce: Bool = false) {
        if isCareful { quarantine.countWritten(bytes, packets: packets, atMostOnce: isAtMostOnce ? 1 : 0) }
    }

    /// What was unanswered may have its answer, or be passed by all others.
    mutating func noteAnswers() {
        guard session.window.isQuiet else { return }
        var quarantine = quarantine
        quarantine.becameQuiet(written: publishesWritten)
        let next = session.window.pending
        let isQueued = next >= 0 && session.window.slots[Int(next)].kind == .requeued
        let waits = isQueued && quarantine.waits(for: session.window.slots[Int(next)].sequence)
        let hasRequests = session.window.waitingRequests.contains {
            !isPassed(filters: subscription(of: session.window.slots[Int($0)]).filters)
        }
        if subscribingStage == .done, !waits, !hasRequests, session.window.resend < 0 { quarantine.endRun() }
        self.quarantine = quarantine
    }

    /// What this connection, which is closed, leaves unanswered; nil if nothing is, or its end is no answer.
    func findUnanswered() -> Quarantine.Unanswered? {
        if case .unrelated = connectionEnd { return nil }
        return session.window.unanswered
    }

    /// The connection is closed: gives up the request because of which it ended, if that is certain.
    ///
    /// - Parameters:
    ///   - request: the request that was alone.
    ///   - isWritten: whether all that was sent has been taken.
    mutating func judgeEnd(
        _ unanswered: Quarantine.Unanswered?, of request: OutboundSlot?, isWritten: Bool, at now: Int64,
        into effects: inout MQTTEffects
    ) {
        var quarantine = quarantine
        let verdict = quarantine.connectionEnded(
            isWritten || !quarantine.isWaiting ? connectionEnd : .unrelated, unanswered: unanswered,
            written: publishesWritten, at: now)
        self.quarantine = quarantine
        guard let verdict, let request else { return }
        let refusal = refusal(of: request)
        guard case .refused = verdict else { return effects.report(.requestPassedOver(refusal)) }
        effects.report(.requestRefused(refusal))
        let remark = Int32(truncatingIfNeeded: effects.events.count - 1)
        let index = session.window.slot(of: request.head.packetID)
        guard request.kind == .published || request.kind == .received, index >= 0 else { return }
        retire(index)
        complete(index, .refused, refusal.disconnect?.reasonCode ?? .unspecifiedError, remark, &effects)
    }

    private func refusal(of slot: OutboundSlot) -> MQTTRefusal {
        let isSilence = if case .unanswered = connectionEnd { true } else { false }
        let disconnect: MQTTPacket.Disconnect? =
            if case .disconnected(let packet) = connectionEnd { packet } else { nil }
        let isMessage = slot.kind == .published || slot.kind == .received
        return MQTTRefusal(
            isMessage
                ? .message(topic: slot.head.topic, slot.head.flags.qos)
                : .subscription(filters: subscription(of: slot).filters),
            disconnect: disconnect, isSilence: isSilence, byteCount: isMessage ? slot.messageBytes : 0)
    }
}

// Requests that end connections: when they leave, and what becomes of them; see ``Quarantine``. As long as nothing is
// suspected, only the end of a connection comes here.

import MessagingWire

extension MQTTEngine {
    /// Whether each SUBSCRIBE is to have one filter, since requests are sent one at a time.
    package var sendsSingly: Bool { isCareful && quarantine.sendsSingly }

    /// Whether a SUBSCRIBE with this filter is to have no other, since connections have ended because of it.
    package func sendsAlone(filter: String) -> Bool { turn(of: ByteKey(filter), .subscribe) != .freely }

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

    /// How a packet that is due for a filter may leave.
    func turn(of filter: ByteKey, _ packet: FilterRecord.Packet) -> Quarantine.Turn {
        guard isCareful else { return .freely }
        switch packet {
        case .subscribe: return quarantine.turn(of: .filter(filter))
        case .unsubscribe: return quarantine.sendsSingly ? .alone : .freely
        }
    }

    /// Whether nothing that was sent on this connection awaits an answer. Requests that are late do not count.
    private var isQuiet: Bool { session.window.used == 0 && filters.requests.isEmpty }

    /// Whether a message that is published now may leave at once, and how.
    func turnToPublish(_ head: PublishHead) -> Quarantine.Turn {
        guard isCareful else { return .freely }
        let quarantine = quarantine
        let isFirst =
            session.window.pending < 0 && session.window.resend < 0 && !filters.hasChanges
        guard !quarantine.isWaiting, isFirst else { return .later }
        if head.flags.isAtMostOnce { return .freely }
        switch quarantine.turn(of: .topic(ByteKey(head.topic))) {
        case .freely: return .freely
        case .alone: return isQuiet && quarantine.isProven ? .alone : .later
        case .later: return .later
        }
    }

    // MARK: Sending what waits

    /// How the next message may leave; it is passed if others go first. Nil if it has to wait, and all behind it.
    mutating func turnOfNext(_ index: Int32, at now: Int64) -> Quarantine.Turn? {
        if isCareful {
            let head = session.window.slots[Int(index)].head
            guard !quarantine.isWaiting else { return nil }
            switch head.flags.isAtMostOnce ? .freely : quarantine.turn(of: .topic(ByteKey(head.topic))) {
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
    mutating func mayBeAlone(at now: Int64) -> Bool {
        guard isQuiet else { return false }
        if quarantine.needsPing { writeProof(at: now) }
        return quarantine.isProven
    }

    /// A message has left while nothing else was unanswered.
    mutating func sentAlone(_ head: PublishHead, at now: Int64) {
        // It may have been given up instead.
        guard !isQuiet else { return }
        sentAlone(.topic(ByteKey(head.topic)), isExactlyOnce: head.flags.isExactlyOnce, at: now)
    }

    mutating func sentAlone(_ name: Quarantine.Name?, isExactlyOnce: Bool, at now: Int64) {
        writeProof(at: now)
        quarantine.sentAlone(name, isExactlyOnce: isExactlyOnce, at: now)
    }

    /// A message has its answer.
    mutating func noteAnswered(messageAt index: Int32) {
        guard isCareful else { return }
        quarantine.answered(.topic(ByteKey(session.window.slots[Int(index)].head.topic)))
    }

    /// SUBSCRIBE has its answer.
    mutating func noteAnswered(_ request: MQTTFilterRequest) {
        guard isCareful else { return }
        for filter in request.filters { quarantine.answered(.filter(ByteKey(filter))) }
    }

    /// Nothing can be sent now: the turn of a request that others have passed may have come. Returns whether it has.
    mutating func chooseNext(at now: Int64) -> Bool {
        guard isCareful, !quarantine.isWaiting, session.window.hasPassed || filters.hasChanges else { return false }
        let isThrough = session.window.pending < 0 && session.window.resend < 0
        let isIdle = isThrough && isQuiet
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
            return isWithdrawn(slot.token) && quarantine.turn(of: .topic(ByteKey(slot.head.topic))) == .later
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
        guard isQuiet else { return }
        var quarantine = quarantine
        quarantine.becameQuiet(written: publishesWritten)
        let next = session.window.pending
        let isQueued = next >= 0 && session.window.slots[Int(next)].kind == .requeued
        let waits = isQueued && quarantine.waits(for: session.window.slots[Int(next)].sequence)
        let hasRequests = filters.hasDue(terms) { turn(of: $0, $1) != .later }
        if !messagesWait, !waits, !hasRequests, session.window.resend < 0 { quarantine.endRun() }
        self.quarantine = quarantine
    }

    /// What this connection, which ends, leaves unanswered; nil if nothing is, or its end is no answer.
    func findUnanswered() -> Quarantine.Unanswered? {
        if case .unrelated = connectionEnd { return nil }
        let unanswered = Quarantine.Unanswered(
            hasSubscription: filters.requests.values.contains { !$0.isUnsubscribe },
            messages: session.window.unanswered)
        return unanswered.hasSubscription || unanswered.messages != nil ? unanswered : nil
    }

    /// The only thing that is unanswered.
    enum Lone {
        case message(OutboundSlot)
        case request(MQTTFilterRequest)

        var request: MQTTFilterRequest? { if case .request(let request) = self { request } else { nil } }
    }

    func findLone() -> Lone? {
        switch (session.window.used, filters.requests.count) {
        case (1, 0): session.window.lone.map { .message($0) }
        case (0, 1): filters.requests.values.first.map { .request($0) }
        default: nil
        }
    }

    /// The connection ends: what becomes of the request that was alone.
    ///
    /// - Parameter isWritten: whether all that was sent has been taken.
    mutating func judgeEnd(
        _ unanswered: Quarantine.Unanswered?, isWritten: Bool, at now: Int64
    ) -> Quarantine.Verdict? {
        var quarantine = quarantine
        let verdict = quarantine.connectionEnded(
            isWritten || !quarantine.isWaiting ? connectionEnd : .unrelated, unanswered: unanswered,
            written: publishesWritten, at: now)
        self.quarantine = quarantine
        return verdict
    }

    /// Reports what becomes of a request, and completes a message that is given up.
    mutating func report(_ verdict: Quarantine.Verdict, on lone: Lone, _ effects: inout MQTTEffects) {
        let refusal = refusal(of: lone)
        guard verdict == .refused else { return effects.report(.requestPassedOver(refusal)) }
        effects.report(.requestRefused(refusal))
        let remark = Int32(truncatingIfNeeded: effects.events.count - 1)
        guard case .message(let slot) = lone else { return }
        let index = session.window.slot(of: slot.head.packetID)
        guard index >= 0 else { return }
        retire(index)
        complete(index, .refused, refusal.disconnect?.reasonCode ?? .unspecifiedError, remark, &effects)
    }

    private func refusal(of lone: Lone) -> MQTTRefusal {
        let isSilence = if case .unanswered = connectionEnd { true } else { false }
        let disconnect: MQTTPacket.Disconnect? =
            if case .disconnected(let packet) = connectionEnd { packet } else { nil }
        return switch lone {
        case .message(let slot):
            MQTTRefusal(
                .message(topic: slot.head.topic, slot.head.flags.qos), token: slot.token, disconnect: disconnect,
                isSilence: isSilence, byteCount: slot.messageBytes)
        case .request(let request):
            MQTTRefusal(
                .subscription(filters: request.filters), token: request.token, disconnect: disconnect,
                isSilence: isSilence)
        }
    }
}

// What a client reads: CONNECTED (STOMP 1.2 "Protocol Negotiation", "Heart-beating"), MESSAGE, RECEIPT, ERROR.

import MessagingWire

extension STOMPEngine {
    mutating func handleConnected(
        _ bytes: RawSpan, _ base: Int, at now: Int64, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        let frame = STOMPFrame(scanner, in: bytes, from: base, version: .v12)
        // A server of 1.0 sends no version.
        let text = frame.headers["version"] ?? "1.0"
        guard let version = STOMPVersion(text.trimmingBlanks()), configuration.connect.versions.contains(version) else {
            throw .versionWasNotOffered(text, configuration.connect.versions)
        }
        var server = STOMPHeartBeat.none
        if let header = frame.headers["heart-beat"] {
            guard let beat = STOMPHeartBeat(header) else { throw .heartBeatIsInvalid(header, in: "CONNECTED") }
            server = beat
        }
        self.version = version
        heartBeat = configuration.connect.heartBeat.agreed(with: server)
        profile = configuration.profile ?? STOMPBrokerProfile(serverHeader: frame.headers["server"])
        phase = .connected
        phaseDeadline = .max
        timing = HeartBeatTiming(heartBeat, at: now)
        receiptLimit = profile.sendsReceipts ? UInt32(clamping: max(1, configuration.maximumReceipts)) : 0
        receiptWait.start(timeout: configuration.acknowledgementTimeout, at: listening.time(at: now))
        effects.report(
            .connected(
                STOMPConnected(
                    version: version, session: frame.headers["session"], server: frame.headers["server"],
                    heartBeat: heartBeat, profile: profile, headers: frame.headers)))
    }
}

extension STOMPEngine {

    @inline(__always)
    mutating func handleServerFrame(
        _ bytes: RawSpan, _ base: Int, at now: Int64, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if scanner.command == .message, phase.isOpen {
            return try handleMessage(bytes, base, into: &effects)
        }
        switch scanner.command {
        case .receipt where phase != .connecting:
            try handleReceipt(bytes, base, into: &effects)
            // A receipt counts even if no caller waits for it any longer.
            oweOldest()
            receiptWait.progressed(at: listening.time(at: now))
        case .connected where phase == .connecting: try handleConnected(bytes, base, at: now, into: &effects)
        case .error: handleError(bytes, base, into: &effects)
        case .connected, .message, .receipt: throw unexpected(bytes, base)
        default:
            guard phase != .connecting else { throw unexpected(bytes, base) }
            effects.report(.unknownFrameReceived(STOMPFrame(scanner, in: bytes, from: base, version: version)))
        }
    }

    private mutating func handleMessage(
        _ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if version != .v10, !scanner.destination.isSet || !scanner.subscription.isSet || !scanner.messageID.isSet {
            throw missingInMessage
        }
        var record = STOMPMessageRecord(scanner, base)
        if scanner.subscription.isSet {
            if let index = indexOfSubscription(bytes, base) {
                if subscriptions.entries[index].notesMessages {
                    let receipt = subscriptions.noteMessage(at: index)
                    if receipt != 0 { subscriptionProved(receipt, into: &effects) }
                }
                record.subscription = subscriptions.entries[index].token
            }
        } else if let index = indexByDestination(bytes, base) {
            record.subscription = subscriptions.received(at: index)
            record.flags.insert(.matchedByDestination)
        }
        effects.messages.append(record)
    }

    /// The place of the subscription that a MESSAGE names.
    @inline(__always)
    mutating func indexOfSubscription(_ bytes: RawSpan, _ base: Int) -> Int? {
        let start = base &+ Int(scanner.subscription.start)
        let end = base &+ Int(scanner.subscription.end)
        return subscriptions.index(of: bytes, start, end) ?? reescapedIndex(bytes, start, end)
    }

    /// A server may write an id in another form than ours: a colon unescaped, or blanks around it in 1.0.
    private mutating func reescapedIndex(_ bytes: RawSpan, _ start: Int, _ end: Int) -> Int? {
        guard scanner.hasEscapes || version == .v10 || bytes.firstOffset(of: 0x3A, from: start, to: end) != nil
        else { return nil }
        let id = STOMPHeaderReader(version: version).string(in: bytes, start..<end)
        return subscriptions.index(of: wireForm(id))
    }

    /// In STOMP 1.0 a MESSAGE may lack its subscription. This is rare, so it searches all of them.
    private func indexByDestination(_ bytes: RawSpan, _ base: Int) -> Int? {
        guard let destination = destination(bytes, base) else { return nil }
        return subscriptions.entries.firstIndex { $0.destination.hasSameBytes(as: destination) }
            ?? subscriptions.entries.firstIndex { profile.wildcards.matches($0.destination, destination) }
    }

    private func destination(_ bytes: RawSpan, _ base: Int) -> String? {
        guard scanner.destination.isSet else { return nil }
        let range = (base + Int(scanner.destination.start))..<(base + Int(scanner.destination.end))
        return STOMPHeaderReader(version: version).string(in: bytes, range)
    }

    /// The place of the subscription of a MESSAGE whose subscription is not known, if it can be of one only.
    func onlyCandidate(_ bytes: RawSpan, _ base: Int) -> Int? {
        if subscriptions.entries.count == 1 { return 0 }
        guard let destination = destination(bytes, base) else { return nil }
        let candidates = subscriptions.entries.indices.filter { index in
            let own = subscriptions.entries[index].destination
            return own.hasSameBytes(as: destination) || profile.wildcards.matches(own, destination)
        }
        return candidates.count == 1 ? candidates[0] : nil
    }

    /// The first header that a MESSAGE must have and this one has not (STOMP 1.1 and 1.2 "MESSAGE").
    private var missingInMessage: STOMPProtocolError {
        if !scanner.destination.isSet { return missing("destination", "MESSAGE") }
        return missing(scanner.subscription.isSet ? "message-id" : "subscription", "MESSAGE")
    }

    func missing(_ header: String, _ command: String) -> STOMPProtocolError {
        .headerIsMissing(header, in: command, version)
    }

    private mutating func handleReceipt(
        _ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if version != .v10, !scanner.receiptID.isSet { throw missing("receipt-id", "RECEIPT") }
        // A receipt that is not awaited arrived too late or is unknown; ignore it.
        guard let number = receiptNumber(bytes, base) else { return }
        if number == disconnectReceipt { return finishDisconnect(into: &effects) }
        hasReceivedReceipts = true
        if !transactionReceipts.isEmpty {
            if transactionReceipts.holdsBack(number) { return }
            // After the completion of the SEND, if that has one.
            let commit = transactionReceipts.received(number)
            complete(number, into: &effects)
            if let commit { complete(commit, into: &effects) }
            return
        }
        complete(number, into: &effects)
    }

    private mutating func complete(_ number: UInt64, into effects: inout STOMPEffects) {
        guard let token = receipts.take(number) else { return }
        effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .received))
    }

    private func receiptNumber(_ bytes: RawSpan, _ base: Int) -> UInt64? {
        guard scanner.receiptID.isSet else { return nil }
        let start = base + Int(scanner.receiptID.start)
        let end = base + Int(scanner.receiptID.end)
        if let number = receipts.number(for: bytes, start, end) { return number }
        if let number = transactionReceipts.number(for: bytes, start, end) { return number }
        let id = Array(STOMPHeaderReader(version: version).string(in: bytes, start..<end).utf8)
        // UInt8 has no padding, so all bytes are initialised.
        return receipts.number(for: unsafe id.span.bytes, 0, id.count)
    }

    private mutating func handleError(_ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects) {
        unfinished = []
        let error = STOMPServerError(STOMPFrame(scanner, in: bytes, from: base, version: version))
        effects.report(.errorReceived(error))
        var failure = failure(by: error)
        if phase == .connecting { return fail(failure, waits: .connectionLost, into: &effects) }
        // ERROR does not refuse a COMMIT whose receipt has arrived: it is unknown whether its messages arrived.
        for number in transactionReceipts.heldBack {
            guard let token = receipts.take(number) else {
                assert(false, "A COMMIT waits for its frames, and nothing waits for it.")
                continue
            }
            effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .sessionEnded))
        }
        let isNamed = scanner.receiptID.isSet || (phase == .connected && scanner.subscription.isSet)
        if isNamed {
            if let destination = refuseFrame(bytes, base, into: &effects) {
                failure = .ended(by: error, becauseOf: destination)
            }
        } else if phase == .connected, !profile.errorNamesReceipt, !error.mentions(anyOf: profile.errorsAboutNoFrame) {
            // The only waiter; of several the oldest is the best guess, since servers handle frames in order.
            let outcome: STOMPReceiptCompletion.Outcome = receipts.pending == 1 ? .refused : .presumablyRefused
            if let token = receipts.takeOldest() {
                effects.completions.append(STOMPReceiptCompletion(token: token, outcome: outcome))
            }
        }
        if phase == .leaving { return finishDisconnect(into: &effects) }
        fail(failure, waits: .sessionEnded, into: &effects)
    }

    /// The failure of a connection that an ERROR ends.
    ///
    /// - Parameter flaw: what keeps the ERROR from being read as a whole; empty for one that was.
    func failure(by error: STOMPServerError, _ flaw: String = "") -> STOMPConnectionFailure {
        phase == .connecting ? .refused(by: error, flaw, configuration.connect) : .ended(by: error, flaw)
    }

    /// Refuses the frame that an ERROR names by its receipt, or the SUBSCRIBE of the subscription that it names. Returns the
    /// destination of the latter.
    ///
    /// An ERROR about a subscription is no answer to another frame: RabbitMQ sends it when it cancels the subscription, for
    /// example because its queue is gone.
    private mutating func refuseFrame(_ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects) -> String? {
        var (number, destination): (UInt64?, String?)
        if scanner.receiptID.isSet {
            number = receiptNumber(bytes, base)
        } else if let index = indexOfSubscription(bytes, base) {
            (number, destination) = (subscriptions.entries[index].receipt, subscriptions.entries[index].destination)
        }
        if let number, number != disconnectReceipt, let token = receipts.take(number) {
            effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .refused))
        }
        return destination
    }
}

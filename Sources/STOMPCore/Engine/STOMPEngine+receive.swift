// What comes from the peer: one loop for both roles, frames parsed where they lie.

import Wire

extension STOMPEngine {
    /// Takes `bytes`, everything that was not consumed so far, and answers how many bytes it consumed. The rest is the
    /// beginning of a frame; it is presented again with what comes next, and is not looked at a second time.
    ///
    /// Ranges in `effects` are offsets into `bytes`.
    public mutating func receive(_ bytes: RawSpan, at now: Int64, into effects: inout STOMPEffects) -> Int {
        guard phase != .offline, phase != .ended else { return bytes.byteCount }
        if bytes.byteCount > bytesLeft { timing.read(at: now) }
        var base = 0
        do throws(STOMPProtocolError) {
            while true {
                if scanner.isBetweenFrames {
                    let skipped = scanner.lineEnds(in: bytes, from: base)
                    lineEndsReceived &+= UInt64(skipped.count)
                    base &+= skipped.bytes
                    if phase == .connected, role == .client {
                        base = receivePlainReceipts(bytes, from: base, into: &effects)
                    }
                }
                let known: STOMPVersion? = phase == .connecting ? nil : version
                guard try scanner.scan(bytes, from: base, version: known, limits: limits) else { break }
                framesReceived &+= 1
                if role == .client {
                    try handleServerFrame(bytes, base, at: now, into: &effects)
                } else {
                    try handleClientFrame(bytes, base, at: now, into: &effects)
                }
                base &+= scanner.frameEnd
                scanner.reset()
                if phase == .ended { return bytes.byteCount }
            }
            if phase == .connecting { try checkFirstCommand(bytes, base) }
        } catch {
            handleViolation(
                phase == .connecting && isTLSAlert(bytes, base) ? .answersInTLS : error, bytes, base, into: &effects)
            return bytes.byteCount
        }
        bytesLeft = bytes.byteCount &- base
        return base
    }

    /// A web server or a TLS server is told apart by its first line, not after the connect timeout.
    private func checkFirstCommand(_ bytes: RawSpan, _ base: Int) throws(STOMPProtocolError) {
        if isTLSAlert(bytes, base) { throw .answersInTLS }
        guard scanner.step == .headers || scanner.step == .openBody || scanner.step == .countedBody else { return }
        let isExpected =
            switch scanner.command {
            case .connected, .error: role == .client
            case .connect, .stomp: role == .server
            default: false
            }
        if !isExpected { throw unexpected(bytes, base) }
    }

    /// Whether a TLS server says that it does not understand CONNECT (RFC 8446 section 5.1, type 21).
    private func isTLSAlert(_ bytes: RawSpan, _ base: Int) -> Bool {
        bytes.byteCount - base >= 2 && bytes.byte(at: base) == 0x15 && bytes.byte(at: base + 1) == 3
    }

    func unexpected(_ bytes: RawSpan, _ base: Int) -> STOMPProtocolError {
        let name = scanner.name(in: bytes, base)
        let text =
            switch (phase, role) {
            case (.connecting, .client): "The peer begins with \"\(name)\" instead of CONNECTED. Is it a STOMP server?"
            case (.connecting, .server): "\(name) came before CONNECT."
            default: "\(name) is not allowed in a session."
            }
        return STOMPProtocolError(.unexpectedFrame, text)
    }

    private mutating func handleViolation(
        _ violation: STOMPProtocolError, _ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects
    ) {
        if role == .server {
            // The client learns which of its frames it was, where it asked for a receipt.
            var receipt: String?
            if scanner.receipt.isSet {
                let range = (base + Int(scanner.receipt.start))..<(base + Int(scanner.receipt.end))
                receipt = STOMPHeaderReader(version: version).string(in: bytes, range)
            }
            writeError(violation.message, receiptID: receipt)
        }
        fail(
            STOMPConnectionFailure(
                violation.code == .versionMismatch ? .versionMismatch : .violation(violation.code), violation.message),
            waits: .sessionEnded, into: &effects)
    }

    // MARK: Client

    @inline(__always)
    private mutating func handleServerFrame(
        _ bytes: RawSpan, _ base: Int, at now: Int64, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if scanner.command == .message, phase == .connected || phase == .disconnecting {
            return try handleMessage(bytes, base, into: &effects)
        }
        switch scanner.command {
        case .receipt where phase != .connecting: try handleReceipt(bytes, base, into: &effects)
        case .connected where phase == .connecting: try handleConnected(bytes, base, at: now, into: &effects)
        case .error: handleError(bytes, base, into: &effects)
        case .connected, .message, .receipt: throw unexpected(bytes, base)
        default:
            guard phase != .connecting else { throw unexpected(bytes, base) }
            effects.add(.unknownFrameReceived(STOMPFrame(scanner, in: bytes, from: base, version: version)))
        }
    }

    private mutating func handleMessage(
        _ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if version != .v10, !scanner.destination.isSet || !scanner.subscription.isSet || !scanner.hasMessageID {
            throw missingInMessage
        }
        var record = STOMPMessageRecord(scanner, base)
        if scanner.subscription.isSet {
            let start = base &+ Int(scanner.subscription.start)
            let end = base &+ Int(scanner.subscription.end)
            if let index = subscriptions.index(of: bytes, start, end) ?? reescapedIndex(bytes, start, end) {
                record.subscription = subscriptions.entries[index].token
            }
        } else if let index = indexByDestination(bytes, base) {
            record.subscription = subscriptions.entries[index].token
            record.flags.insert(.matchedByDestination)
        }
        effects.messages.append(record)
    }

    /// A server may write an id in another form than ours: a colon unescaped, or blanks around it in 1.0.
    private mutating func reescapedIndex(_ bytes: RawSpan, _ start: Int, _ end: Int) -> Int? {
        guard scanner.hasEscapes || version == .v10 || bytes.firstOffset(of: 0x3A, from: start, to: end) != nil
        else { return nil }
        let id = STOMPHeaderReader(version: version).string(in: bytes, start..<end)
        return subscriptions.index(of: wireForm(id))
    }

    /// STOMP 1.0 need not say which subscription a MESSAGE is for. Rare, so a walk over all of them.
    private func indexByDestination(_ bytes: RawSpan, _ base: Int) -> Int? {
        guard scanner.destination.isSet else { return nil }
        let range = (base + Int(scanner.destination.start))..<(base + Int(scanner.destination.end))
        let destination = STOMPHeaderReader(version: version).string(in: bytes, range)
        return subscriptions.entries.firstIndex { $0.destination.hasSameBytes(as: destination) }
            ?? subscriptions.entries.firstIndex { profile.wildcards.matches($0.destination, destination) }
    }

    /// The first header that a MESSAGE must have and this one has not (STOMP 1.1 and 1.2 "MESSAGE").
    private var missingInMessage: STOMPProtocolError {
        if !scanner.destination.isSet { return missing("destination", "MESSAGE") }
        return missing(scanner.subscription.isSet ? "message-id" : "subscription", "MESSAGE")
    }

    func missing(_ header: String, _ command: String) -> STOMPProtocolError {
        STOMPProtocolError(.missingHeader, "\(command) has no header \"\(header)\", which STOMP \(version) requires.")
    }

    private mutating func handleReceipt(
        _ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if version != .v10, !scanner.receiptID.isSet { throw missing("receipt-id", "RECEIPT") }
        // One that nobody waits for came too late, or names nothing: neither harms.
        guard let number = receiptNumber(bytes, base) else { return }
        if number == disconnectReceipt { return finishDisconnect(into: &effects) }
        guard let token = receipts.take(number) else { return }
        effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .received))
    }

    private func receiptNumber(_ bytes: RawSpan, _ base: Int) -> UInt64? {
        guard scanner.receiptID.isSet else { return nil }
        let start = base + Int(scanner.receiptID.start)
        let end = base + Int(scanner.receiptID.end)
        if let number = receipts.number(for: bytes, start, end) { return number }
        let id = Array(STOMPHeaderReader(version: version).string(in: bytes, start..<end).utf8)
        // UInt8 has no padding, so all bytes are initialised.
        return receipts.number(for: unsafe id.span.bytes, 0, id.count)
    }

    private mutating func handleError(_ bytes: RawSpan, _ base: Int, into effects: inout STOMPEffects) {
        let frame = STOMPFrame(scanner, in: bytes, from: base, version: version)
        let error = STOMPServerError(frame)
        effects.add(.errorReceived(error))
        if phase == .connecting {
            let isAboutCredentials = STOMPBrokerProfile.refusesCredentials(error)
            let hint = isAboutCredentials ? " Check user and password.\(connectOptions.backslashHint)" : ""
            return fail(
                STOMPConnectionFailure(
                    isAboutCredentials ? .credentialsRefused : .refused,
                    "The server refused the connection: \(error.sentence)\(hint)", error: error),
                waits: .connectionLost, into: &effects)
        }
        // The waiter that ERROR names, or the only one; without a name the oldest is the best guess, since servers
        // handle frames in order.
        let isAlone = receipts.pending == 1
        if let number = receiptNumber(bytes, base), number != disconnectReceipt, let token = receipts.take(number) {
            effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .refused))
        } else if !scanner.receiptID.isSet, phase == .connected, let token = receipts.takeOldest() {
            effects.completions.append(
                STOMPReceiptCompletion(token: token, outcome: isAlone ? .refused : .presumablyRefused))
        }
        if phase == .disconnecting { return finishDisconnect(into: &effects) }
        fail(
            STOMPConnectionFailure(.error, "The server ended the session: \(error.sentence)", error: error),
            waits: .sessionEnded, into: &effects)
    }
}

extension STOMPMessageRecord {
    @inline(__always)
    init(_ scanner: borrowing FrameScanner, _ base: Int) {
        func offset(_ value: Int) -> UInt32 { UInt32(truncatingIfNeeded: base &+ value) }
        subscription = Self.unmatched
        let hasDestination = scanner.destination.isSet
        offsets = (
            offset(0), offset(scanner.headerStart), offset(scanner.headerEnd), offset(scanner.bodyStart),
            offset(scanner.bodyEnd), hasDestination ? offset(Int(scanner.destination.start)) : 0,
            hasDestination ? offset(Int(scanner.destination.end)) : 0
        )
        flags = scanner.hasEscapes ? .escaped : []
        if scanner.receipt.isSet { flags.insert(.receipt) }
        if scanner.transaction.isSet { flags.insert(.transaction) }
    }
}

// What comes from the peer: one loop for both roles, frames parsed where they lie.

import MessagingWire

extension STOMPEngine {
    /// Takes `bytes`, everything that was not consumed so far, and answers how many bytes it consumed. The rest is the
    /// beginning of a frame; it is presented again together with the next bytes, and is not examined a second time.
    ///
    /// Ranges in `effects` are offsets into `bytes`.
    public mutating func receive(_ bytes: RawSpan, at now: Int64, into effects: inout STOMPEffects) -> Int {
        receive(bytes, from: 0, at: now, into: &effects)
    }

    /// The same for a piece of the bytes, which begins at `start`; the effects are those of the pieces before it. Returns
    /// where it has stopped.
    package mutating func receive(
        _ bytes: RawSpan, from start: Int, at now: Int64, into effects: inout STOMPEffects
    ) -> Int {
        defer { assert(checkInvariants()) }
        guard phase != .closed, phase != .closing else { return bytes.byteCount }
        if bytes.byteCount - start > bytesLeft { timing.listening.noteSign(at: now) }
        var base = start
        do throws(STOMPProtocolError) {
            while true {
                if scanner.isBetweenFrames {
                    let skipped = scanner.lineEnds(in: bytes, from: base)
                    lineEndsReceived &+= UInt64(skipped.count)
                    base &+= skipped.bytes
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
                if phase == .closing { return bytes.byteCount }
            }
            if phase == .connecting { try checkFirstCommand(bytes, base) }
        } catch {
            handleViolation(
                phase == .connecting && bytes.isTLSAlert(from: base) ? .answersInTLS : error, bytes, base,
                into: &effects)
            return bytes.byteCount
        }
        bytesLeft = bytes.byteCount &- base
        if base > start, !unfinished.isEmpty { unfinished = [] }
        if bytesLeft > 0, role == .client, base == start || scanner.command == .error { noteUnfinished(bytes, base) }
        return base
    }

    /// Notes the beginning of an ERROR, which may be the last that arrives, and of a message that is longer than a read.
    private mutating func noteUnfinished(_ bytes: RawSpan, _ base: Int) {
        let most = 1_024
        guard scanner.command == .error || (scanner.command == .message && scanner.step == .countedBody),
            unfinished.count < most
        else { return }
        unfinished = bytes.bytes(in: base..<min(bytes.byteCount, base + most))
    }

    /// The text of an ERROR that has not ended, or that breaks the protocol, as far as it can be read; nil without any, since a
    /// server of another protocol may write the same word.
    mutating func takeUnfinishedError() -> STOMPServerError? {
        guard role == .client, scanner.command == .error else { return nil }
        let (kept, text) = (unfinished, unfinishedHeaders["message"])
        unfinished = []
        // UInt8 has no padding, so all bytes are initialised.
        let bytes = unsafe kept.span.bytes
        let start = scanner.bodyStart == 0 ? bytes.byteCount : min(scanner.bodyStart, bytes.byteCount)
        // Bytes after NUL are not text, even if `content-length` includes them.
        let end = bytes.firstOffset(of: 0, from: start, to: bytes.byteCount) ?? bytes.byteCount
        guard text != nil || end > start else { return nil }
        let headers: STOMPHeaders = text.map { ["message": $0] } ?? [:]
        return STOMPServerError(STOMPFrame(.error, headers: headers, body: bytes.bytes(in: start..<end)))
    }

    /// The headers of a frame that has not ended, as far as they have arrived.
    private var unfinishedHeaders: STOMPHeaders {
        // UInt8 has no padding, so all bytes are initialised.
        let bytes = unsafe unfinished.span.bytes
        let start = min(scanner.headerStart, bytes.byteCount)
        // A text is of use without its end, other values are not.
        var end = bytes.byteCount
        while end > start, bytes.byte(at: end - 1) != UInt8(ascii: "\n") { end -= 1 }
        if bytes.holds("message:", at: end) { end = bytes.byteCount }
        return STOMPHeaderReader(version: version, command: scanner.command)
            .headers(in: bytes.extracting(start..<end))
    }

    /// What to add to the report of a connection that has ended within a message; empty for others. A `content-length` that is
    /// too large makes everything that follows a part of the body, heart-beats too.
    var unfinishedHint: String {
        guard role == .client, scanner.command == .message, scanner.step == .countedBody else { return "" }
        return STOMPConnectionFailure.hint(
            atUnfinishedMessageFrom: unfinishedHeaders["destination"], arrived: bytesLeft - scanner.bodyStart,
            of: scanner.contentLength)
    }

    /// A web server or a TLS server is recognised by its first line, not after the connect timeout.
    private func checkFirstCommand(_ bytes: RawSpan, _ base: Int) throws(STOMPProtocolError) {
        if bytes.isTLSAlert(from: base) { throw .answersInTLS }
        guard scanner.step == .headers || scanner.step == .openBody || scanner.step == .countedBody else { return }
        let isExpected =
            switch scanner.command {
            case .connected, .error: role == .client
            case .connect, .stomp: role == .server
            default: false
            }
        if !isExpected { throw unexpected(bytes, base) }
    }

    func unexpected(_ bytes: RawSpan, _ base: Int) -> STOMPProtocolError {
        let name = scanner.name(in: bytes, base)
        return switch (phase, role) {
        case (.connecting, .client): .beginsWithOtherFrame(name)
        case (.connecting, .server): .arrivedBeforeConnect(name)
        default: .isNotAllowedInSession(name)
        }
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
        } else {
            unfinished = []
            // The server's text matters more than its framing.
            if scanner.command == .error, scanner.bodyStart > 0 { noteUnfinished(bytes, base) }
        }
        var failure = STOMPConnectionFailure(
            violation.code == .versionMismatch ? .versionMismatch : .violation(violation.code), violation.message)
        if role == .client {
            nameMessage(in: &failure, bytes, base)
            if violation.code == .limitExceeded { failure.message += STOMPConnectionFailure.adviceOnLimits }
        }
        fail(failure, waits: .sessionEnded, into: &effects)
    }

    /// The broker delivers a message that it may not, or that is beyond the limits, again and again: names it, and its
    /// subscription.
    private mutating func nameMessage(in failure: inout STOMPConnectionFailure, _ bytes: RawSpan, _ base: Int) {
        func text(_ slot: FrameScanner.Slot) -> String? {
            guard slot.isSet else { return nil }
            let range = base + Int(slot.start)..<base + Int(slot.end)
            return OneLine.text(STOMPHeaderReader(version: version).string(in: bytes, range))
        }
        guard scanner.command == .message else { return }
        scanner.noteRest(bytes, base, version)
        let index = scanner.subscription.isSet ? indexOfSubscription(bytes, base) : onlyCandidate(bytes, base)
        if let index { failure.subscription = subscriptions.entries[index].token }
        if let destination = text(scanner.destination) {
            failure.message += STOMPConnectionFailure.name(ofMessage: text(scanner.messageID), from: destination)
        } else if let index {
            failure.message += STOMPConnectionFailure.name(
                ofMessageForSubscriptionTo: subscriptions.entries[index].destination)
        }
    }
}

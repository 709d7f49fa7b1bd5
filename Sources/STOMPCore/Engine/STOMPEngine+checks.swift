// What operations check before they write.
//
// The checks change nothing. They are declared as mutating because the compiler copies an engine, which is a KiB, for the
// call of a method that only reads it.

import MessagingWire

/// Headers that an operation writes itself, or that would collide with a server's in MESSAGE.
enum ReservedHeaders {
    static let send: [StaticString] = [
        "destination", "content-length", "transaction", "receipt", "receipt-id", "subscription", "message-id", "ack",
    ]
    static let subscribe: [StaticString] = ["id", "destination", "ack", "content-length"]
    static let unsubscribe: [StaticString] = ["id", "destination", "receipt", "content-length"]
    static let acknowledge: [StaticString] = [
        "id", "message-id", "subscription", "transaction", "receipt", "content-length",
    ]
    static let transaction: [StaticString] = ["transaction", "receipt", "content-length"]
    static let disconnect: [StaticString] = ["receipt", "content-length"]

    /// The one of `names` that has the same bytes as `name`. Most differ from it in length already.
    static func match(_ name: String, in names: [StaticString]) -> StaticString? {
        let count = name.utf8.count
        for candidate in names where candidate.utf8CodeUnitCount == count && name.hasBytes(of: candidate) {
            return candidate
        }
        return nil
    }
}

extension STOMPEngine {
    @inline(__always)
    func requireConnected() throws(STOMPUsageError) {
        guard phase == .connected, role == .client else { throw .clientCannotSend(role, in: phase) }
    }

    /// Refuses reserved headers.
    @inline(__always)
    mutating func checkHeaders(_ headers: STOMPHeaders, _ reserved: [StaticString]) throws(STOMPUsageError) {
        if !headers.isEmpty { try checkEach(headers, reserved) }
    }

    private mutating func checkEach(_ headers: STOMPHeaders, _ reserved: [StaticString]) throws(STOMPUsageError) {
        // Looked at where they lie: taken out, each field would cost four counted references.
        let fields = headers.fields.span
        for index in fields.indices {
            if let name = ReservedHeaders.match(fields[index].name, in: reserved) {
                throw .headerIsReserved(name)
            }
        }
    }

    /// The receipt id that the user of SUBSCRIBE has chosen; nil without one.
    mutating func chosenReceipt(_ headers: STOMPHeaders, hasToken: Bool) throws(STOMPUsageError) -> [UInt8]? {
        guard let text = headers["receipt"] else { return nil }
        try require(hasToken, else: .receiptWithoutToken)
        let isOurs = TransactionReceipts.withoutPrefix(text).allSatisfy { (0x30...0x39).contains($0) }
        let receipt = Array(text.utf8)
        try require(!isOurs && !receipts.isAwaited(named: receipt), else: .receiptIsTaken(text))
        return receipt
    }

    /// A broker that refuses a frame in the middle reads the rest of it as commands, so such a frame is not sent.
    @inline(__always)
    mutating func checkBrokerLimits(_ headers: STOMPHeaders, _ destination: String) throws(STOMPUsageError) {
        guard let longest = profile.longestHeaderLine else { return }
        try checkLine("destination", destination, longest)
        let fields = headers.fields.span
        for index in fields.indices { try checkLine(fields[index].name, fields[index].value, longest) }
        let most = profile.mostHeaders ?? .max
        guard headers.count + 4 <= most else { throw .tooManyHeaders(headers.count, profile, maximum: most) }
    }

    @inline(__always)
    private mutating func checkLine(_ name: String, _ value: String, _ longest: Int) throws(STOMPUsageError) {
        // Escapes may double a line, so only a short one passes without a closer look.
        if name.utf8.count &+ value.utf8.count &+ 1 > longest / 2 { try checkLongLine(name, value, longest) }
    }

    private mutating func checkLongLine(_ name: String, _ value: String, _ longest: Int) throws(STOMPUsageError) {
        let escaping = STOMPEscaping(version)
        var bytes = name.utf8.count + value.utf8.count + 1
        bytes += name.utf8.count { escaping.letter(for: $0) != nil }
        bytes += value.utf8.count { escaping.letter(for: $0) != nil }
        guard bytes <= longest else { throw .headerIsTooLong(name, bytes, profile, maximum: longest) }
    }

    /// Refuses a subscription whose acknowledgements would count for messages of others, or theirs for its own.
    mutating func checkOthers(beside mode: STOMPAckMode) throws(STOMPUsageError) {
        // There is one in mode client, or any number of the other mode: the first one tells.
        let other = subscriptions.entries.first { $0.isAcknowledged }
        let isClient = mode == .client || other?.ackMode == .client
        if let other, isClient { throw .sharesAcknowledgements(profile, with: other.destination) }
        try require(mode != .client || !hasLeftMessages, else: .acknowledgesLeftMessages(profile))
    }

    mutating func checkReceipts() throws(STOMPUsageError) {
        let most = Int(clamping: receiptLimit)
        // One receipt that stays open holds the numbers after it, so the span has a bound too.
        guard receipts.pending < most, receipts.span / 16 < most else {
            try requireReceipts()
            if receipts.pending < most, let oldest = receipts.oldest {
                throw .receiptIsPendingTooLong(receipts.id(of: oldest), later: receipts.span - 1)
            }
            throw .tooManyReceipts(receipts.pending, maximum: most)
        }
    }

    func requireReceipts() throws(STOMPUsageError) {
        try require(receiptLimit > 0, else: .hasNoReceipts(profile))
    }

    /// A message has proved a subscription: its receipt, of this number, is not awaited any longer. That is no progress for
    /// other receipts.
    mutating func subscriptionProved(_ number: UInt64, into effects: inout STOMPEffects) {
        guard let token = receipts.take(number) else { return }
        effects.completions.append(STOMPReceiptCompletion(token: token, outcome: .received))
        guard owedReceipt == number else { return }
        oweOldest()
        // Count from the time when the next receipt's frame was written, as if it had been the first.
        if owedReceipt != 0 {
            receiptWait.skip(to: receipts.nextDeadline.advanced(byNanoseconds: -configuration.receiptTimeout))
        }
    }

    /// The server owes the receipts that callers wait for, and no earlier one.
    mutating func oweOldest() { owedReceipt = receipts.oldest ?? 0 }

    /// The receipt of a COMMIT has arrived, while those of its frames have not: the server owes one of these.
    mutating func oweFrame(ofCommit number: UInt64) {
        guard number == owedReceipt, let frame = transactionReceipts.oldestMissing(ofCommit: number) else { return }
        owedReceipt = frame
    }

    mutating func addReceipt(_ token: UInt64, _ name: [UInt8]? = nil, at now: Int64) {
        let time = listening.time(at: now)
        if owedReceipt == 0 {
            owedReceipt = receipts.nextNumber
            receiptWait.restart(at: time)
        }
        receipts.add(token: token, deadline: time.advanced(byNanoseconds: configuration.receiptTimeout), name: name)
    }

    /// An id as it stands on the wire.
    func wireForm(_ id: String) -> [UInt8] {
        let escaping = STOMPEscaping(version)
        var bytes: [UInt8] = []
        for byte in id.utf8 {
            if let letter = escaping.letter(for: byte) {
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(letter)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}

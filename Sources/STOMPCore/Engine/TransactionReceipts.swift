import MessagingWire

/// The frames of transactions whose receipts COMMIT waits for, at brokers whose receipt of COMMIT does not mean that the
/// messages have arrived (``STOMPBrokerProfile/confirmsCommitEarly``): every SEND, and an ACK or NACK with a
/// receipt token.
///
/// The receipt of COMMIT itself is in the ``ReceiptTable``, with its time-out, and stays there until those of the
/// transaction's frames have arrived too: whatever ends the wait for it before leaves the outcome unknown. A SEND
/// without a receipt token has a receipt nevertheless, with a number apart from those of the table and without a
/// time-out, because a transaction may be open for any time.
struct TransactionReceipts: Sendable {
    /// Awaited frames, by the numbers of their receipts, with the numbers of their transactions.
    private(set) var frames: [UInt64: UInt32] = [:]
    /// The number of them in each transaction.
    private(set) var awaited: [UInt32: Int] = [:]
    /// The receipts of COMMIT frames that were written while other frames were awaited, by their transactions.
    private(set) var commits: [UInt32: UInt64] = [:]
    /// The transactions by these receipts, and whether the receipt has arrived.
    private(set) var committed: [UInt64: (transaction: UInt32, isReceived: Bool)] = [:]
    private var last: UInt64 = 0
    /// The tokens of frames whose transaction was aborted, until the next effects report them.
    private(set) var abortedTokens: [UInt64] = []

    /// Set in the numbers that are apart from those of the ``ReceiptTable``.
    private static let apart: UInt64 = 1 << 63
    private static let prefix: StaticString = "send-"

    var isEmpty: Bool { frames.isEmpty && commits.isEmpty }

    /// The number of a receipt that no caller waits for, and the id that stands for it in the frame.
    mutating func makeReceipt() -> (number: UInt64, id: String) {
        last &+= 1
        return (Self.apart | last, "\(Self.prefix)\(last)")
    }

    /// A receipt id without the prefix of those that no caller waits for.
    static func withoutPrefix(_ id: String) -> Substring.UTF8View {
        id.utf8.starts(with: "\(prefix)".utf8) ? id.dropFirst(prefix.utf8CodeUnitCount).utf8 : id[...].utf8
    }

    /// A frame of a transaction was written.
    mutating func add(_ receipt: UInt64, of transaction: UInt32) {
        frames[receipt] = transaction
        awaited[transaction, default: 0] += 1
    }

    /// The number of the awaited receipt that a `receipt-id` of these bytes stands for.
    func number(for id: RawSpan, _ start: Int, _ end: Int) -> UInt64? {
        let count = Self.prefix.utf8CodeUnitCount
        guard !frames.isEmpty, end - start > count, end - start <= count + 19 else { return nil }
        for (offset, byte) in "\(Self.prefix)".utf8.enumerated() where id.byte(at: start + offset) != byte {
            return nil
        }
        var value: UInt64 = 0
        for offset in (start + count)..<end {
            let digit = id.byte(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value &* 10 &+ UInt64(digit)
        }
        return frames[Self.apart | value] == nil ? nil : Self.apart | value
    }

    /// The number of a frame that a COMMIT, whose own receipt has arrived, still waits for; nil for others.
    func oldestMissing(ofCommit receipt: UInt64) -> UInt64? {
        guard let commit = committed[receipt], commit.isReceived else { return nil }
        return frames.lazy.filter { $0.value == commit.transaction }.map { $0.key }.min()
    }

    /// The `receipt` header that stands for a number that is apart from those of the ``ReceiptTable``; nil for others.
    static func id(of number: UInt64) -> String? {
        number & apart == 0 ? nil : "\(prefix)\(number & ~apart)"
    }

    /// COMMIT was written with this receipt; without one nothing waits.
    mutating func committed(_ transaction: UInt32, receipt: UInt64?) {
        guard awaited[transaction] != nil else { return }
        guard let receipt else { return forget(transaction) }
        commits[transaction] = receipt
        committed[receipt] = (transaction, false)
    }

    /// The receipt with this number arrived. Returns true if it is that of a COMMIT whose other frames are still awaited.
    mutating func holdsBack(_ receipt: UInt64) -> Bool {
        guard committed[receipt] != nil else { return false }
        committed[receipt]?.isReceived = true
        return true
    }

    /// The receipt with this number arrived. Returns that of the COMMIT whose wait is over now.
    mutating func received(_ receipt: UInt64) -> UInt64? {
        guard let transaction = frames.removeValue(forKey: receipt) else { return nil }
        assert(awaited[transaction] != nil, "A frame is awaited for a transaction that awaits none.")
        let left = (awaited[transaction] ?? 1) - 1
        awaited[transaction] = left > 0 ? left : nil
        guard left <= 0, let commit = commits.removeValue(forKey: transaction) else { return nil }
        return committed.removeValue(forKey: commit)?.isReceived == true ? commit : nil
    }

    /// The wait for this receipt is over without it.
    mutating func expired(_ receipt: UInt64) {
        if let commit = committed[receipt] { forget(commit.transaction) }
    }

    /// The receipts of COMMIT frames that have arrived, though receipts of the other frames have not.
    var heldBack: [UInt64] { committed.filter { $0.value.isReceived }.keys.sorted() }

    /// The transaction was aborted, so that the broker, which drops its frames, never confirms them. Returns the
    /// numbers of awaited receipts that are in the ``ReceiptTable``, or were until their time was over.
    mutating func aborted(_ transaction: UInt32) -> [UInt64] {
        defer { forget(transaction) }
        return frames.filter { $0.value == transaction && $0.key & Self.apart == 0 }.map { $0.key }.sorted()
    }

    /// A frame of an aborted transaction was awaited with this token.
    mutating func addAborted(_ token: UInt64) { abortedTokens.append(token) }

    mutating func takeAbortedTokens() -> [UInt64] {
        defer { abortedTokens = [] }
        return abortedTokens
    }

    private mutating func forget(_ transaction: UInt32) {
        if let commit = commits.removeValue(forKey: transaction) { committed[commit] = nil }
        if awaited.removeValue(forKey: transaction) != nil { frames = frames.filter { $0.value != transaction } }
    }

    /// The connection ended. Numbers are not used again, so that a late receipt never fits.
    mutating func removeAll() {
        frames = [:]
        awaited = [:]
        commits = [:]
        committed = [:]
    }
}

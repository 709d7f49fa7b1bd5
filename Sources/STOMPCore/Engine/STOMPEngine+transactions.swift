// BEGIN, COMMIT, ABORT and DISCONNECT.

import MessagingWire

/// A transaction of one connection. It is over with COMMIT, ABORT or the connection, whichever comes first
/// (STOMP 1.2 "BEGIN"), and is refused from then on.
public struct STOMPTransaction: Sendable, Hashable, CustomStringConvertible {
    let connection: UInt32
    let number: UInt32

    /// The name on the wire, unless its user has named it.
    public var description: String { "tx-\(connection)-\(number)" }
}

/// What is known about a transaction until COMMIT or ABORT.
struct OpenTransaction: Sendable {
    /// The name that its user has given it; empty without one.
    var name = ""
    /// The answers to messages that are part of it.
    var answers: [STOMPMessageNumber] = []
}

extension STOMPEngine {
    /// Begins a transaction.
    ///
    /// - Parameter name: what it is called on the wire, where each of a connection has a name of its own; nil for a number.
    public mutating func begin(
        named name: String? = nil, headers: STOMPHeaders = [:], receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) -> STOMPTransaction {
        defer { assert(checkInvariants()) }
        try requireConnected()
        if let name {
            try require(
                !name.isEmpty && !name.utf8.starts(with: "tx-".utf8), else: .cannotNameTransaction(name))
            try require(
                !transactions.values.contains { $0.name.hasSameBytes(as: name) }, else: .transactionIsOpen(name))
        }
        let transaction = STOMPTransaction(connection: connection, number: nextTransaction)
        transactions[transaction.number] = OpenTransaction(name: name ?? "")
        do throws(STOMPUsageError) {
            try writeTransaction("BEGIN", isFirst: true, transaction, headers, receiptToken, at: now)
        } catch {
            transactions[transaction.number] = nil
            throw error
        }
        nextTransaction &+= 1
        return transaction
    }

    /// Makes all of a transaction count. RabbitMQ sends the receipts of its SENDs only now.
    ///
    /// If the receipt of COMMIT does not mean that the messages have arrived
    /// (``STOMPBrokerProfile/confirmsCommitEarly``), each SEND has a receipt too, and the completion with
    /// `receiptToken` follows the last of them. If one does not arrive, it is that of a lost receipt.
    public mutating func commit(
        _ transaction: STOMPTransaction, headers: STOMPHeaders = [:], receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireConnected()
        try check(transaction)
        let number = receipts.nextNumber
        try writeTransaction("COMMIT", transaction, headers, receiptToken, at: now)
        transactionReceipts.committed(transaction.number, receipt: receiptToken == nil ? nil : number)
        if let open = transactions.removeValue(forKey: transaction.number) {
            subscriptions.transactionEnded(transaction.number, open.answers, isAborted: false)
        }
        receiptWait.restart(at: listening.time(at: now))
    }

    /// Takes all of a transaction back: messages that were acknowledged or rejected in it are unanswered again.
    ///
    /// A broker that holds the frames of a transaction back until COMMIT (``STOMPBrokerProfile/confirmsCommitEarly``) drops
    /// them and their receipts. Callers that wait for those receipts get their end with the next `handleTimeout`, which
    /// is due at once.
    public mutating func abort(
        _ transaction: STOMPTransaction, headers: STOMPHeaders = [:], receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireConnected()
        try check(transaction)
        try writeTransaction("ABORT", transaction, headers, receiptToken, at: now)
        let withheld = transactionReceipts.aborted(transaction.number)
        if !withheld.isEmpty { endWaits(of: withheld, at: now) }
        if let open = transactions.removeValue(forKey: transaction.number) {
            subscriptions.transactionEnded(transaction.number, open.answers, isAborted: true)
        }
        receiptWait.restart(at: listening.time(at: now))
    }

    /// The broker owes none of these receipts any longer.
    private mutating func endWaits(of withheld: [UInt64], at now: Int64) {
        for number in withheld {
            guard let token = receipts.take(number) else { continue }
            transactionReceipts.addAborted(token)
            phaseDeadline = now
        }
        if withheld.contains(owedReceipt) { oweOldest() }
    }

    private mutating func writeTransaction(
        _ command: StaticString, isFirst: Bool = false, _ transaction: STOMPTransaction, _ headers: STOMPHeaders,
        _ receiptToken: UInt64?, at now: Int64
    ) throws(STOMPUsageError) {
        let name = transactions[transaction.number]?.name ?? ""
        // A frame that ends a transaction may end the waits for the receipts of its frames.
        try writeFrame(
            command, headers, ReservedHeaders.transaction, room: 64 + name.utf8.count * 2, receiptToken,
            boundsReceipts: isFirst, at: now
        ) {
            $0.put(transaction, named: name)
        }
    }

    mutating func check(_ transaction: STOMPTransaction) throws(STOMPUsageError) {
        try require(transaction.connection == connection, else: .connectionHasEnded(of: transaction))
        try require(transactions[transaction.number] != nil, else: .transactionIsOver(transaction))
    }

    /// Ends the session: DISCONNECT with a receipt, then `disconnected` when the RECEIPT comes, when the stream ends, or
    /// after ``STOMPEngineConfiguration/disconnectTimeout``, whichever is first. Nothing can be sent afterwards.
    ///
    /// Before CONNECTED there is no session to end: the stream is closed at the next `handleTimeout`, which is due at
    /// once. Calling it again, or without a connection, changes nothing.
    public mutating func disconnect(headers: STOMPHeaders = [:], at now: Int64) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try require(role == .client, else: .onlyClientsDisconnect)
        switch phase {
        case .closed, .leaving, .closing: return
        case .connecting, .deciding:
            phase = .leaving
            phaseDeadline = now
            return
        case .connected: break
        }
        try checkHeaders(headers, ReservedHeaders.disconnect)
        let number = receipts.nextNumber
        try FrameWriter.writeFrame(into: &output, "DISCONNECT", STOMPEscaping(version), headRoom: 96, headers: headers)
        {
            $0.put("receipt", number)
        }
        receipts.add(token: 0, deadline: .max)
        disconnectReceipt = number
        phase = .leaving
        phaseDeadline = now.advanced(byNanoseconds: configuration.disconnectTimeout)
        // Nothing may be written after DISCONNECT, heart-beats included (STOMP 1.2 "DISCONNECT"), and the deadline
        // above watches over the silence.
        timing.stopHeartBeats()
        transactions.removeAll()
    }
}

// What is always true of an engine between two inputs; in debug builds only. Each input that changes more than a time ends
// with `checkInvariants()`, so that an engine which contradicts itself stops where it has begun to. What a peer sends, or a
// caller does wrong, is never asserted.

import MessagingWire

extension STOMPEngine {
    /// Counts an input and stops the process where the engine contradicts itself. True, so that it is what `assert` checks,
    /// and costs nothing in a release build.
    mutating func checkInvariants() -> Bool {
        pace.count()
        if pace.isDue(for: receipts.size) { receipts.checkInvariants() }
        if pace.isDue(for: subscriptions.size) { subscriptions.checkInvariants() }
        if pace.isDue(for: transactionReceipts.size) { transactionReceipts.checkInvariants() }
        checkPhase()
        if phase == .connected { checkConnected() }
        return true
    }

    /// What exists in some phases only.
    private mutating func checkPhase() {
        assert(disconnectReceipt == nil || phase == .leaving, "RECEIPT of DISCONNECT is awaited before or after it.")
        assert(largePayload.map { $0.place <= output.count } ?? true, "A body belongs behind the end of the output.")
        switch phase {
        case .closed, .connecting, .deciding:
            assert(subscriptions.entries.isEmpty, "A subscription has outlived its connection.")
            assert(transactions.isEmpty, "A transaction has outlived its connection.")
            assert(transactionReceipts.isEmpty, "A transaction that is over awaits receipts.")
            assert(owedReceipt == 0, "A receipt is owed that no server knows of.")
        case .leaving: assert(transactions.isEmpty, "A transaction is open after DISCONNECT.")
        case .connected, .closing: break
        }
        assert(phase != .closed || phaseDeadline == .max, "A connection that has ended has a deadline.")
    }

    private mutating func checkConnected() {
        let abortedWait = transactionReceipts.abortedTokens.count
        assert((phaseDeadline != .max) == (abortedWait > 0), "CONNECTED is late although it has come.")
        assert(owedReceipt != 0 || receipts.pending == 0, "A receipt is awaited that the server does not owe.")
        assert(
            TransactionReceipts.id(of: owedReceipt) != nil || owedReceipt < receipts.nextNumber,
            "A receipt is owed that was not asked for.")
        guard pace.isDue(for: transactions.count + transactionReceipts.size + subscriptions.size) else { return }
        guard !transactions.isEmpty || !transactionReceipts.isEmpty else {
            return assert(subscriptions.hasNoOpenAnswers, "Answers wait for a transaction that is over.")
        }
        for transaction in transactionReceipts.awaitedTransactions {
            assert(
                transactions[transaction] != nil || transactionReceipts.isCommitted(transaction),
                "The receipts of a transaction are awaited that is over.")
        }
        for number in transactions.keys {
            assert(!transactionReceipts.isCommitted(number), "A transaction is open and committed.")
        }
        for entry in subscriptions.entries {
            let isOpen = entry.unanswered.openTransaction.map { transactions[$0] != nil } ?? true
            assert(isOpen, "Answers wait for a transaction that is over.")
        }
    }
}

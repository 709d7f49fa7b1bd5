// What is always true of the receipts of transactions; in debug builds only.

extension TransactionReceipts {
    /// What a check visits.
    var size: Int { frames.count + awaited.count + commits.count + committed.count }

    var awaitedTransactions: Dictionary<UInt32, Int>.Keys { awaited.keys }

    /// Whether COMMIT was written, and waits for the receipts of other frames.
    func isCommitted(_ transaction: UInt32) -> Bool { commits[transaction] != nil }

    /// Stops the process where the tables contradict each other.
    mutating func checkInvariants() {
        guard size > 0 else { return }
        var counted: [UInt32: Int] = [:]
        for transaction in frames.values { counted[transaction, default: 0] += 1 }
        assert(counted == awaited, "Another number of frames of a transaction is awaited than is counted.")
        assert(commits.count == committed.count, "A COMMIT awaits a receipt of its own only, or none of its own.")
        for (transaction, receipt) in commits {
            assert(committed[receipt]?.transaction == transaction, "The receipt of COMMIT leads to another one.")
            assert(awaited[transaction] != nil, "A COMMIT waits for frames that have their receipts.")
        }
    }
}

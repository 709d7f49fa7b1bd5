// What is always true of the receipts that are awaited; in debug builds only.

extension ReceiptTable {
    /// What a check visits.
    var size: Int { span + named.count }

    /// Stops the process where the table contradicts itself.
    mutating func checkInvariants() {
        assert(ring.count & (ring.count &- 1) == 0, "The length of a ring is no power of two.")
        assert(span <= ring.count && head < max(1, ring.count), "A ring has more receipts than room.")
        assert(span == 0 || ring[head].isPending, "The oldest receipt is not awaited.")
        var (offset, awaited) = (0, 0)
        while offset < span {
            if ring[(head + offset) & (ring.count - 1)].isPending { awaited += 1 }
            offset += 1
        }
        assert(pending == awaited, "Another number of receipts is awaited than is counted.")
        guard !named.isEmpty else { return }
        for number in named.values { assert(number < nextNumber, "A receipt has a name and is not awaited.") }
        assert(Set(named.values).count == named.count, "A receipt has two names.")
    }
}

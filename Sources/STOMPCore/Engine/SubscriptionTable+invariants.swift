// What is always true of the subscriptions and their unanswered messages; in debug builds only.

extension SubscriptionTable {
    /// What a check visits.
    var size: Int { slots.count }

    /// Whether no answer is part of an open transaction.
    var hasNoOpenAnswers: Bool { entries.allSatisfy { $0.unanswered.openTransaction == nil } }

    /// Stops the process where the table contradicts itself.
    mutating func checkInvariants() {
        guard !slots.isEmpty else { return assert(entries.isEmpty, "A subscription is not found by its id.") }
        assert(slots.count & (slots.count &- 1) == 0, "The length of a table is no power of two.")
        assert(entries.count * 2 <= slots.count, "A table is too full.")
        var (slot, taken) = (0, 0)
        while slot < slots.count {
            if slots[slot] >= 0 { taken += 1 }
            slot += 1
        }
        assert(taken == entries.count, "The table finds another number of subscriptions.")
        var place = 0
        while place < entries.count {
            let entry = entries[place]
            assert(index(of: entry.id) == place, "A subscription is not found by its id, or another one is.")
            assert(entry.receipt == 0 || entry.notesMessages, "The first message of a subscription proves nothing.")
            entry.unanswered.checkInvariants()
            place += 1
        }
    }
}

extension UnansweredMessages {
    fileprivate func checkInvariants() {
        assert((0...Int(next)).contains(count), "More messages are answered than have arrived, or fewer than none.")
        if isCumulative {
            check(given)
            if let rest = open?.rest { check(rest) }
            assert((open?.rest.count ?? 0) <= given.count, "A transaction takes answers back by its end.")
        } else {
            assert(given.bitCount == count, "Another number of messages is unanswered than is counted.")
            assert(open == nil, "Answers to single messages wait for a transaction.")
        }
    }

    /// In mode `client`.
    private func check(_ answers: Answers) {
        assert(answers.end <= next, "A message that has not arrived is answered.")
        assert(answers.count == Int(answers.end) + answers.bitCount, "Other messages are answered than are counted.")
    }
}

extension Answers {
    fileprivate var bitCount: Int { words.values.reduce(0) { $0 + $1.nonzeroBitCount } }
}

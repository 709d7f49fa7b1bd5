// What was sent on this connection and awaits an answer.

import MessagingWire

extension SendWindow {
    /// Whether nothing that was sent on this connection awaits an answer. Requests that are late do not count.
    var isQuiet: Bool { used == 0 && requests.count == 0 }

    /// Whether one of these messages is in the queue, which begins with those that were in flight when a session was lost.
    func queues(upTo sequence: UInt64) -> Bool {
        guard queue.first >= 0, slots[Int(queue.first)].kind == .requeued else { return false }
        return slots[Int(queue.first)].sequence <= sequence
    }

    /// What was sent on this connection and is unanswered.
    var unanswered: RefusalSearch.Unanswered? {
        // The connection ends with a late one that comes first.
        let hasSubscription =
            requests.indices(slots).contains { slots[Int($0)].kind == .subscribe }
        var sequences: [UInt64] = []
        for index in [published.first, received.first] where index >= 0 && slots[Int(index)].connection == connection {
            sequences.append(slots[Int(index)].sequence)
        }
        guard let first = sequences.min() else {
            return hasSubscription ? RefusalSearch.Unanswered(hasSubscription: true) : nil
        }
        for index in [published.last, received.last] where index >= 0 {
            sequences.append(slots[Int(index)].sequence)
        }
        return RefusalSearch.Unanswered(
            hasSubscription: hasSubscription, messages: first...(sequences.max() ?? first))
    }
}

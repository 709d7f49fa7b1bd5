/// Which message of its subscription a message is.
public struct STOMPMessageNumber: Sendable, Hashable {
    /// The token of the subscription.
    public let subscription: UInt64
    /// 0 for the first message that the subscription received on its connection.
    public let number: UInt64

    public init(subscription: UInt64, number: UInt64) {
        (self.subscription, self.number) = (subscription, number)
    }
}

/// The messages of one subscription that were received and neither acknowledged nor rejected, by their numbers: 0 for the
/// first message that the subscription received.
///
/// In mode `client` an answer is for all messages up to its own, so that one number is enough, beside those that a broker
/// has rejected alone. In mode `client-individual` each has a bit; words without a bit are not stored, so that the memory
/// follows the messages that are unanswered, which the broker's prefetch bounds.
struct UnansweredMessages: Sendable {
    let isCumulative: Bool
    /// The number that the next message gets.
    private(set) var next: UInt64 = 0
    /// The answers that were given, those of open transactions included.
    private(set) var given = Answers()
    /// In mode `client`: the open transaction that has answered, and the answers that count without it.
    private(set) var open: (transaction: UInt32, rest: Answers)?

    /// The number of messages that are unanswered.
    var count: Int { Int(next) - given.count }

    /// In mode `client`: the open transaction that has answered.
    var openTransaction: UInt32? { open?.transaction }

    init(_ mode: STOMPAckMode) { isCumulative = mode == .client }

    /// A message arrived.
    mutating func received() {
        if !isCumulative { given.setBit(next) }
        next &+= 1
    }

    /// Whether the message is unanswered.
    func contains(_ number: UInt64) -> Bool {
        guard number < next else { return false }
        return isCumulative ? number >= given.end && !given.hasBit(number) : given.hasBit(number)
    }

    /// An unanswered message is answered, in mode `client` with those before it unless it is `alone`.
    ///
    /// - Parameter transaction: what the answer is part of, so that `transactionEnded` follows. In mode `client` no other
    ///   open one may have answered.
    mutating func answer(_ number: UInt64, alone: Bool = false, in transaction: UInt32? = nil) {
        guard isCumulative else {
            given.clearBit(number)
            given.count += 1
            return
        }
        if let transaction {
            assert(!isHeld(against: transaction), "Two open transactions answer in mode client.")
            if open == nil { open = (transaction, given) }
        } else {
            open?.rest.add(number, alone: alone)
        }
        given.add(number, alone: alone)
    }

    /// Whether another transaction has answered in mode `client`, and is open: an abort could not tell their answers apart.
    func isHeld(against transaction: UInt32) -> Bool { open.map { $0.transaction != transaction } ?? false }

    /// The transaction of these answers was committed, or aborted so that they do not count.
    mutating func transactionEnded(_ transaction: UInt32, _ answers: [STOMPMessageNumber], isAborted: Bool) {
        if isCumulative {
            guard let ended = open, ended.transaction == transaction else { return }
            if isAborted { given = ended.rest }
            open = nil
        } else if isAborted {
            for answer in answers where answer.number < next && !contains(answer.number) {
                given.setBit(answer.number)
                given.count -= 1
            }
        }
    }
}

/// Which messages of a subscription are answered.
struct Answers: Sendable {
    /// In mode `client`: the messages below this number are.
    private(set) var end: UInt64 = 0
    /// In mode `client-individual`: bits of unanswered messages, 64 in each word. In mode `client`: of those that were
    /// answered alone, from `end` on.
    private(set) var words: [UInt64: UInt64] = [:]
    /// The number of messages that are answered.
    var count = 0

    /// In mode `client`: answers a message, with those before it unless it is `alone`. Once more changes nothing.
    mutating func add(_ number: UInt64, alone: Bool) {
        guard number >= end else { return }
        if alone {
            guard !hasBit(number) else { return }
            setBit(number)
            count += 1
            return
        }
        let apart = answeredAlone(upTo: number)
        for number in apart { clearBit(number) }
        count += Int(number + 1 - end) - apart.count
        end = number + 1
    }

    /// In mode `client`: the numbers that were answered alone and have not been answered with others.
    private func answeredAlone(upTo number: UInt64) -> [UInt64] {
        if words.isEmpty { return [] }
        var numbers: [UInt64] = []
        for (place, word) in words {
            var rest = word
            while rest != 0 {
                let found = place << 6 | UInt64(rest.trailingZeroBitCount)
                rest &= rest - 1
                if found <= number { numbers.append(found) }
            }
        }
        return numbers
    }

    func hasBit(_ number: UInt64) -> Bool { words[number >> 6, default: 0] & 1 << (number & 63) != 0 }

    mutating func setBit(_ number: UInt64) { words[number >> 6, default: 0] |= 1 << (number & 63) }

    mutating func clearBit(_ number: UInt64) {
        let word = words[number >> 6, default: 0] & ~(1 << (number & 63))
        words[number >> 6] = word == 0 ? nil : word
    }
}

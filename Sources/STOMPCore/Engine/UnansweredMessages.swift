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
    /// An answer that is part of a transaction.
    struct Answer: Sendable {
        let message: STOMPMessageNumber
        /// Whether it is for its own message only, in mode `client` too.
        let isAlone: Bool
    }

    private let isCumulative: Bool
    /// The number that the next message gets.
    private(set) var next: UInt64 = 0
    /// The answers that were given, those of open transactions included.
    private var given = Answers()
    /// In mode `client`: the answers that no abort takes back, where others were given too.
    private var firm: Answers?
    /// In mode `client`: the number of answers that are part of open transactions.
    private var open = 0

    /// The number of messages that are unanswered.
    var count: Int { Int(next) - given.count }

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
    /// - Parameter inTransaction: whether the answer is part of a transaction, so that `confirm` or `takeBack` follows.
    mutating func answer(_ number: UInt64, alone: Bool = false, inTransaction: Bool = false) {
        guard isCumulative else {
            given.clearBit(number)
            given.count += 1
            return
        }
        if !inTransaction {
            firm?.add(number, alone: alone)
        } else {
            if firm == nil { firm = given }
            open += 1
        }
        given.add(number, alone: alone)
    }

    /// The transaction of the answer was committed.
    mutating func confirm(_ answer: Answer) {
        guard firm != nil else { return }
        firm?.add(answer.message.number, alone: answer.isAlone)
        closed(1)
    }

    /// The transaction of the answers was aborted, so that they do not count.
    ///
    /// - Parameter others: the answers that are part of transactions that are still open.
    mutating func takeBack(_ answers: [Answer], others: [Answer]) {
        guard isCumulative else {
            for answer in answers where answer.message.number < next && !contains(answer.message.number) {
                given.setBit(answer.message.number)
                given.count -= 1
            }
            return
        }
        guard let firm else { return }
        given = firm
        for answer in others { given.add(answer.message.number, alone: answer.isAlone) }
        closed(answers.count)
    }

    private mutating func closed(_ answers: Int) {
        open -= answers
        if open <= 0 { (firm, open) = (nil, 0) }
    }
}

/// Which messages of a subscription are answered.
private struct Answers: Sendable {
    /// In mode `client`: the messages below this number are.
    private(set) var end: UInt64 = 0
    /// In mode `client-individual`: bits of unanswered messages, 64 in each word. In mode `client`: of those that were
    /// answered alone, from `end` on.
    private var words: [UInt64: UInt64] = [:]
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

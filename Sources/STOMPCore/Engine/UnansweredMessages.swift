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
    /// Answers in the order in which they were given, to be taken back if their transaction is aborted.
    struct Answer: Sendable {
        let subscription: UInt64
        let number: UInt64
        /// The first number that the answer was for.
        let first: UInt64
        /// Whether it was for its own number only.
        let isAlone: Bool
        /// The numbers between `first` and `number` that had been answered alone before.
        let apart: [UInt64]
    }

    private let isCumulative: Bool
    /// The number that the next message gets.
    private(set) var next: UInt64 = 0
    /// In mode `client`: the messages below this number are answered.
    private var answered: UInt64 = 0
    /// In mode `client-individual`: bits of unanswered messages, 64 in each word. In mode `client`: of those that were
    /// answered alone, from `answered` on.
    private var words: [UInt64: UInt64] = [:]
    /// The number of messages that are unanswered.
    private(set) var count = 0

    init(_ mode: STOMPAckMode) { isCumulative = mode == .client }

    /// A message arrived.
    mutating func received() {
        if !isCumulative { setBit(next) }
        next &+= 1
        count &+= 1
    }

    /// Whether the message is unanswered.
    func contains(_ number: UInt64) -> Bool {
        guard number < next else { return false }
        return isCumulative ? number >= answered && !hasBit(number) : hasBit(number)
    }

    /// An unanswered message is answered, in mode `client` with those before it unless it is `alone`.
    mutating func answer(_ number: UInt64, alone: Bool = false) {
        if isCumulative {
            if alone {
                setBit(number)
                count -= 1
                return
            }
            let apart = answeredAlone(upTo: number)
            for number in apart { clearBit(number) }
            count -= Int(number + 1 - answered) - apart.count
            answered = number + 1
        } else {
            clearBit(number)
            count -= 1
        }
    }

    /// The same for an answer that may be taken back.
    mutating func noteAnswer(_ message: STOMPMessageNumber, alone: Bool) -> Answer {
        let number = message.number
        let isAlone = alone || !isCumulative
        defer { answer(number, alone: alone) }
        return Answer(
            subscription: message.subscription, number: number, first: isAlone ? number : answered, isAlone: isAlone,
            apart: isAlone ? [] : answeredAlone(upTo: number))
    }

    /// An answer did not count after all.
    mutating func takeBack(_ answer: Answer) {
        if !isCumulative {
            guard !contains(answer.number), answer.number < next else { return }
            setBit(answer.number)
            count += 1
        } else if answer.isAlone {
            guard answer.number >= answered, hasBit(answer.number) else { return }
            clearBit(answer.number)
            count += 1
        } else if answer.first < answered {
            for number in answer.apart { setBit(number) }
            count += Int(answered - answer.first) - answer.apart.count
            answered = answer.first
        }
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

    private func hasBit(_ number: UInt64) -> Bool { words[number >> 6, default: 0] & 1 << (number & 63) != 0 }

    private mutating func setBit(_ number: UInt64) { words[number >> 6, default: 0] |= 1 << (number & 63) }

    private mutating func clearBit(_ number: UInt64) {
        let word = words[number >> 6, default: 0] & ~(1 << (number & 63))
        words[number >> 6] = word == 0 ? nil : word
    }
}

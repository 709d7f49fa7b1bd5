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
/// In mode `client` an answer is for all messages up to its own, so that one number is enough. In mode `client-individual`
/// each has a bit; words without a bit are not stored, so that the memory follows the messages that are unanswered, which
/// the broker's prefetch bounds.
struct UnansweredMessages: Sendable {
    /// Answers in the order in which they were given, to be taken back if their transaction is aborted.
    struct Answer: Sendable {
        let subscription: UInt64
        let number: UInt64
        /// The first number that the answer was for.
        let first: UInt64
    }

    private let isCumulative: Bool
    /// The number that the next message gets.
    private(set) var next: UInt64 = 0
    /// In mode `client`: the messages below this number are answered.
    private var answered: UInt64 = 0
    /// In mode `client-individual`: bits of unanswered messages, 64 in each word.
    private var words: [UInt64: UInt64] = [:]
    /// The number of messages that are unanswered.
    private(set) var count = 0

    init(_ mode: STOMPAckMode) { isCumulative = mode == .client }

    /// A message arrived.
    mutating func received() {
        if !isCumulative { words[next >> 6, default: 0] |= 1 << (next & 63) }
        next &+= 1
        count &+= 1
    }

    /// Whether the message is unanswered.
    func contains(_ number: UInt64) -> Bool {
        guard number < next else { return false }
        return isCumulative ? number >= answered : words[number >> 6, default: 0] & 1 << (number & 63) != 0
    }

    /// An unanswered message is answered, in mode `client` with those before it. Returns the first number of them.
    mutating func answer(_ number: UInt64) -> UInt64 {
        if isCumulative {
            defer { answered = number + 1 }
            count -= Int(number + 1 - answered)
            return answered
        }
        let word = words[number >> 6, default: 0] & ~(1 << (number & 63))
        words[number >> 6] = word == 0 ? nil : word
        count -= 1
        return number
    }

    /// An answer did not count after all.
    mutating func takeBack(_ answer: Answer) {
        if isCumulative {
            guard answer.first < answered else { return }
            count += Int(answered - answer.first)
            answered = answer.first
        } else if !contains(answer.number), answer.number < next {
            words[answer.number >> 6, default: 0] |= 1 << (answer.number & 63)
            count += 1
        }
    }
}

import Messaging

/// Finds the request that a frame answers, and how long the answer took.
struct FrameExchanges {
    struct Answer: Equatable {
        /// The number of the frame that is answered.
        var number: UInt64
        /// Nanoseconds between the two frames.
        var duration: Int64
    }

    private struct Key: Hashable {
        var connection: Int
        var isSent: Bool
        var identifier: String
    }

    /// Requests that wait for their answers; further ones replace the oldest half.
    private static let maximumRequests = 8_192

    private var requests: [Key: (number: UInt64, instant: Int64)] = [:]

    /// What `frame` answers, if anything; remembers it when it is to be answered itself.
    mutating func answer(by frame: LoggedFrame) -> Answer? {
        var answer: Answer?
        let isSent = frame.direction == .sent
        if let identifier = frame.exchange.answers {
            let key = Key(connection: frame.connection, isSent: !isSent, identifier: identifier)
            if let request = requests.removeValue(forKey: key) {
                answer = Answer(number: request.number, duration: max(0, frame.instant - request.instant))
            }
        }
        if let identifier = frame.exchange.asks {
            if requests.count >= Self.maximumRequests { forgetOlderHalf() }
            let key = Key(connection: frame.connection, isSent: isSent, identifier: identifier)
            requests[key] = (frame.number, frame.instant)
        }
        return answer
    }

    private mutating func forgetOlderHalf() {
        let numbers = requests.values.map(\.number).sorted()
        let middle = numbers[numbers.count / 2]
        requests = requests.filter { $0.value.number >= middle }
    }
}

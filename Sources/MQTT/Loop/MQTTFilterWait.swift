import MQTTCore
import Transport

/// A caller that waits for the answers to all filters of its subscription, or until all of its filters are unsubscribed; on
/// the loop's thread only.
final class MQTTFilterWait {
    struct Answer: Sendable {
        /// One for each filter; none for UNSUBSCRIBE before 5.0.
        var codes: [MQTTReasonCode] = []
        /// The properties of SUBACK or UNSUBACK.
        var properties = MQTTProperties()
    }

    typealias Call = PendingCall<Result<Answer, MQTTError>>

    private let call: Call
    /// Nil before the answer, which may have no code.
    private var codes: [MQTTReasonCode??]
    private var missing: Int
    private var failure: MQTTError?
    private var properties = MQTTProperties()
    /// The request whose answer's properties were added last: each is added once, however many filters it answers.
    private var noted: UInt64 = 0

    init(_ call: Call, filterCount: Int) {
        self.call = call
        codes = Array(repeating: nil, count: filterCount)
        missing = filterCount
    }

    /// The server's answer to one filter, with the properties of the packet.
    func answer(
        _ index: Int, _ result: Result<MQTTReasonCode?, MQTTError>, _ received: MQTTProperties = [],
        of request: UInt64 = 0
    ) {
        if noted != request { properties = properties.followed(by: received) }
        noted = request
        guard codes[index] == nil else { return }
        switch result {
        case .success(let code): codes[index] = .some(code)
        case .failure(let error):
            codes[index] = error.reasonCode ?? .unspecifiedError
            failure = failure ?? error
        }
        missing -= 1
        guard missing == 0 else { return }
        let all = codes.compactMap { $0 ?? nil }
        if let failure, all.allSatisfy(\.isError) { return fail(failure) }
        call.end(.success(Answer(codes: all, properties: properties)))
    }

    /// There will be no further answers.
    func fail(_ error: MQTTError) { call.end(.failure(error)) }
}

import MQTTCore
import Transport

/// A caller that waits for the answers to all filters of a subscription; on the loop's thread only.
final class MQTTSubscribeWait: @unchecked Sendable {
    // Sendable for the reason above.
    struct Answer: Sendable {
        /// One for each filter.
        var codes: [MQTTReasonCode]
        /// The properties of SUBACK.
        var properties = MQTTProperties()
    }

    typealias Call = PendingCall<Result<Answer, MQTTError>>

    let route: MQTTRoute
    private let call: Call
    private var codes: [MQTTReasonCode?]
    private var missing: Int
    private var failure: MQTTError?
    private var properties = MQTTProperties()
    /// The request whose answer's properties were added last: each is added once, however many filters it answers.
    private var noted: UInt64 = 0

    init(_ route: MQTTRoute, _ call: Call) {
        self.route = route
        self.call = call
        codes = Array(repeating: nil, count: route.requests.count)
        missing = codes.count
    }

    /// Adds the properties of a SUBACK.
    func note(_ received: MQTTProperties, of request: UInt64) {
        guard noted != request else { return }
        noted = request
        properties = properties.followed(by: received)
    }

    /// The server's answer to one filter.
    func answer(_ index: Int, _ result: Result<MQTTReasonCode, MQTTError>) {
        guard codes[index] == nil else { return }
        switch result {
        case .success(let code): codes[index] = code
        case .failure(let error):
            codes[index] = error.reasonCode ?? .unspecifiedError
            failure = failure ?? error
        }
        missing -= 1
        guard missing == 0 else { return }
        let all = codes.compactMap(\.self)
        if let failure, all.allSatisfy(\.isError) { return end(.failure(failure)) }
        end(.success(Answer(codes: all, properties: properties)))
    }

    /// There will be no answer.
    func fail(_ error: MQTTError) { end(.failure(error)) }

    private func end(_ result: Result<Answer, MQTTError>) { call.end(result) }
}

/// A caller that waits until all of its filters are unsubscribed; on the loop's thread only.
final class MQTTUnsubscribeWait {
    typealias Call = PendingCall<Result<MQTTUnsubscribeResult, MQTTError>>

    private let call: Call
    /// Nil before the answer; before 5.0 an answer has no code.
    private var answers: [MQTTReasonCode??]
    private var missing: Int
    private var properties = MQTTProperties()
    /// The request whose answer's properties were added last, as above.
    private var noted: UInt64 = 0

    init(_ call: Call, filterCount: Int) {
        self.call = call
        answers = Array(repeating: nil, count: filterCount)
        missing = filterCount
    }

    /// The server's answer to one filter.
    func answer(_ index: Int, _ code: MQTTReasonCode?, _ received: MQTTProperties, of request: UInt64) {
        if noted != request { properties = properties.followed(by: received) }
        noted = request
        answers[index] = .some(code)
        missing -= 1
        guard missing == 0 else { return }
        let codes = answers.compactMap { $0 ?? nil }
        if let reason = codes.first, codes.allSatisfy(\.isError) {
            return fail(.unsubscribeRefused(reason, properties))
        }
        call.end(.success(MQTTUnsubscribeResult(reasonCodes: codes, properties: properties)))
    }

    /// There will be no further answers.
    func fail(_ error: MQTTError) { call.end(.failure(error)) }
}

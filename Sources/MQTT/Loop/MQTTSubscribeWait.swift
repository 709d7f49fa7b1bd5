import MQTTCore
import Transport

/// Somebody who waits for the answers to all filters of a subscription; touched on the loop's thread only.
final class MQTTSubscribeWait: @unchecked Sendable {
    // Sendable for the reason above.
    struct Answer: Sendable {
        /// One for each filter.
        var codes: [MQTTReasonCode]
        /// What SUBACK said beside them.
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

    /// What the server said beside the codes of a request.
    func note(_ said: MQTTProperties, of request: UInt64) {
        guard noted != request else { return }
        noted = request
        properties = properties.followed(by: said)
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

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

/// A caller that waits for the answers to all packets of UNSUBSCRIBE that its filters were sent in; on the loop's thread
/// only.
final class MQTTUnsubscribeWait {
    typealias Call = PendingCall<Result<MQTTUnsubscribeResult, MQTTError>>

    private let call: Call
    private var answers: [MQTTUnsubscribeResult?]
    private var missing: Int

    init(_ call: Call, packetCount: Int) {
        self.call = call
        answers = Array(repeating: nil, count: packetCount)
        missing = packetCount
    }

    /// The server's answer to one packet.
    func answer(_ packet: Int, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        answers[packet] = MQTTUnsubscribeResult(reasonCodes: codes, properties: properties)
        missing -= 1
        guard missing == 0 else { return }
        var result = MQTTUnsubscribeResult()
        for answer in answers {
            result.reasonCodes += answer?.reasonCodes ?? []
            result.properties = result.properties.followed(by: answer?.properties ?? [])
        }
        guard let reason = result.reasonCodes.first, result.reasonCodes.allSatisfy(\.isError) else {
            call.end(.success(result))
            return
        }
        fail(.unsubscribeRefused(reason, result.properties))
    }

    /// There will be no further answers.
    func fail(_ error: MQTTError) { call.end(.failure(error)) }
}

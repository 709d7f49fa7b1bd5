import MQTTCore

/// Somebody who waits for the answers to all filters of a subscription; touched on the loop's thread only.
final class MQTTSubscribeWait: @unchecked Sendable {
    // Sendable for the reason above.
    typealias Waiter = UnsafeContinuation<Result<[MQTTReasonCode], MQTTError>, Never>

    let route: MQTTRoute
    private var waiter: Waiter?
    private var codes: [MQTTReasonCode?]
    private var missing: Int
    private var failure: MQTTError?

    init(_ route: MQTTRoute, _ waiter: Waiter) {
        self.route = route
        self.waiter = waiter
        codes = Array(repeating: nil, count: route.requests.count)
        missing = codes.count
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
        end(.success(all))
    }

    /// There will be no answer.
    func fail(_ error: MQTTError) { end(.failure(error)) }

    private func end(_ result: Result<[MQTTReasonCode], MQTTError>) {
        waiter?.resume(returning: result)
        waiter = nil
    }
}

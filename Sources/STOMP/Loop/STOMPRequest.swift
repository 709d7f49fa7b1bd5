import Messaging
import STOMPCore
import Synchronization
import Transport
import Wire

/// A request whose reply is awaited.
final class STOMPRequest: @unchecked Sendable {
    // Sendable because everything is touched on the loop's thread only.
    typealias Answer = Result<STOMPMessage, STOMPError>

    let correlation: [UInt8]
    let call = PendingCall<Answer>()
    private var alarm: LoopAlarm?

    init(correlation: [UInt8]) {
        self.correlation = correlation
    }

    /// Ends the wait; the first answer counts.
    func finish(_ answer: Answer) {
        alarm?.set(.max)
        alarm = nil
        call.end(answer)
    }

    /// Sets what ends the wait if no reply does.
    func set(_ alarm: LoopAlarm, deadline: Int64) {
        guard !call.isOver else { return }
        self.alarm = alarm
        alarm.set(deadline)
    }
}

// Everything here but `reply(to:timeout:)` runs on the loop's thread.
extension STOMPClientCore {
    /// Registers a request before it is sent, so that its reply cannot come too early.
    func expect(_ request: STOMPRequest) async {
        await loop.result { self.requests[request.correlation] = request }
    }

    /// The request could not be sent.
    func forget(_ request: STOMPRequest) {
        loop.execute { self.requests[request.correlation] = nil }
    }

    nonisolated(nonsending) func reply(to request: STOMPRequest, timeout: Duration) async throws(STOMPError)
        -> STOMPMessage
    {
        let deadline = MonotonicClock.now.advanced(byNanoseconds: timeout.inNanoseconds)
        let result = await request.call.answer {
            loop.execute {
                let alarm = LoopAlarm(loop: self.loop) { [weak self] _ in
                    let error = STOMPError(
                        .timedOut, "no reply came within \(timeout); does the other side copy the correlation-id?")
                    self?.end(request, .failure(error))
                }
                request.set(alarm, deadline: deadline)
            }
        } onCancel: {
            loop.execute { self.end(request, .failure(.cancelledWait)) }
        }
        return try result.get()
    }

    private func end(_ request: STOMPRequest, _ answer: STOMPRequest.Answer) {
        requests[request.correlation] = nil
        request.finish(answer)
    }

    func failRequests(_ failure: STOMPError) {
        let all = requests.values
        requests = [:]
        for request in all { request.finish(.failure(failure)) }
    }

    /// Replies came. One without a correlation id can only be meant for the only request there is.
    func takeReplies(_ batch: STOMPBatch) {
        for index in 0..<batch.count {
            let message = STOMPMessage(batch: batch, index: index)
            let id = message.header("correlation-id").map { Array($0.utf8) }
            let request = id.map { requests[$0] } ?? (requests.count == 1 ? requests.values.first : nil)
            guard let request else {
                unmatched(1)
                continue
            }
            counters.received(1)
            end(request, .success(message))
        }
    }

    /// Where the broker makes the reply queue by itself there is nothing to subscribe. Returns whether that is so.
    func expectReplies(_ route: STOMPRoute, _ engine: inout STOMPEngine) throws(STOMPError) -> Bool {
        let profile = engine.profile
        switch profile.temporaryQueues {
        case .subscribeFirst: return false
        case .unsupported:
            throw STOMPError(
                .unsupportedByBroker,
                "\(profile.name) is not known to have temporary queues; subscribe to a queue of your own and name it in replyTo"
            )
        case .implicit:
            do throws(STOMPUsageError) {
                try engine.expectMessages(
                    subscription: route.id, destination: route.destination, token: route.token)
            } catch {
                throw STOMPError(error)
            }
            return true
        }
    }
}

import MessagingWire
package import Transport

/// A message that may be the reply to a request.
@usableFromInline
package protocol ReplyMessage: ReceivedMessage {
    /// The correlation data of MQTT, or the `correlation-id` of STOMP; nil without any.
    var correlation: [UInt8]? { get }
}

/// The requests of one client that wait for their replies, and the subscription that brings them.
///
/// The caller's task runs ``reply(correlation:within:late:send:)``; everything else is for the loop's thread.
@usableFromInline
package final class PendingReplies<Message: ReplyMessage, Failure: ClientError>: @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only.

    /// The subscription that brings the replies.
    package struct Subscription: Sendable {
        /// The topic or destination that replies are sent to.
        let address: String
        /// Unsubscribes when it is released.
        let handle: any AnyObject & Sendable

        package init(address: String, handle: any AnyObject & Sendable) {
            self.address = address
            self.handle = handle
        }
    }

    package typealias Subscribe = @Sendable (PendingReplies) async throws(Failure) -> Subscription

    private final class Request: @unchecked Sendable {
        // Sendable because the `var`s are used on the loop's thread only.
        let correlation: [UInt8]
        /// The place in the order in which requests were registered.
        var number: UInt64 = 0
        /// Ends when the request can be sent.
        let address = PendingCall<Result<String, Failure>>()
        let reply = PendingCall<Result<Message, Failure>>()
        var alarm: LoopAlarm?
        var isWaiting = false

        init(_ correlation: [UInt8]) {
            self.correlation = correlation
        }
    }

    private let loop: EventLoop
    private let subscribe: Subscribe
    /// Nil before the first request, and after the subscription has ended.
    private var subscription: Subscription?
    private var isSubscribing = false
    /// Why the subscription that is being made has ended already.
    private var endedWhileSubscribing: Failure?
    /// Whether the connection of the subscription has ended, and the next one has not subscribed again.
    private var isPaused = false
    /// Requests that wait for the subscription, and those of them that have ended meanwhile.
    private var waiting: [Request] = []
    private var endedWhileWaiting = 0
    /// Requests that may have been sent, by their correlation.
    private var requests: [[UInt8]: Request] = [:]
    /// How many requests were registered.
    private var registeredCount: UInt64 = 0

    /// - Parameter subscribe: makes the subscription; called for the first request, and again after it has ended.
    package init(loop: EventLoop, subscribe: @escaping Subscribe) {
        self.loop = loop
        self.subscribe = subscribe
    }

    /// The loop of a manual clock, whose advances wait for tasks on its thread alone; otherwise nil.
    private var manualLoop: EventLoop? { loop.isManual ? loop : nil }

    /// Sends a request and waits for the first reply to it.
    ///
    /// - Parameters:
    ///   - timeout: from this call to the reply.
    ///   - late: the message of the error that is thrown at the timeout; asked for then, on the loop's thread.
    ///   - send: sends the request, which asks for a reply to the address. It may take longer than the request; once the
    ///     request has ended its task is cancelled, and it takes back what has not been sent.
    package nonisolated(nonsending) func reply(
        correlation: [UInt8], within timeout: Duration, late: @autoclosure @escaping @Sendable () -> String,
        send: @escaping @Sendable (_ address: String) async throws(Failure) -> Void
    ) async throws(Failure) -> Message {
        let request = Request(correlation)
        let deadline = loop.now.advanced(byNanoseconds: timeout.inNanoseconds)
        let address = try await request.address.answer {
            loop.execute { self.begin(request, until: deadline, late) }
        } onCancel: {
            loop.execute { self.end(request, .failure(.cancelledWait)) }
        }.get()
        // In a task of its own: without a connection it waits for longer than the request does.
        let sending = loop.startTask(preferring: manualLoop) {
            do throws(Failure) {
                try await send(address)
            } catch {
                // Unless the request has ended for another reason, such as the end of the connection.
                self.loop.execute { self.end(request, .failure(error)) }
            }
        }
        defer { sending.cancel() }
        let result = await request.reply.answer {
        } onCancel: {
            loop.execute { self.end(request, .failure(.cancelledWait)) }
        }
        return try result.get()
    }

    // MARK: On the loop's thread

    /// Messages of the subscription arrived. Returns how many belong to no request.
    package func receive<Batch: DeliveryBatch>(_ batch: Batch) -> Int where Batch.Message == Message {
        var unmatched = 0
        for index in 0..<batch.count {
            let message = batch[index]
            if let request = message.correlation.flatMap({ requests[$0] }) {
                end(request, .success(message))
            } else {
                unmatched += 1
            }
        }
        return unmatched
    }

    /// The replies to all requests that were sent are lost.
    package func fail(_ failure: Failure) {
        for request in requests.values.sorted(by: { $0.number < $1.number }) { end(request, .failure(failure)) }
    }

    /// The connection has ended, and the replies with it: requests wait until the next one has subscribed.
    package func connectionEnded(_ failure: Failure) {
        isPaused = true
        fail(failure)
    }

    /// The subscription is in place again: requests can be sent.
    package func subscribedAgain() {
        isPaused = false
        releaseWaiting()
    }

    /// The subscription has ended: the next request makes another one.
    package func subscriptionEnded(_ failure: Failure) {
        subscription = nil
        isPaused = false
        fail(failure)
        if isSubscribing { endedWhileSubscribing = failure } else { failWaiting(failure) }
    }

    private func begin(_ request: Request, until deadline: Int64, _ late: @escaping @Sendable () -> String) {
        if request.reply.isOver { return }
        let alarm = LoopAlarm(loop: loop) { [weak self] _ in
            self?.end(request, .failure(Failure(.timedOut, late(), answer: nil, underlying: nil)))
        }
        request.alarm = alarm
        alarm.set(deadline)
        if let subscription, !isPaused { return register(request, subscription.address) }
        request.isWaiting = true
        waiting.append(request)
        if isSubscribing || subscription != nil { return }
        isSubscribing = true
        loop.startTask(preferring: manualLoop) {
            let result: Result<Subscription, Failure>
            do throws(Failure) {
                result = .success(try await self.subscribe(self))
            } catch {
                result = .failure(error)
            }
            self.loop.execute { self.subscribed(result) }
        }
    }

    private func subscribed(_ result: Result<Subscription, Failure>) {
        isSubscribing = false
        let ended = endedWhileSubscribing.take()
        switch result {
        case .success(let made):
            // The subscription may have ended after the server granted it and before the task that made it continued.
            if let ended { return failWaiting(ended) }
            subscription = made
            releaseWaiting()
        case .failure(let failure): failWaiting(failure)
        }
    }

    private func releaseWaiting() {
        guard let subscription, !isPaused else { return }
        for request in takeWaiting() where !request.reply.isOver { register(request, subscription.address) }
    }

    private func failWaiting(_ failure: Failure) {
        for request in takeWaiting() { end(request, .failure(failure)) }
    }

    private func takeWaiting() -> [Request] {
        defer { (waiting, endedWhileWaiting) = ([], 0) }
        for request in waiting { request.isWaiting = false }
        return waiting
    }

    /// From now on the reply may arrive.
    private func register(_ request: Request, _ address: String) {
        guard requests[request.correlation] == nil else {
            let correlation = String(decoding: request.correlation, as: UTF8.self)
            return end(
                request,
                .failure(
                    Failure(
                        .invalidRequest,
                        "Another request with the correlation '\(correlation)' still waits for its reply. Give each request one of its own, or leave it out.",
                        answer: nil, underlying: nil)))
        }
        registeredCount += 1
        request.number = registeredCount
        requests[request.correlation] = request
        request.address.end(.success(address))
    }

    private func end(_ request: Request, _ answer: Result<Message, Failure>) {
        if requests[request.correlation] === request { requests[request.correlation] = nil }
        request.alarm?.set(.max)
        request.alarm = nil
        if case .failure(let failure) = answer { request.address.end(.failure(failure)) }
        request.reply.end(answer)
        guard request.isWaiting else { return }
        request.isWaiting = false
        endedWhileWaiting += 1
        // A connection may take long to come back.
        guard endedWhileWaiting * 2 > waiting.count else { return }
        waiting.removeAll { !$0.isWaiting }
        endedWhileWaiting = 0
    }
}

import MQTTCore
import Transport
import Wire

/// SUBSCRIBE and UNSUBSCRIBE, and the server's responses; on the loop's thread.
extension MQTTSubscriptions {
    /// Writes SUBSCRIBE for some filters: one packet for each that has an identifier of its own, if the server supports
    /// identifiers, and one for all others that have the same properties.
    func send(_ keys: [ByteKey], comesFirst: Bool = false) {
        let hasIdentifiers = core.link.perform {
            $0.engine.version.hasProperties && $0.engine.limits.subscriptionIdentifiersAvailable
        }
        var others: [ByteKey] = []
        var identified: [(key: ByteKey, identifier: UInt32)] = []
        for key in keys {
            guard hasIdentifiers, let entry = router.entries[key], entry.identifier != 0 else {
                others.append(key)
                continue
            }
            if !identified.contains(where: { $0.key == key }) { identified.append((key, entry.identifier)) }
        }
        sendTogether(others, comesFirst: comesFirst)
        // In the order of their subscription: a message that is received for a later one was sent for earlier ones too.
        for (key, identifier) in identified.sorted(by: { $0.identifier < $1.identifier }) {
            var properties = router.entries[key]?.properties ?? []
            properties.subscriptionIdentifiers = [identifier]
            write([key], properties, comesFirst: comesFirst)
        }
    }

    private func sendTogether(_ keys: [ByteKey], comesFirst: Bool) {
        guard let first = keys.first else { return }
        let properties = router.entries[first]?.properties ?? []
        let others = keys.filter { router.entries[$0]?.properties ?? [] != properties }
        if !others.isEmpty {
            sendTogether(others, comesFirst: comesFirst)
            return sendTogether(
                keys.filter { router.entries[$0]?.properties ?? [] == properties }, comesFirst: comesFirst)
        }
        write(keys, properties, comesFirst: comesFirst)
    }

    private func write(_ keys: [ByteKey], _ properties: MQTTProperties, comesFirst: Bool) {
        let requests = keys.compactMap { router.entries[$0]?.nextRequest }
        guard !requests.isEmpty else { return }
        let token = router.makeToken()
        let now = core.loop.now
        do throws(MQTTUsageError) {
            try core.link.perform(urgent: true) { machine throws(MQTTUsageError) in
                try machine.engine.subscribe(requests, properties: properties, token: token, at: now)
            }
            router.subscribeWritten(token, for: keys, comesFirst: comesFirst)
        } catch {
            // The connection is ending: the next one subscribes. Any other error is a mistake of the application.
            if error.code == .notConnected || error.code == .closing { return }
            if keys.count > 1 {
                for key in keys { write([key], properties, comesFirst: comesFirst) }
            } else {
                fail(keys[0], MQTTError(error), of: 0)
            }
        }
    }

    /// Writes UNSUBSCRIBE.
    ///
    /// - Parameter call: the caller that waits for the answer. Without one a refusal is ignored: the connection is
    ///   ending, and the next one tries again.
    func writeUnsubscribe(
        _ filters: [String], _ properties: MQTTProperties = [],
        _ call: PendingCall<Result<MQTTUnsubscribeResult, MQTTError>>? = nil
    ) {
        let token = router.makeRequest(forgetting: filters)
        let now = core.loop.now
        do throws(MQTTUsageError) {
            try core.link.perform { machine throws(MQTTUsageError) in
                try machine.engine.unsubscribe(filters, properties: properties, token: token, at: now)
            }
            router.unsubscribes[token] = call
            for filter in filters { core.news.tell(.unsubscribed(filter: filter)) }
        } catch {
            call?.end(.failure(MQTTError(error)))
        }
    }

    // MARK: A new connection

    /// A connection was established: subscribes what the server does not have, and lets messages leave once that is
    /// answered.
    ///
    /// - Parameters:
    ///   - sessionPresent: as in CONNACK.
    ///   - isResumed: whether the server may hold subscriptions of an earlier connection.
    func resubscribe(sessionPresent: Bool, isResumed: Bool) {
        if let router = knownRouter {
            sendUnsubscriptions(of: router, isResumed: isResumed)
            sendSubscriptions(of: router, sessionPresent: sessionPresent)
        }
        let scratch = MQTTScratch.apart(on: core.loop)
        let now = core.loop.now
        core.link.perform(urgent: true) { $0.subscriptionsSent(at: now, into: scratch) }
        scratch.perform(RawSpan())
    }

    /// Unsubscribes filters of a session that continues, whose subscriptions ended without a connection.
    private func sendUnsubscriptions(of router: MQTTRouter, isResumed: Bool) {
        let filters = router.takeFiltersToForget()
        guard isResumed else { return }
        // In packets that any server accepts.
        for start in stride(from: 0, to: filters.count, by: 100) {
            writeUnsubscribe(Array(filters[start..<min(start + 100, filters.count)]))
        }
    }

    private func sendSubscriptions(of router: MQTTRouter, sessionPresent: Bool) {
        let keys = router.entries.filter { !sessionPresent || !$0.value.waiters.isEmpty || !$0.value.wasGranted }
            .map(\.key)
        let asked = Set(keys)
        for (key, entry) in router.entries where !asked.contains(key) { entry.granted = entry.lastGranted }
        // In packets that any server accepts.
        var start = 0
        while start < keys.count {
            send(Array(keys[start..<min(start + 100, keys.count)]), comesFirst: true)
            start += 100
        }
    }

    // MARK: Responses

    func subscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        guard let request = router.takeRequest(token) else { return }
        for (key, code) in zip(request.keys, codes) {
            guard let entry = router.entries[key] else { continue }
            if code.isError {
                let error = MQTTError(
                    .refused,
                    "The server refused to subscribe to '\(key.text)': \(properties.text(after: code)). Check the filter and what this user may read.",
                    reasonCode: code, properties: properties)
                fail(key, error, of: token)
                continue
            }
            entry.granted = code
            entry.lastGranted = code
            let waiters = entry.takeWaiters(of: token)
            core.news.tell(
                request.comesFirst && waiters.isEmpty
                    ? .resubscribed(filter: key.text, code) : .subscribed(filter: key.text, code))
            for waiter in waiters {
                waiter.wait.note(properties, of: token)
                waiter.wait.answer(waiter.index, .success(code))
            }
        }
    }

    func unsubscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        _ = router.takeRequest(token)
        guard let call = router.unsubscribes.take(token) else { return }
        guard let refusal = codes.first, codes.allSatisfy(\.isError) else {
            call.end(.success(MQTTUnsubscribeResult(reasonCodes: codes, properties: properties)))
            return
        }
        let error = MQTTError(
            .refused,
            "The server refused to unsubscribe: \(properties.text(after: refusal)). Its messages may still arrive and come to unmatchedMessages().",
            reasonCode: refusal, properties: properties)
        call.end(.failure(error))
    }

    /// The server has not answered a request in time. (A request that failed because its connection closed is repeated on
    /// the next one.)
    func requestLate(_ token: UInt64) {
        let error = MQTTError(
            .timedOut,
            "The server did not answer within requestTimeout; the request may still take effect. Raise requestTimeout if the server needs longer."
        )
        router.unsubscribes.take(token)?.end(.failure(error))
        guard let request = router.takeRequest(token) else { return }
        for key in request.keys {
            guard let entry = router.entries[key] else { continue }
            // The connection ends, and the next one subscribes what was granted before.
            fail(key, error, of: token, othersContinue: request.comesFirst && entry.wasGranted)
        }
    }

    /// A SUBSCRIBE failed for one of its filters: the callers that wait for it fail. All other routes of the filter fail
    /// too, unless the server has granted it before or is about to answer another SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - request: the SUBSCRIBE; 0 if it could not be written.
    ///   - othersContinue: whether the other routes continue in any case.
    private func fail(_ key: ByteKey, _ error: MQTTError, of request: UInt64, othersContinue: Bool = false) {
        guard let entry = router.entries[key] else { return }
        let waiters = entry.takeWaiters(of: request)
        for waiter in waiters {
            waiter.wait.note(error.properties, of: request)
            waiter.wait.answer(waiter.index, .failure(error))
        }
        if othersContinue || entry.isAtServer || !entry.waiters.isEmpty {
            for waiter in waiters {
                lose(waiter.wait.route, error)
                if router.withdraw(waiter.wait.route, from: key) { unsubscribeRemoved([key.text]) }
            }
        } else {
            if waiters.isEmpty, let code = error.reasonCode {
                core.news.tell(.subscriptionLost(filter: key.text, code))
            }
            _ = router.removeEntry(key)
            for route in entry.routes { lose(route, error) }
        }
    }

    /// A subscription of several filters lives as long as one of them does.
    private func lose(_ route: MQTTRoute, _ error: MQTTError) {
        route.lostFilters += 1
        if route.lostFilters >= route.requests.count { route.finish(.failed(error)) }
    }
}

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

import MQTTCore
import MessagingWire
import Transport

/// What follows from the server's responses to SUBSCRIBE and UNSUBSCRIBE, which the engine writes; on the loop's thread.
extension MQTTSubscriptions {
    /// Asks the server for what the routes want, and to forget what none wants. All packets leave together.
    ///
    /// After CONNACK, and after what was refused, messages wait for this.
    func reconcile() {
        let afterLock = MQTTAfterLock.apart(on: core.loop)
        let now = core.loop.now
        core.link.perform(urgent: true) { $0.reconcile(at: now, into: afterLock) }
        afterLock.perform(RawSpan())
    }

    /// CONNACK has shown that messages of some filters cannot be told apart: of each two the later one ends.
    func endConflicts() {
        guard let router = knownRouter, core.lacksIdentifiers else { return }
        for (earlier, later) in router.conflicts where !earlier.routes.isEmpty && !later.routes.isEmpty {
            let (filter, other) = (later.request.filter, earlier.request.filter)
            fail(ByteKey(filter), .filtersOverlap(filter, other), of: .max, isForAll: true)
        }
    }

    // MARK: Responses

    func subscribeCompleted(_ request: MQTTFilterRequest, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        defer { endUnsubscribes(of: request.filters) }
        // The server has their identifiers now.
        if router.selects { router.filtersChanged() }
        for (filter, code) in zip(request.filters, codes) {
            let key = ByteKey(filter)
            guard let entry = router.entries[key] else { continue }
            if code.isError {
                fail(key, .subscribeRefused(filter, code, properties), of: request.token)
                continue
            }
            let callers = entry.takeCallers(of: request.token)
            let answered = entry.answeredRoutes
            for route in answered { route.noteGranted(code) }
            // Whether the caller waits, for each route that asked: very many may have asked together.
            let asked = Dictionary(
                callers.map { (ObjectIdentifier($0.route), $0.wait != nil) }, uniquingKeysWith: { first, _ in first })
            let isKnown = answered.contains { asked[ObjectIdentifier($0)] == nil }
            // Not for subscriptions that have ended, if only later ones wait.
            if !callers.isEmpty || isKnown {
                core.news.tell(
                    request.comesFirst && isKnown && !asked.values.contains(true)
                        ? .resubscribed(filter: filter, code) : .subscribed(filter: filter, code))
            }
            // Callers confirm for themselves: theirs may have been cancelled.
            confirmUnmatched(answered.filter { asked[ObjectIdentifier($0)] != true })
            for caller in callers {
                caller.wait?.answer(caller.index, .success(code), properties, of: request.token)
            }
        }
    }

    func unsubscribeCompleted(_ request: MQTTFilterRequest, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        if router.selects { router.filtersChanged() }
        for (index, filter) in request.filters.enumerated() {
            core.news.tell(.unsubscribed(filter: filter))
            let code = index < codes.count ? codes[index] : nil
            let result: Result<MQTTReasonCode?, MQTTError> =
                if let code, code.isError { .failure(.unsubscribeRefused(code, properties)) } else { .success(code) }
            for caller in router.takeUnsubscribing(filter) {
                caller.wait.answer(caller.index, result, properties, of: request.token)
            }
        }
    }

    /// The server has not answered a request in time.
    func requestLate(_ request: MQTTFilterRequest) {
        if request.isUnsubscribe {
            return failUnsubscribes(request, late("UNSUBSCRIBE", advice: MQTTError.adviceOnLateUnsubscribe))
        }
        let error = late("SUBSCRIBE", advice: MQTTError.adviceOnLateSubscribe)
        for filter in request.filters {
            fail(ByteKey(filter), error, of: request.token, othersContinue: request.comesFirst)
        }
    }

    private func late(_ packet: String, advice: String) -> MQTTError {
        core.link.pauseReason.map { .answerIsUnread(to: packet, because: $0) } ?? .isUnanswered(packet, advice)
    }

    /// A request cannot be written, whatever the connection: a mistake of the application.
    func notWritten(_ request: MQTTFilterRequest, _ error: MQTTUsageError) {
        if request.isUnsubscribe { return failUnsubscribes(request, core.explain(error)) }
        for filter in request.filters { fail(ByteKey(filter), MQTTError(error), of: request.token) }
    }

    private func failUnsubscribes(_ request: MQTTFilterRequest, _ error: MQTTError) {
        for filter in request.filters { for caller in router.takeUnsubscribing(filter) { caller.wait.fail(error) } }
    }

    /// The server ends connections because of a SUBSCRIBE with these filters.
    func subscribeRefused(_ filters: [String], _ error: MQTTError, token: UInt64) {
        for filter in filters { fail(ByteKey(filter), error, of: token) }
    }

    /// The connection of a request has ended. Callers fail whose first SUBSCRIBE was written so long ago, on this connection
    /// or an earlier one, that the answer is late.
    func requestFailed(_ request: MQTTFilterRequest) {
        guard let router = knownRouter, !request.isUnsubscribe else { return }
        let (now, timeout) = (core.loop.now, core.settings.engineOptions.value.requestTimeout)
        for key in request.filters.map(ByteKey.init) {
            guard let entry = router.entries[key] else { continue }
            for index in entry.callers.indices where entry.callers[index].token <= request.token {
                entry.callers[index].firstWritten = min(entry.callers[index].firstWritten, request.time)
            }
            let late = entry.takeCallers {
                $0.wait != nil && $0.firstWritten != .max && $0.firstWritten.advanced(byNanoseconds: timeout) <= now
            }
            for caller in late {
                caller.wait?.answer(caller.index, .failure(.connectionsEndBeforeSuback))
                withdraw(caller.route, from: key, .connectionsEndBeforeSuback)
            }
        }
    }

    /// A SUBSCRIBE failed for one of its filters: the routes that asked with it fail. The other routes continue, unless the
    /// server has refused just what they want: other options are asked for again.
    ///
    /// - Parameters:
    ///   - token: the SUBSCRIBE.
    ///   - othersContinue: whether only the callers that wait fail, and the next connection subscribes the others.
    ///   - isForAll: whether no route may have the filter.
    private func fail(
        _ key: ByteKey, _ error: MQTTError, of token: UInt64, othersContinue: Bool = false, isForAll: Bool = false
    ) {
        guard let entry = router.entries[key] else { return }
        let callers = entry.takeCallers { $0.token <= token && !(othersContinue && $0.wait == nil) }
        for caller in callers {
            caller.wait?.answer(caller.index, .failure(error), error.properties, of: token)
        }
        for caller in callers { withdraw(caller.route, from: key, error) }
        let isLost = !entry.routes.isEmpty && (isForAll || core.link.perform { $0.engine.isRefused(key.text) })
        if isLost || callers.contains(where: { $0.wait == nil }) {
            core.news.tell(.subscriptionLost(filter: key.text, reason(of: error, for: key.text)))
        }
        if isLost { for route in entry.routes { withdraw(route, from: key, error) } }
    }

    /// The server's reason code, or the code that it would have sent if the client has found the error itself.
    private func reason(of error: MQTTError, for filter: String) -> MQTTReasonCode {
        if let code = error.reasonCode { return code }
        switch (error.underlying as? MQTTUsageError)?.code {
        case .packetTooLarge: return .packetTooLarge
        case .invalidFilter: return .topicFilterInvalid
        case .subscriptionNotSupported:
            let limits = core.link.perform { $0.engine.limits }
            if !limits.sharedSubscriptionAvailable, MQTTTopicFilter.shared(filter) != nil {
                return .sharedSubscriptionsNotSupported
            }
            let isWildcard = filter.utf8.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
            if !limits.wildcardSubscriptionAvailable, isWildcard { return .wildcardSubscriptionsNotSupported }
            return limits.subscriptionIdentifiersAvailable ? .unspecifiedError : .subscriptionIdentifiersNotSupported
        default: return .unspecifiedError
        }
    }

    /// One route of a filter fails; the others continue.
    func withdraw(_ route: MQTTRoute, from key: ByteKey, _ error: MQTTError) {
        // A route has a caller for each time that it names the filter.
        guard let entry = router.withdraw(route, from: key) else { return }
        lose(route, error)
        let again = entry.routes.isEmpty ? [] : [entry] + router.identify([entry])
        change { engine in
            if again.isEmpty { engine.forget(key.text) }
            for entry in again { engine.keep(entry) }
        }
    }

    /// A subscription of several filters lives as long as one of them does.
    private func lose(_ route: MQTTRoute, _ error: MQTTError) {
        route.filtersLeft -= 1
        if route.filtersLeft <= 0 { finish(route, .failed(error)) }
    }
}

/// What routes want of a filter, told to the engine; under the link's lock.
extension MQTTEngine {
    mutating func want(_ entry: MQTTFilterEntry, mayBeHeld: Bool) {
        want(
            entry.request, identifier: entry.identifier, entry.properties, mayBeHeld: mayBeHeld,
            isTemporary: entry.areReplies)
    }

    /// Some routes of a filter have gone: what the others want, and for whom the answer to a further SUBSCRIBE is.
    mutating func keep(_ entry: MQTTFilterEntry) {
        want(entry, mayBeHeld: false)
        keepWaiting(for: entry.request.filter, only: entry.callers.map { ($0.token, $0.retainHandling) })
    }
}

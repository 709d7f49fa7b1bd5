import MQTTCore
import MessagingWire
import Transport

/// SUBSCRIBE and UNSUBSCRIBE, and the server's responses; on the loop's thread.
extension MQTTSubscriptions {
    /// Writes SUBSCRIBE for some filters: one packet for each that has an identifier of its own, if the server supports
    /// identifiers; the others share packets with those that have the same properties, up to
    /// ``MQTTConfiguration/maximumFiltersPerRequest`` in each. A filter that the server may have refused by ending the
    /// connection has its own packet; so does every filter once the server has not answered all filters of a packet.
    func send(_ keys: [ByteKey]) {
        let (hasOptions, hasIdentifiers, apart) = core.link.perform { machine in
            let version = machine.engine.version
            return (
                version.hasProperties,
                version.hasProperties && machine.engine.limits.subscriptionIdentifiersAvailable,
                Set(keys.filter { machine.engine.sendsAlone(filter: $0.text) })
            )
        }
        let (groups, identified) = group(keys, hasIdentifiers: hasIdentifiers)
        var packets: [SubscribePacket] = []
        func add(_ keys: [ByteKey], _ properties: MQTTProperties) {
            let requests = keys.compactMap { router.entries[$0]?.nextRequest(hasOptions: hasOptions) }
            packets.append(SubscribePacket(keys: keys, requests: requests, properties: properties))
        }
        for group in groups {
            let together = group.keys.filter { !apart.contains($0) }
            let maximum = core.negotiation.sendsSingleFilters ? 1 : core.settings.maximumFiltersPerRequest
            for keys in together.inRequests(of: maximum) { add(keys, group.properties) }
            for key in group.keys where apart.contains(key) { add([key], group.properties) }
        }
        for (key, entry) in identified {
            var properties = entry.properties
            properties.subscriptionIdentifiers = [entry.identifier]
            add([key], properties)
        }
        write(packets)
    }

    /// Filters that may share packets.
    private typealias FilterGroup = (properties: MQTTProperties, keys: [ByteKey])

    /// Groups filters with the same properties, which may share packets; and the filters that have an identifier of their own,
    /// in the order in which they are subscribed.
    private func group(
        _ keys: [ByteKey], hasIdentifiers: Bool
    ) -> (groups: [FilterGroup], identified: [(key: ByteKey, entry: MQTTFilterEntry)]) {
        var groups: [FilterGroup] = []
        var groupNumbers: [MQTTProperties: Int] = [:]
        var identified: [(key: ByteKey, entry: MQTTFilterEntry)] = []
        for key in keys {
            guard let entry = router.entries[key] else { continue }
            if hasIdentifiers, entry.identifier != 0 {
                identified.append((key, entry))
            } else if let number = groupNumbers[entry.properties] {
                groups[number].keys.append(key)
            } else {
                groupNumbers[entry.properties] = groups.count
                groups.append((entry.properties, [key]))
            }
        }
        // A copy for a later filter proves that the copies for earlier filters were sent. The filter with the highest QoS
        // therefore goes first, and its copy is the one that is delivered.
        identified.sort { first, second in
            let (one, other) = (first.entry.request.qos, second.entry.request.qos)
            return one == other ? first.entry.number < second.entry.number : one > other
        }
        return (groups, identified)
    }

    /// What one SUBSCRIBE is about.
    private struct SubscribePacket {
        let keys: [ByteKey]
        let requests: [MQTTSubscriptionRequest]
        let properties: MQTTProperties

        /// The same with a packet for each filter.
        var split: [SubscribePacket] {
            zip(keys, requests).map { SubscribePacket(keys: [$0], requests: [$1], properties: properties) }
        }
    }

    /// Writes all packets under one lock, so that they leave together, however many there are.
    private func write(_ packets: [SubscribePacket]) {
        let tokens = packets.map { _ in router.makeToken() }
        let now = core.loop.now
        let (comesFirst, errors) = core.link.perform(urgent: true) { machine in
            let comesFirst = packets.map { machine.engine.comesFirst($0.keys.map(\.text)) }
            let errors = packets.indices.map { index -> MQTTUsageError? in
                do throws(MQTTUsageError) {
                    try machine.engine.subscribe(
                        packets[index].requests, properties: packets[index].properties, token: tokens[index],
                        at: now)
                    return nil
                } catch {
                    return error
                }
            }
            return (comesFirst, errors)
        }
        var apart: [SubscribePacket] = []
        for (index, error) in errors.enumerated() {
            let keys = packets[index].keys
            switch error?.code {
            case nil: router.subscribeWritten(tokens[index], for: keys, comesFirst: comesFirst[index], at: now)
            // The connection is ending: the next one subscribes. Any other error is a mistake of the application.
            case .notConnected, .closing: break
            case _ where keys.count > 1: apart += packets[index].split
            case _: if let error { fail(keys[0], MQTTError(error), of: 0) }
            }
        }
        if !apart.isEmpty { write(apart) }
    }

    /// Writes UNSUBSCRIBE, with up to ``MQTTConfiguration/maximumFiltersPerRequest`` filters in each packet.
    ///
    /// - Parameter call: the caller that waits for the answers. Without one a refusal is ignored: the connection is
    ///   ending, and the next one tries again.
    func writeUnsubscribe(
        _ filters: [String], _ properties: MQTTProperties = [], _ call: MQTTUnsubscribeWait.Call? = nil
    ) {
        let packets = unsubscribePackets(filters.inRequests(of: core.settings.maximumFiltersPerRequest), properties)
        let wait = call.map { MQTTUnsubscribeWait($0, packetCount: packets.count) }
        for (index, packet) in packets.enumerated() {
            switch packet.written {
            case .failure(let error): wait?.fail(core.explain(error))
            case .success(let token):
                if let wait { router.setCaller(wait, packet: index, of: token) }
                for filter in packet.filters { core.news.tell(.unsubscribed(filter: filter)) }
            }
        }
    }

    /// Writes a packet for each list of filters; if one is larger than the server accepts, a packet for each of its filters.
    ///
    /// - Returns: the filters of each packet, and its token.
    private func unsubscribePackets(
        _ lists: [[String]], _ properties: MQTTProperties
    ) -> [(filters: [String], written: Result<UInt64, MQTTUsageError>)] {
        let tokens = lists.map { router.makeUnsubscribe($0) }
        let now = core.loop.now
        let written = core.link.perform { machine in
            lists.indices.map { index -> Result<UInt64, MQTTUsageError> in
                do throws(MQTTUsageError) {
                    try machine.engine.unsubscribe(
                        lists[index], properties: properties, token: tokens[index], at: now)
                    return .success(tokens[index])
                } catch {
                    return .failure(error)
                }
            }
        }
        return lists.indices.flatMap { index in
            if case .failure(let error) = written[index] {
                _ = router.takeRequest(tokens[index])
                // The connection is ending: the next one of the session repeats it.
                if error.code == .closing || error.code == .notConnected { router.forgetLater(lists[index]) }
                if error.code == .packetTooLarge, lists[index].count > 1 {
                    return unsubscribePackets(lists[index].map { [$0] }, properties)
                }
            }
            return [(lists[index], written[index])]
        }
    }

    // MARK: A new connection

    /// A connection was established: subscribes what the server does not have, and lets messages leave once that is
    /// answered.
    ///
    /// - Parameters:
    ///   - info: what CONNACK says.
    ///   - isResumed: whether the server may hold subscriptions of an earlier connection.
    func resubscribe(_ info: MQTTConnectionInfo, isResumed: Bool) {
        if let router = knownRouter {
            sendUnsubscriptions(of: router, isResumed: isResumed)
            sendSubscriptions(of: router, info)
        }
        subscriptionsSent()
    }

    /// Every SUBSCRIBE is written that messages have to wait for: they leave once all of them are answered.
    private func subscriptionsSent() {
        let afterLock = MQTTAfterLock.apart(on: core.loop)
        let now = core.loop.now
        core.link.perform(urgent: true) { $0.subscriptionsSent(at: now, into: afterLock) }
        afterLock.perform(RawSpan())
    }

    /// Unsubscribes filters of a session that continues, whose subscriptions ended without a connection.
    private func sendUnsubscriptions(of router: MQTTRouter, isResumed: Bool) {
        let filters = router.takeFiltersToForget()
        if isResumed, !filters.isEmpty { writeUnsubscribe(filters) }
    }

    private func sendSubscriptions(of router: MQTTRouter, _ info: MQTTConnectionInfo) {
        let sessionPresent = info.sessionPresent
        // A 3.1.1 server does not say what it allows, and would repeat its retained messages for nothing.
        let allowed = info.version == .v5_0 ? info.limits.maximumQoS : nil
        // The present session of the server has none of them, even if it continues before a SUBSCRIBE is answered.
        if !sessionPresent { for entry in router.entries.values { entry.lastGranted = nil } }
        if info.sessionMayBeAnother { for entry in router.entries.values { entry.isUncertain = true } }
        let all = !sessionPresent || core.settings.resubscribesWithSessionPresent
        let keys = router.orderedEntries.filter { _, entry in
            all || entry.isShared || entry.isUncertain || !entry.callers.isEmpty || entry.lacksGrant(allowed)
        }
        .map(\.key)
        let asked = Set(keys)
        for (key, entry) in router.entries where !asked.contains(key) { entry.granted = entry.lastGranted }
        send(keys)
    }

    // MARK: Responses

    func subscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        guard case .subscribe(let keys, let comesFirst) = router.takeRequest(token) else { return }
        for (key, code) in zip(keys, codes) {
            // Skip an entry of a later subscription, whose SUBSCRIBE comes after an UNSUBSCRIBE.
            guard let entry = router.entries[key], (1...token).contains(entry.firstRequest) else { continue }
            if code.isError {
                fail(key, .subscribeRefused(key.text, code, properties), of: token)
                continue
            }
            let isKnown = entry.wasGranted
            entry.grant(code, to: token)
            for route in entry.routes { route.noteGranted(code) }
            let callers = entry.takeCallers(of: token).filter { $0.wait != nil }
            core.news.tell(
                comesFirst && callers.isEmpty && isKnown
                    ? .resubscribed(filter: key.text, code) : .subscribed(filter: key.text, code))
            // Callers confirm for themselves: theirs may have been cancelled.
            for route in entry.routes where !callers.contains(where: { $0.route === route }) {
                confirmUnmatched(route)
            }
            for caller in callers {
                caller.wait?.note(properties, of: token)
                caller.wait?.answer(caller.index, .success(code))
            }
        }
        // Filters that were requested again come first too.
        if comesFirst, codes.contains(where: \.isError) { subscriptionsSent() }
    }

    func unsubscribeCompleted(_ token: UInt64, _ codes: [MQTTReasonCode], _ properties: MQTTProperties) {
        guard case .unsubscribe(_, let caller?) = router.takeRequest(token) else { return }
        caller.wait.answer(caller.packet, codes, properties)
    }

    /// The server has not answered a request in time. (A request that failed because its connection closed is repeated on
    /// the next one.)
    func requestLate(_ token: UInt64) {
        switch router.takeRequest(token) {
        case nil: break
        case .unsubscribe(let filters, let caller):
            // The next connection of the session repeats it.
            router.forgetLater(filters)
            caller?.wait.fail(late("UNSUBSCRIBE", advice: MQTTError.adviceOnLateUnsubscribe))
        case .subscribe(let keys, let comesFirst):
            subscribeLate(token, keys, comesFirst: comesFirst)
        }
    }

    private func subscribeLate(_ token: UInt64, _ keys: [ByteKey], comesFirst: Bool) {
        let error = late("SUBSCRIBE", advice: MQTTError.adviceOnLateSubscribe)
        for key in keys {
            guard let entry = router.entries[key] else { continue }
            entry.isUncertain = true
            // Then the connection ends.
            fail(key, error, of: token, othersContinue: comesFirst)
        }
        // The server may have subscribed them nevertheless.
        unsubscribeRemoved(keys.filter { router.entries[$0] == nil }.map(\.text))
    }

    private func late(_ packet: String, advice: String) -> MQTTError {
        core.link.pauseReason.map { .answerIsUnread(to: packet, because: $0) } ?? .isUnanswered(packet, advice)
    }

    /// The server ends connections because of a SUBSCRIBE with these filters.
    func subscribeRefused(_ filters: [String], _ error: MQTTError) {
        for filter in filters {
            let key = ByteKey(filter)
            guard let entry = router.entries[key] else { continue }
            fail(key, error, of: entry.pending)
        }
    }

    /// The connection has ended: callers fail whose SUBSCRIBE was written so long ago, on this connection or an earlier
    /// one, that the answer is late.
    func failLateSubscribes() {
        guard let router = knownRouter else { return }
        let (now, timeout) = (core.loop.now, core.settings.engineOptions.value.requestTimeout)
        for (key, entry) in router.orderedEntries where entry.pending != 0 {
            let late = entry.takeCallers {
                $0.wait != nil && $0.request != 0 && $0.firstWritten.advanced(byNanoseconds: timeout) <= now
            }
            for caller in late {
                caller.wait?.answer(caller.index, .failure(.connectionsEndBeforeSuback))
                withdraw(caller.route, from: key, .connectionsEndBeforeSuback)
            }
        }
    }

    /// A SUBSCRIBE failed for one of its filters: the routes that asked with it fail. The other routes continue if the
    /// server has granted the filter on this connection or is about to answer another SUBSCRIBE. If it granted the
    /// filter on an earlier connection only, they are requested again without the refused options, even if the route
    /// with those options has ended.
    ///
    /// - Parameters:
    ///   - request: the SUBSCRIBE; 0 if it could not be written.
    ///   - othersContinue: whether only the callers that wait fail, and the next connection subscribes the others.
    private func fail(_ key: ByteKey, _ error: MQTTError, of request: UInt64, othersContinue: Bool = false) {
        guard let entry = router.entries[key] else { return }
        var callers = entry.takeCallers(of: request)
        for caller in callers {
            caller.wait?.note(error.properties, of: request)
            caller.wait?.answer(caller.index, .failure(error))
        }
        if othersContinue { entry.takeBack(&callers, where: { $0.wait == nil }) }
        let isAtServer = othersContinue || entry.isAtServer || !entry.callers.isEmpty
        let othersAskLess =
            callers.isEmpty
            ? entry.asksLess && request != 0
            : entry.routes.contains { route in !callers.contains { $0.route === route } }
        if callers.contains(where: { $0.wait == nil }) || !isAtServer && callers.isEmpty && !othersAskLess {
            core.news.tell(.subscriptionLost(filter: key.text, reason(of: error, for: key.text)))
        }
        if isAtServer || othersAskLess {
            for caller in callers { withdraw(caller.route, from: key, error) }
            if !isAtServer { send([key]) }
        } else {
            _ = router.removeEntry(key)
            for route in entry.routes { lose(route, error) }
        }
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
    private func withdraw(_ route: MQTTRoute, from key: ByteKey, _ error: MQTTError) {
        // A route has a caller for each time that it names the filter.
        guard router.entries[key]?.routes.contains(where: { $0 === route }) == true else { return }
        lose(route, error)
        if router.withdraw(route, from: key) { unsubscribeRemoved([key.text]) }
    }

    /// A subscription of several filters lives as long as one of them does.
    private func lose(_ route: MQTTRoute, _ error: MQTTError) {
        route.lostFilters += 1
        if route.lostFilters >= route.filterCount { finish(route, .failed(error)) }
    }
}

extension Array {
    /// The elements in arrays of at most `maximum` each, in their order.
    fileprivate func inRequests(of maximum: Int) -> [[Element]] {
        stride(from: 0, to: count, by: maximum).map { Array(self[$0..<Swift.min($0 + maximum, count)]) }
    }
}

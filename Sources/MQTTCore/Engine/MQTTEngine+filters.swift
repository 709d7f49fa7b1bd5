// What a client wants of the server's topic filters, and the one function that asks for it.

import MessagingWire

extension MQTTEngine {
    // MARK: What is wanted

    /// Wants a subscription, in place of one with the same filter. It is kept over connections: whenever the server lacks it,
    /// ``reconcile(at:into:)`` writes SUBSCRIBE, whose answer is ``MQTTEngineEvent/Kind/subscribeCompleted(_:codes:properties:)``.
    ///
    /// - Parameter properties: Subscription Identifier, user properties; 5.0 only.
    /// - Throws: ``MQTTUsageError/Code/invalidFilter``.
    public mutating func want(
        _ request: MQTTSubscriptionRequest, properties: MQTTProperties = []
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard !isServer else { throw .isSentByClients("SUBSCRIBE") }
        if let flaw = MQTTTopicFilter.flaw(in: request.filter) { throw MQTTUsageError(.invalidFilter, flaw) }
        want(request, identifier: 0, properties, mayBeHeld: session.isHeld && phase == .closed)
    }

    /// Wants no subscription with this filter any more. If the server may have one, ``reconcile(at:into:)`` writes UNSUBSCRIBE,
    /// whose answer is ``MQTTEngineEvent/Kind/unsubscribeCompleted(_:codes:properties:)``; also for a filter that this engine
    /// has never wanted.
    ///
    /// - Parameter properties: user properties of UNSUBSCRIBE; 5.0 only.
    /// - Throws: ``MQTTUsageError/Code/invalidFilter``.
    public mutating func unwant(_ filter: String, properties: MQTTProperties = []) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard !isServer else { throw .isSentByClients("UNSUBSCRIBE") }
        if let flaw = MQTTTopicFilter.flaw(in: filter) { throw MQTTUsageError(.invalidFilter, flaw) }
        unwantChecked(filter, properties)
    }

    /// The same for a filter that was checked.
    package mutating func unwantChecked(_ filter: String, _ properties: MQTTProperties) {
        filters.change(filter, mayBeHeld: true) { $0.unwant(properties) }
        withdrawPassedSubscription(to: filter)
    }

    /// Wants no subscription any more with a filter that was wanted. Returns whether UNSUBSCRIBE is to be written, or is in
    /// flight.
    @discardableResult
    package mutating func forget(_ filter: String, _ properties: MQTTProperties = []) -> Bool {
        filters.change(filter) { $0.unwant(properties) }
        withdrawPassedSubscription(to: filter)
        return filters[filter] != nil
    }

    /// Wants a subscription whose filter was checked.
    ///
    /// - Parameters:
    ///   - identifier: a Subscription Identifier of the client's choice, for servers that support them; 0 for none.
    ///   - mayBeHeld: whether the server may have the filter, although this engine does not know it.
    package mutating func want(
        _ request: MQTTSubscriptionRequest, identifier: UInt32, _ properties: MQTTProperties, mayBeHeld: Bool
    ) {
        filters.want(request, identifier: identifier, properties, mayBeHeld: mayBeHeld)
    }

    /// What a caller that wants a filter has to wait for.
    package enum FilterAnswer: Sendable {
        /// The server has granted what is wanted.
        case granted(MQTTReasonCode)
        /// The answer to the first SUBSCRIBE of the filter whose token is not lower.
        case awaits(UInt64)
    }

    /// A caller waits for the server's answer to a filter that is wanted.
    ///
    /// - Parameter wantsRetained: whether the answer has to be that to a SUBSCRIBE which is not written yet.
    package mutating func join(
        _ filter: String, _ handling: MQTTSubscriptionRequest.RetainHandling, wantsRetained: Bool
    ) -> FilterAnswer {
        guard let record = filters[filter], case .options(let wanted) = record.wanted else {
            assert(false, "A caller waits for a filter that is not wanted.")
            return .awaits(.max)
        }
        if !wantsRetained {
            switch (record.inFlight, record.server) {
            case (.subscribe(let asked, _, let token), _)
            where !wanted.exceeds(asked, hasOptions: version.hasProperties):
                return .awaits(token)
            case (.none, .holds(let holding))
            where phase == .connected && record.next(hasOptions: version.hasProperties) == nil:
                return .granted(holding.granted)
            default: break
            }
        }
        filters.change(filter, mayBeHeld: false) { $0.ask(FilterRecord.strongest($0.asking, handling)) }
        return .awaits(filters.nextToken)
    }

    /// Some callers wait no longer: these remain, each with the lowest token of the answer that it awaits.
    package mutating func keepWaiting(
        for filter: String, only callers: [(token: UInt64, handling: MQTTSubscriptionRequest.RetainHandling)]
    ) {
        filters.change(filter) { record in
            let written: UInt64? = if case .subscribe(_, _, let token) = record.inFlight { token } else { nil }
            let waiting = callers.filter { caller in written.map { caller.token > $0 } ?? true }
            record.ask(waiting.reduce(nil) { FilterRecord.strongest($0, $1.handling) })
        }
    }

    /// The client stops: the server keeps the filter for the next subscription.
    package mutating func unclaim(_ filter: String) { filters.change(filter) { $0.unclaim() } }

    /// Whether the server may have the filter for a subscription that ended with the client.
    package func isUnclaimed(_ filter: String) -> Bool { filters[filter]?.wanted == .unclaimed }

    /// Whether UNSUBSCRIBE is in flight with the filter.
    package func isUnsubscribing(_ filter: String) -> Bool {
        if case .unsubscribe? = filters[filter]?.inFlight { true } else { false }
    }

    /// Whether the server has refused what is wanted of the filter, so that nothing more is asked for.
    package func isRefused(_ filter: String) -> Bool {
        filters[filter]?.isRefused(hasOptions: version.hasProperties) ?? false
    }

    /// The filters of a request that is in flight.
    package func filters(ofRequest token: UInt64) -> [String] { filters.requests[token]?.filters ?? [] }

    // MARK: What is asked for

    /// Writes the SUBSCRIBE and UNSUBSCRIBE packets that are due, with at most
    /// ``MQTTEngineConfiguration/maximumFiltersPerRequest`` filters in each. Call it when something is wanted that was not, or
    /// is not wanted any more. Without a connection the next one does it.
    ///
    /// Requests never wait for the window [MQTT 5.0 4.9.0-3]. A QoS above the server's Maximum QoS, which no message would have,
    /// is lowered to that in the packet [MQTT-3.8.3-2].
    public mutating func reconcile(at now: Int64, into effects: inout MQTTEffects) {
        defer { assert(checkInvariants()) }
        let comesFirst = missingReconciles > 0
        guard phase == .connected else { return filters.forgetChanges() }
        writeDue(comesFirst: comesFirst, at: now, into: &effects)
        guard comesFirst else { return }
        missingReconciles -= 1
        releaseMessages(at: now, into: &effects)
    }

    /// The only function that writes SUBSCRIBE and UNSUBSCRIBE.
    mutating func writeDue(comesFirst: Bool, at now: Int64, into effects: inout MQTTEffects) {
        guard phase == .connected else { return }
        let due = filters.takeDue(hasOptions: version.hasProperties)
        guard !due.isEmpty else { return }
        for (properties, keys) in Self.grouped(due.lazy.filter { $0.packet == .unsubscribe }.map { $0.key }, filters) {
            for start in stride(from: 0, to: keys.count, by: maximumFilters) {
                let keys = Array(keys[start..<min(start + maximumFilters, keys.count)])
                write(.unsubscribe, keys, properties, comesFirst: false, at: now, into: &effects)
            }
        }
        for (properties, keys) in subscribeGroups(due.filter { $0.packet == .subscribe }.map { $0.key }) {
            write(.subscribe, keys, properties, comesFirst: comesFirst, at: now, into: &effects)
        }
    }

    private var maximumFilters: Int { max(1, options.value.maximumFiltersPerRequest) }

    /// Filters with the same properties may share a packet.
    private static func grouped(
        _ keys: some Sequence<ByteKey>, _ filters: borrowing FilterTable
    ) -> [(properties: MQTTProperties, keys: [ByteKey])] {
        var groups: [(properties: MQTTProperties, keys: [ByteKey])] = []
        var numbers: [MQTTProperties: Int] = [:]
        for key in keys {
            let properties = filters.records[key]?.properties ?? []
            if let number = numbers[properties] {
                groups[number].keys.append(key)
            } else {
                numbers[properties] = groups.count
                groups.append((properties, [key]))
            }
        }
        return groups
    }

    /// The filters of each SUBSCRIBE: one for each that has an identifier of its own, if the server supports identifiers. A
    /// filter that the server may have refused by ending the connection has its own packet.
    private func subscribeGroups(_ keys: [ByteKey]) -> [(properties: MQTTProperties, keys: [ByteKey])] {
        let hasIdentifiers = version.hasProperties && limits.subscriptionIdentifiersAvailable
        var identified: [(key: ByteKey, identifier: UInt32, qos: QoS, number: UInt64)] = []
        var plain: [ByteKey] = []
        for key in keys {
            guard let record = filters.records[key], case .options(let options) = record.wanted else { continue }
            let isOwn = options.identifier != 0 && record.properties.subscriptionIdentifiers.isEmpty
            if hasIdentifiers, isOwn {
                identified.append((key, options.identifier, options.qos, record.number))
            } else {
                plain.append(key)
            }
        }
        let maximum = filters.asksSingly ? 1 : maximumFilters
        var packets: [(properties: MQTTProperties, keys: [ByteKey])] = []
        for group in Self.grouped(plain, filters) {
            let apart = group.keys.filter { sendsAlone(filter: $0.text) }
            let together = apart.isEmpty ? group.keys : group.keys.filter { !apart.contains($0) }
            for start in stride(from: 0, to: together.count, by: maximum) {
                packets.append((group.properties, Array(together[start..<min(start + maximum, together.count)])))
            }
            for key in apart { packets.append((group.properties, [key])) }
        }
        // A copy for a later filter proves that the copies for earlier filters were sent. The filter with the highest QoS
        // therefore goes first, and its copy is the one that is delivered.
        identified.sort { $0.qos == $1.qos ? $0.number < $1.number : $0.qos > $1.qos }
        for filter in identified {
            var properties = filters.records[filter.key]?.properties ?? []
            properties.subscriptionIdentifiers = [filter.identifier]
            packets.append((properties, [filter.key]))
        }
        return packets
    }

    /// Writes one packet. If that cannot be, a packet for each of its filters.
    private mutating func write(
        _ packet: FilterRecord.Packet, _ keys: [ByteKey], _ properties: MQTTProperties, comesFirst: Bool,
        at now: Int64, into effects: inout MQTTEffects
    ) {
        let texts = keys.map { $0.text }
        var request = MQTTFilterRequest(
            filters: texts, token: filters.nextToken, packet: packet,
            comesFirst: comesFirst && packet == .subscribe && !isPassed(filters: texts), time: now)
        do throws(MQTTUsageError) {
            switch packet {
            case .subscribe: try subscribe(keys, properties, token: request.token, at: now)
            case .unsubscribe: try unsubscribe(texts, properties, token: request.token, at: now)
            }
            request.token = filters.makeToken()
            filters.written(request)
        } catch {
            // It stays due.
            if error.code == .noPacketIdentifier { return filters.putBack(keys) }
            guard keys.count == 1 else {
                for key in keys { write(packet, [key], properties, comesFirst: comesFirst, at: now, into: &effects) }
                return
            }
            request.token = filters.makeToken()
            filters.notWritten(request)
            effects.report(.requestNotWritten(request, error))
        }
    }

    /// Both numbers of what messages wait for may have become 0.
    mutating func releaseMessages(at now: Int64, into effects: inout MQTTEffects) {
        if !messagesWait { pump(at: now, into: &effects) }
    }

    /// Whether messages wait for the subscriptions of this connection.
    var messagesWait: Bool { missingReconciles > 0 || filters.unansweredFirst > 0 }
}

// What a client wants of the server's topic filters, and the one function that asks for it.

import MessagingWire

extension MQTTEngine {
    // MARK: What is wanted

    /// Wants a subscription, in place of one with the same filter. It is kept over connections: whenever the server lacks it,
    /// ``reconcile(at:into:)`` writes SUBSCRIBE, whose answer is ``MQTTEngineEvent/Kind/subscribeCompleted(_:codes:properties:)``,
    /// unless the server has refused the same in this session.
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
    }

    /// Wants no subscription any more with a filter that was wanted. Returns whether UNSUBSCRIBE is to be written, or is in
    /// flight.
    @discardableResult
    package mutating func forget(_ filter: String, _ properties: MQTTProperties = []) -> Bool {
        filters.change(filter) { $0.unwant(properties) }
        forgetChangesWhenClosed()
        return filters[filter].map { !$0.isGone } ?? false
    }

    /// Wants a subscription whose filter was checked.
    ///
    /// - Parameters:
    ///   - identifier: a Subscription Identifier of the client's choice, for servers that support them; 0 for none.
    ///   - mayBeHeld: whether the server may have the filter, although this engine does not know it.
    ///   - isTemporary: whether the next process of the session does not take the filter over.
    package mutating func want(
        _ request: MQTTSubscriptionRequest, identifier: UInt32, _ properties: MQTTProperties, mayBeHeld: Bool,
        isTemporary: Bool = false
    ) {
        filters.want(request, identifier: identifier, properties, mayBeHeld: mayBeHeld, isTemporary: isTemporary)
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
            where !wanted.exceeds(asked, terms):
                return .awaits(token)
            case (.none, .holds(let holding))
            where phase == .connected && record.next(terms) == nil:
                return .granted(holding.granted)
            default: break
            }
        }
        filters.change(filter, mayBeHeld: false) { $0.ask(handling) }
        return .awaits(filters.nextToken)
    }

    /// Some callers wait no longer: these remain, each with the lowest token of the answer that it awaits.
    package mutating func keepWaiting(
        for filter: String, only callers: [(token: UInt64, handling: MQTTSubscriptionRequest.RetainHandling)]
    ) {
        filters.change(filter) { record in
            let written: UInt64? = if case .subscribe(_, _, let token) = record.inFlight { token } else { nil }
            var (current, next): (FilterRecord.RetainHandling?, FilterRecord.RetainHandling?) = (nil, nil)
            for caller in callers {
                if let written, caller.token <= written {
                    current = FilterRecord.strongest(current, caller.handling)
                } else {
                    next = FilterRecord.strongest(next, caller.handling)
                }
            }
            record.keepAsking(current, next: next)
        }
    }

    /// The client stops: the server keeps the filter for the next subscription, if it may have it for longer than was asked for.
    package mutating func stop(_ filter: String) {
        filters.change(filter) { $0.stop() }
        forgetChangesWhenClosed()
    }

    /// The next connection looks at all filters.
    private mutating func forgetChangesWhenClosed() { if phase == .closed { noteChangesOnly() } }

    private mutating func noteChangesOnly() { for key in filters.takeChanged() { noteFilter(key) } }

    /// Whether the server may have the filter for a subscription that ended with the client.
    package func isUnclaimed(_ filter: String) -> Bool { filters[filter]?.wanted == .unclaimed }

    /// Whether UNSUBSCRIBE is in flight with the filter, or to be written.
    package func isUnsubscribing(_ filter: String) -> Bool {
        guard let record = filters[filter], !record.isGone else { return false }
        if case .unsubscribe = record.inFlight { return true }
        return record.wanted == FilterRecord.Wanted.none
    }

    /// Whether the server has refused what is wanted of the filter, so that nothing more is asked for.
    package func isRefused(_ filter: String) -> Bool {
        filters[filter]?.isRefused(terms) ?? false
    }

    /// The filters of a SUBSCRIBE in flight.
    func filters(ofSubscribe packetID: UInt16) -> [String] {
        guard let request = filters.requests[packetID], !request.isUnsubscribe else { return [] }
        return request.filters
    }

    // MARK: What is asked for

    /// Writes the SUBSCRIBE and UNSUBSCRIBE packets that are due, with at most
    /// ``MQTTEngineConfiguration/maximumFiltersPerRequest`` filters in each. Call it when something is wanted that was not, or
    /// is not wanted any more. Without a connection the next one does it. With a store, the record that the server may have a
    /// filter is stored before SUBSCRIBE leaves.
    ///
    /// Requests never wait for the window [MQTT 5.0 4.9.0-3]. A QoS above the server's Maximum QoS, which no message would have,
    /// is lowered to that in the packet [MQTT-3.8.3-2].
    public mutating func reconcile(at now: Int64, into effects: inout MQTTEffects) {
        defer { assert(checkInvariants()) }
        guard phase == .connected else { return noteChangesOnly() }
        if reconciling == .answers { expectAnswers() }
        reconciling = .nothing
        pump(at: now, into: &effects)
    }

    /// Messages wait for the answers to what is due now, but not to what others pass.
    mutating func expectAnswers() {
        let quarantine = isCareful ? quarantine : Quarantine()
        filters.expectAnswers(terms) { quarantine.turn(of: .filter($0)) != .later }
    }

    /// The only function that writes SUBSCRIBE and UNSUBSCRIBE. False if messages have to wait for what is left.
    mutating func writeDue(at now: Int64, into effects: inout MQTTEffects) -> Bool {
        if isCareful && quarantine.isWaiting { return false }
        if !session.window.hasFreeIDs { filters.nothingComesFirst() }
        if filters.hasChanges && !sendsSingly && session.window.hasFreeIDs {
            var due = takeDue()
            if isCareful {
                filters.putBack(due.filter { turn(of: $0.key, $0.packet) != .freely }.map { $0.key })
                due.removeAll { turn(of: $0.key, $0.packet) != .freely }
            }
            // A message that comes before the filter has its identifier would not be known as that filter's.
            if sendsIdentifiers, due.contains(where: { ownIdentifier(of: $0.key) != 0 }), willAskForIdentifier {
                filters.putBack(due.filter { ownIdentifier(of: $0.key) != 0 }.map { $0.key })
                due.removeAll { ownIdentifier(of: $0.key) != 0 }
            }
            writeTogether(due, at: now, into: &effects)
        }
        return !isCareful || writeApart(at: now, into: &effects)
    }

    /// Takes the filters for which packets are due and may leave. A SUBSCRIBE whose record is not stored yet stays due.
    private mutating func takeDue() -> [(key: ByteKey, packet: FilterRecord.Packet)] {
        // With the first, all that have changed since wait.
        if let first = filters.firstChanged, waitsForStore(first) { return [] }
        var leaving: [(key: ByteKey, packet: FilterRecord.Packet)] = []
        var waiting: [ByteKey] = []
        for key in filters.takeChanged() {
            guard let packet = due(key) else { continue }
            if packet == .subscribe, waitsForStore(key) { waiting.append(key) } else { leaving.append((key, packet)) }
        }
        filters.putBack(waiting)
        return leaving
    }

    /// The packet that is due for a filter that was taken. The store is given what the server will have of it.
    private mutating func due(_ key: ByteKey) -> FilterRecord.Packet? {
        noteFilter(key)
        return filters.due(key, terms)
    }

    private func waitsForStore(_ key: ByteKey) -> Bool { filters.waitsForStore(key, through: persistedTicket) }

    /// Writes a packet for each filter, one after the answer to the other.
    private mutating func writeApart(at now: Int64, into effects: inout MQTTEffects) -> Bool {
        var passed: [ByteKey] = []
        defer { filters.putBack(passed) }
        while let key = filters.takeFirstChanged() {
            guard let packet = due(key) else { continue }
            let turn = turn(of: key, packet)
            if turn == .later {
                passed.append(key)
                continue
            }
            guard packet == .unsubscribe || !waitsForStore(key), mayBeAlone(at: now) else {
                filters.putFirst(key)
                return false
            }
            let isExactlyOnce = packet == .subscribe && asksForQoS2(key)
            switch write(packet, [key], properties(of: key, packet), at: now, into: &effects) {
            case .written:
                sentAlone(packet == .subscribe ? .filter(key) : nil, isExactlyOnce: isExactlyOnce, at: now)
                return false
            case .impossible: continue
            case .noIdentifier: return true
            }
        }
        return true
    }

    private mutating func writeTogether(
        _ due: [(key: ByteKey, packet: FilterRecord.Packet)], at now: Int64, into effects: inout MQTTEffects
    ) {
        var hasIdentifiers = true
        for packet in [FilterRecord.Packet.unsubscribe, .subscribe] {
            for (properties, keys) in packets(packet, due.filter { $0.packet == packet }.map { $0.key }) {
                if hasIdentifiers {
                    hasIdentifiers = write(packet, keys, properties, at: now, into: &effects) != .noIdentifier
                } else {
                    filters.putBack(keys)
                }
            }
        }
    }

    /// The filters of each packet: filters with the same properties may share it. A filter that has an identifier of its own
    /// shares it with none, if the server supports identifiers.
    private func packets(
        _ packet: FilterRecord.Packet, _ keys: [ByteKey]
    ) -> [(properties: MQTTProperties, keys: [ByteKey])] {
        let isSingle = packet == .subscribe && asksSingly
        let maximum = isSingle ? 1 : max(1, options.value.maximumFiltersPerRequest)
        var packets: [(properties: MQTTProperties, keys: [ByteKey])] = []
        var numbers: [MQTTProperties: Int] = [:]
        // A copy for a later filter proves that the copies for earlier filters were sent. The filter with the highest QoS
        // therefore goes first, and its copy is the one that is delivered.
        for key in packet == .subscribe ? inOrderOfCopies(keys) : keys {
            let properties = properties(of: key, packet)
            if let number = numbers[properties], packets[number].keys.count < maximum {
                packets[number].keys.append(key)
            } else {
                numbers[properties] = packets.count
                packets.append((properties, [key]))
            }
        }
        return packets
    }

    /// Filters without an identifier of their own; those with one that the server has, so that the messages of the others can
    /// be told from theirs; and the others by their QoS, from the highest on.
    private func inOrderOfCopies(_ keys: [ByteKey]) -> [ByteKey] {
        guard sendsIdentifiers, keys.contains(where: { ownIdentifier(of: $0) != 0 }) else { return keys }
        func rank(_ key: ByteKey) -> Int {
            guard ownIdentifier(of: key) != 0, let record = filters.records[key],
                case .options(let wanted) = record.wanted
            else { return 0 }
            if case .holds(let holding) = record.server, holding.isConfirmed { return 1 }
            return 4 - Int(wanted.qos.rawValue)
        }
        return (0...4).flatMap { wanted in keys.filter { rank($0) == wanted } }
    }

    /// What SUBSCRIBE may have.
    var terms: FilterRecord.Terms {
        version.hasProperties ? limits.subscriptionIdentifiersAvailable ? .identifiers : .options : .qos
    }

    /// Whether SUBSCRIBE may have a Subscription Identifier.
    package var sendsIdentifiers: Bool { terms == .identifiers }

    /// With which Subscription Identifier a server has a filter that is wanted.
    package enum HeldIdentifier: Sendable {
        case own
        case ownOrNothing
        case maybeNone
    }

    /// With which Subscription Identifier the server has a filter.
    package func heldIdentifier(of filter: String) -> HeldIdentifier { filters[filter]?.heldIdentifier ?? .maybeNone }

    /// Whether a filter is asked for without its identifier, and will be asked for again with it.
    private var willAskForIdentifier: Bool {
        filters.requests.values.contains { request in
            request.filters.contains { filters[$0]?.willAskForIdentifier ?? false }
        }
    }

    /// The identifier that distinguishes the filter's messages; 0 for none, or if the caller has chosen it.
    private func ownIdentifier(of key: ByteKey) -> UInt32 {
        guard let record = filters.records[key], case .options(let wanted) = record.wanted,
            record.properties.subscriptionIdentifiers.isEmpty
        else { return 0 }
        return wanted.identifier
    }

    private func properties(of key: ByteKey, _ packet: FilterRecord.Packet) -> MQTTProperties {
        var properties = filters.records[key]?.properties ?? []
        let own = packet == .subscribe && sendsIdentifiers ? ownIdentifier(of: key) : 0
        if own != 0 { properties.subscriptionIdentifiers = [own] }
        return properties
    }

    private func asksForQoS2(_ key: ByteKey) -> Bool {
        guard case .options(let wanted)? = filters.records[key]?.wanted else { return false }
        return min(wanted.qos, limits.maximumQoS) == .exactlyOnce
    }

    /// What becomes of a packet that is due.
    private enum Outcome {
        case written
        /// It cannot be written, whatever the connection.
        case impossible
        /// It stays due.
        case noIdentifier
    }

    /// Writes one packet. If that cannot be, a packet for each of its filters.
    @discardableResult
    private mutating func write(
        _ packet: FilterRecord.Packet, _ keys: [ByteKey], _ properties: MQTTProperties, at now: Int64,
        into effects: inout MQTTEffects
    ) -> Outcome {
        do throws(MQTTUsageError) {
            guard let id = try append(packet, keys, properties) else {
                filters.putBack(keys)
                // Messages leave: their answers give identifiers back.
                filters.nothingComesFirst()
                return .noIdentifier
            }
            keepAlive.sent(at: now)
            filters.written(request(packet, keys, id, at: now), terms)
            return .written
        } catch {
            guard keys.count == 1 else {
                for key in keys { write(packet, [key], properties, at: now, into: &effects) }
                return .impossible
            }
            let request = request(packet, keys, 0, at: now)
            noteRefusal(comesFirst: filters.comesFirst(request))
            filters.notWritten(request)
            effects.report(.requestNotWritten(request, error))
            return .impossible
        }
    }

    private mutating func request(
        _ packet: FilterRecord.Packet, _ keys: [ByteKey], _ id: UInt16, at now: Int64
    ) -> MQTTFilterRequest {
        MQTTFilterRequest(
            filters: keys.map { $0.text }, token: filters.makeToken(), packet: packet, packetID: id,
            time: listening.time(at: now))
    }

    /// What was asked for is refused, or its answer is late: the caller asks for something else, if it does so at all.
    ///
    /// - Parameter comesFirst: whether messages wait for the answer.
    mutating func noteRefusal(comesFirst: Bool) {
        guard options.value.subscribesAgainAfterRefusals, phase == .connected else { return }
        reconciling = comesFirst || reconciling == .answers ? .answers : .requests
    }

    /// Whether messages wait for the subscriptions of this connection.
    var messagesWait: Bool { reconciling != .nothing || filters.messagesWait }
}

// SUBSCRIBE and UNSUBSCRIBE of a client, and their answers.
// After CONNACK: subscriptions, their SUBACK, and only then messages.

import MessagingWire

extension MQTTEngine {
    /// Writes SUBSCRIBE; the answer is ``MQTTEngineEvent/Kind/subscribeCompleted(token:codes:properties:)``.
    ///
    /// Requests never wait for the window [MQTT 5.0 4.9.0-3]. A QoS above the server's Maximum QoS, which no message would
    /// have, is lowered to that in the packet [MQTT-3.2.2-10].
    /// - Parameter properties: Subscription Identifier, user properties; 5.0 only.
    /// - Throws: ``MQTTUsageError/Code/notConnected``, ``MQTTUsageError/Code/noFilters``, ``MQTTUsageError/Code/invalidFilter``,
    ///   ``MQTTUsageError/Code/subscriptionNotSupported``, ``MQTTUsageError/Code/packetTooLarge``,
    ///   ``MQTTUsageError/Code/noPacketIdentifier``.
    public mutating func subscribe(
        _ subscriptions: [MQTTSubscriptionRequest], properties: MQTTProperties = [], token: UInt64, at now: Int64
    ) throws(MQTTUsageError) {
        try checkRequest("SUBSCRIBE", subscriptions.count)
        if !properties.subscriptionIdentifiers.isEmpty && !limits.subscriptionIdentifiersAvailable {
            throw .subscriptionIdentifiersAreNotAvailable
        }
        for subscription in subscriptions { try check(subscription) }
        var subscriptions = subscriptions
        let maximumQoS = limits.maximumQoS
        for index in subscriptions.indices where subscriptions[index].qos > maximumQoS {
            subscriptions[index].qos = maximumQoS
        }
        let requests = subscriptions
        try request(
            .subscribe, requests.map { $0.filter }, count: requests.count, token: token, at: now
        ) { id in
            .subscribe(.init(packetID: id, subscriptions: requests, properties: properties))
        }
    }

    /// Writes UNSUBSCRIBE; the answer is ``MQTTEngineEvent/Kind/unsubscribeCompleted(token:codes:properties:)``.
    public mutating func unsubscribe(
        _ filters: [String], properties: MQTTProperties = [], token: UInt64, at now: Int64
    ) throws(MQTTUsageError) {
        try checkRequest("UNSUBSCRIBE", filters.count)
        for filter in filters { try check(filter) }
        dropPassedSubscriptions(to: filters)
        try request(.unsubscribe, filters, count: filters.count, token: token, at: now) { id in
            .unsubscribe(.init(packetID: id, filters: filters, properties: properties))
        }
    }

    private func checkRequest(_ packet: String, _ count: Int) throws(MQTTUsageError) {
        guard !isServer else { throw .isSentByClients(packet) }
        guard phase == .connected else { throw .cannotSend(packet, in: phase) }
        // [MQTT-3.8.3-2]
        guard count > 0 else { throw .hasNoFilter(packet) }
    }

    private func check(_ filter: String) throws(MQTTUsageError) {
        if let flaw = MQTTTopicFilter.flaw(in: filter) { throw MQTTUsageError(.invalidFilter, flaw) }
    }

    private func check(_ subscription: MQTTSubscriptionRequest) throws(MQTTUsageError) {
        try check(subscription.filter)
        let isShared = MQTTTopicFilter.shared(subscription.filter) != nil
        // [MQTT-3.8.3-4]
        if isShared && subscription.noLocal { throw .noLocalOnSharedSubscription }
        if isShared && !limits.sharedSubscriptionAvailable { throw .sharedSubscriptionsAreNotAvailable }
        if !limits.wildcardSubscriptionAvailable
            && subscription.filter.utf8.contains(where: { $0 == 0x23 || $0 == 0x2B })
        {
            throw .wildcardsAreNotAvailable
        }
    }

    private mutating func request(
        _ kind: OutboundSlot.Kind, _ filters: @autoclosure () -> [String], count: Int, token: UInt64, at now: Int64,
        _ packet: (UInt16) -> MQTTPacket
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard let id = session.window.reserveID() else { throw .noPacketIdentifierIsFree }
        let bytes: [UInt8]
        do throws(MQTTUsageError) {
            bytes = try encode(packet(id))
        } catch {
            session.window.releaseID(id)
            throw error
        }
        let comesFirst = kind == .subscribe && comesFirst(filters())
        if comesFirst { unansweredSubscriptions += 1 }
        let deadline = now.advanced(byNanoseconds: options.value.requestTimeout)
        session.window.recordRequest(
            id, kind, token: token, filterCount: count, comesFirst: comesFirst, deadline: deadline,
            waiting: isCareful ? bytes : [])
        if isCareful {
            _ = sendWaitingRequests(at: now)
        } else {
            output += bytes
            keepAlive.sent(at: now)
        }
    }

    // MARK: Answers

    mutating func receivedSuback(
        _ suback: MQTTPacket.Suback, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard let index = try slot(of: .subscribe, suback.packetID) else { return }
        let request = session.window.slots[Int(index)]
        let (count, filterCount) = (suback.reasonCodes.count, Int(request.filterCount))
        guard count == filterCount else {
            throw .wrongNumberOfCodes(count, filters: filterCount, clause: Self.clauseOfCodeCount)
        }
        noteAnswered(index)
        session.window.finishRequest(index)
        effects.report(
            .subscribeCompleted(token: request.token, codes: suback.reasonCodes, properties: suback.properties))
        if request.comesFirst {
            let isRefused = suback.reasonCodes.contains { $0.isError }
            firstSubscriptionAnswered(isRefused: isRefused, at: now, into: &effects)
        }
        if isCareful { pump(at: now, into: &effects) }
    }

    mutating func receivedUnsuback(
        _ unsuback: MQTTPacket.Unsuback, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard let index = try slot(of: .unsubscribe, unsuback.packetID) else { return }
        let request = session.window.slots[Int(index)]
        session.window.finishRequest(index)
        var codes = unsuback.reasonCodes
        if version.hasProperties, codes.count != Int(request.filterCount) {
            // UNSUBACK confirms the request, however many codes it has.
            let missing = max(0, Int(request.filterCount) - codes.count)
            codes = codes.prefix(Int(request.filterCount)) + [MQTTReasonCode](repeating: .success, count: missing)
        }
        effects.report(.unsubscribeCompleted(token: request.token, codes: codes, properties: unsuback.properties))
        if isCareful { pump(at: now, into: &effects) }
    }

    /// The clause that SUBACK breaks with another number of codes than SUBSCRIBE had filters.
    package static let clauseOfCodeCount = "MQTT-3.9.3-1"

    /// The place of the request that an answer belongs to, or nil if there is no such request.
    private func slot(of kind: OutboundSlot.Kind, _ id: UInt16) throws(MQTTProtocolError) -> Int32? {
        let index = session.window.slot(of: id)
        guard index >= 0 else { return nil }
        guard session.window.slots[Int(index)].kind == kind else {
            throw .identifierAwaitsAnother(id, than: kind == .subscribe ? .suback : .unsuback, clause: "MQTT-3.9.2")
        }
        return index
    }

    /// The token of the SUBSCRIBE with a packet identifier; nil if there is none.
    func subscribeToken(of id: UInt16) -> UInt64? {
        guard let index = try? slot(of: .subscribe, id) else { return nil }
        return session.window.slots[Int(index)].token
    }
}

extension MQTTEngine {
    /// The caller has written every SUBSCRIBE that has to be answered before the first PUBLISH of this connection.
    ///
    /// Needed once after each ``MQTTEngineEvent/Kind/connected(_:)`` if ``MQTTEngineConfiguration/subscribesFirst`` is
    /// set. Messages are sent after the last SUBACK, whatever its codes, or now if there was nothing to subscribe.
    public mutating func subscriptionsSent(at now: Int64, into effects: inout MQTTEffects) {
        defer { assert(checkInvariants()) }
        guard subscribingStage == .writing else { return }
        missingSubscriptionsSent -= 1
        guard missingSubscriptionsSent == 0 else { return }
        subscribingStage = .awaitingAnswers
        if unansweredSubscriptions == 0 { releaseMessages(at: now, into: &effects) }
    }

    /// Whether a SUBSCRIBE with these filters that is written now has to be answered before the first PUBLISH of this
    /// connection.
    package func comesFirst(_ filters: @autoclosure () -> [String]) -> Bool {
        subscribingStage == .writing && !(isCareful && isPassed(filters: filters()))
    }

    /// CONNACK arrived: from now on messages wait, if `subscribesFirst` is set.
    mutating func beginSubscribing() {
        missingSubscriptionsSent = 1
        unansweredSubscriptions = 0
        subscribingStage = options.value.subscribesFirst ? .writing : .done
    }

    /// One of the first subscriptions was answered.
    ///
    /// - Parameter isRefused: whether the caller may subscribe again because of the answer.
    mutating func firstSubscriptionAnswered(isRefused: Bool, at now: Int64, into effects: inout MQTTEffects) {
        unansweredSubscriptions -= 1
        // A client that leaves waits for none.
        if isRefused, options.value.subscribesAgainAfterRefusals, subscribingStage != .done {
            missingSubscriptionsSent = subscribingStage == .writing ? missingSubscriptionsSent + 1 : 1
            subscribingStage = .writing
        }
        if unansweredSubscriptions == 0, subscribingStage == .awaitingAnswers {
            releaseMessages(at: now, into: &effects)
        }
    }

    private mutating func releaseMessages(at now: Int64, into effects: inout MQTTEffects) {
        subscribingStage = .done
        pump(at: now, into: &effects)
    }
}

/// How far a connection is with the subscriptions that have to come before its messages.
enum SubscribingStage: UInt8, Sendable {
    /// The caller is about to write SUBSCRIBE packets.
    case writing
    /// They are written, and some are not answered.
    case awaitingAnswers
    /// Nothing holds messages back.
    case done
}

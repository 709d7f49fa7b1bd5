// SUBSCRIBE and UNSUBSCRIBE of a client as packets, and their answers.

import MessagingWire

extension MQTTEngine {
    mutating func subscribe(
        _ keys: [ByteKey], _ properties: MQTTProperties, token: UInt64, at now: Int64
    ) throws(MQTTUsageError) {
        if !properties.subscriptionIdentifiers.isEmpty && !limits.subscriptionIdentifiersAvailable {
            throw .subscriptionIdentifiersAreNotAvailable
        }
        var requests: [MQTTSubscriptionRequest] = []
        for key in keys {
            guard let record = filters.records[key], case .options(let wanted) = record.wanted else { continue }
            let request = MQTTSubscriptionRequest(
                filter: key.text, qos: min(wanted.qos, limits.maximumQoS), noLocal: wanted.noLocal,
                retainAsPublished: wanted.retainAsPublished,
                retainHandling: version.hasProperties ? record.nextHandling : record.handling)
            try check(request)
            requests.append(request)
        }
        try request(.subscribe, token: token, at: now) { id in
            .subscribe(.init(packetID: id, subscriptions: requests, properties: properties))
        }
    }

    mutating func unsubscribe(
        _ filters: [String], _ properties: MQTTProperties, token: UInt64, at now: Int64
    ) throws(MQTTUsageError) {
        try request(.unsubscribe, token: token, at: now) { id in
            .unsubscribe(.init(packetID: id, filters: filters, properties: properties))
        }
    }

    private func check(_ subscription: MQTTSubscriptionRequest) throws(MQTTUsageError) {
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
        _ kind: OutboundSlot.Kind, token: UInt64, at now: Int64, _ packet: (UInt16) -> MQTTPacket
    ) throws(MQTTUsageError) {
        guard let id = session.window.reserveID() else { throw .noPacketIdentifierIsFree }
        let bytes: [UInt8]
        do throws(MQTTUsageError) {
            bytes = try encode(packet(id))
        } catch {
            session.window.releaseID(id)
            throw error
        }
        let deadline = now.advanced(byNanoseconds: options.value.requestTimeout)
        session.window.recordRequest(id, kind, token: token, deadline: deadline, waiting: isCareful ? bytes : [])
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
        let token = session.window.slots[Int(index)].token
        if let expected = filters.requests[token]?.filters.count, suback.reasonCodes.count != expected {
            filters.asksSingly = true
            throw .wrongNumberOfCodes(suback.reasonCodes.count, filters: expected, clause: Self.clauseOfCodeCount)
        }
        noteAnswered(index)
        session.window.finishRequest(index)
        // Nil if it is late.
        if let request = filters.subscribeAnswered(token, suback.reasonCodes) {
            let isRefused = suback.reasonCodes.contains { $0.isError }
            let asksAgain = isRefused && options.value.subscribesAgainAfterRefusals
            effects.report(.subscribeCompleted(request, codes: suback.reasonCodes, properties: suback.properties))
            // A client that leaves waits for none.
            if asksAgain, request.comesFirst { missingReconciles += 1 }
            if request.comesFirst { releaseMessages(at: now, into: &effects) }
            if !asksAgain { writeDue(comesFirst: false, at: now, into: &effects) }
        }
        if isCareful { pump(at: now, into: &effects) }
    }

    mutating func receivedUnsuback(
        _ unsuback: MQTTPacket.Unsuback, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard let index = try slot(of: .unsubscribe, unsuback.packetID) else { return }
        let token = session.window.slots[Int(index)].token
        session.window.finishRequest(index)
        // Nil if it is late.
        if let request = filters.unsubscribeAnswered(token) {
            var codes = unsuback.reasonCodes
            let count = request.filters.count
            if version.hasProperties, codes.count != count {
                // UNSUBACK confirms the request, however many codes it has.
                codes = codes.prefix(count) + [MQTTReasonCode](repeating: .success, count: max(0, count - codes.count))
            }
            effects.report(.unsubscribeCompleted(request, codes: codes, properties: unsuback.properties))
            writeDue(comesFirst: false, at: now, into: &effects)
        }
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

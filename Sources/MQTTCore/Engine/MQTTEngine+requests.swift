// SUBSCRIBE and UNSUBSCRIBE of a client as packets, and their answers.

import MessagingWire

extension MQTTEngine {
    /// Appends a packet to the output. Returns its identifier, or nil if none is free.
    mutating func append(
        _ packet: FilterRecord.Packet, _ keys: [ByteKey], _ properties: MQTTProperties
    ) throws(MQTTUsageError) -> UInt16? {
        let subscriptions = packet == .subscribe ? try subscriptions(keys, properties) : []
        guard let id = session.window.reserveRequestID() else { return nil }
        do throws(MQTTUsageError) {
            switch packet {
            case .subscribe:
                try write(.subscribe(.init(packetID: id, subscriptions: subscriptions, properties: properties)))
            case .unsubscribe:
                try write(.unsubscribe(.init(packetID: id, filters: keys.map { $0.text }, properties: properties)))
            }
            return id
        } catch {
            session.window.releaseRequestID(id)
            throw error
        }
    }

    private func subscriptions(
        _ keys: [ByteKey], _ properties: MQTTProperties
    ) throws(MQTTUsageError) -> [MQTTSubscriptionRequest] {
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
        return requests
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

    // MARK: Answers

    mutating func receivedSuback(
        _ suback: MQTTPacket.Suback, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard var request = try request(of: .subscribe, suback.packetID) else { return pump(at: now, into: &effects) }
        let codes = suback.reasonCodes
        guard codes.count == request.filters.count else {
            asksSingly = true
            throw .wrongNumberOfCodes(codes.count, filters: request.filters.count, clause: Self.clauseOfCodeCount)
        }
        noteAnswered(request)
        session.window.releaseRequestID(request.packetID)
        request.comesFirst = filters.comesFirst(request)
        filters.subscribeAnswered(request, codes)
        if codes.contains(where: { $0.isError }) { noteRefusal(comesFirst: request.comesFirst) }
        effects.report(.subscribeCompleted(request, codes: codes, properties: suback.properties))
        pump(at: now, into: &effects)
    }

    mutating func receivedUnsuback(
        _ unsuback: MQTTPacket.Unsuback, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard let request = try request(of: .unsubscribe, unsuback.packetID) else {
            return pump(at: now, into: &effects)
        }
        session.window.releaseRequestID(request.packetID)
        filters.unsubscribeAnswered(request)
        var codes = unsuback.reasonCodes
        let count = request.filters.count
        if version.hasProperties, codes.count != count {
            // UNSUBACK confirms the request, however many codes it has.
            codes = codes.prefix(count) + [MQTTReasonCode](repeating: .success, count: max(0, count - codes.count))
        }
        effects.report(.unsubscribeCompleted(request, codes: codes, properties: unsuback.properties))
        pump(at: now, into: &effects)
    }

    /// The clause that SUBACK breaks with another number of codes than SUBSCRIBE had filters.
    package static let clauseOfCodeCount = "MQTT-3.9.3-1"

    /// The request that an answer belongs to; nil if there is none, or the answer is late.
    private mutating func request(
        of packet: FilterRecord.Packet, _ id: UInt16
    ) throws(MQTTProtocolError) -> MQTTFilterRequest? {
        if let request = filters.requests[id], request.packet == packet { return request }
        if filters.lateAnswered(id, packet) {
            session.window.releaseRequestID(id)
            return nil
        }
        guard session.window.slot(of: id) == SendWindow.noSlot else {
            throw .identifierAwaitsAnother(id, than: packet == .subscribe ? .suback : .unsuback, clause: "MQTT-3.9.2")
        }
        return nil
    }
}

import MQTTCore
import MessagingWire

/// SUBSCRIBE and UNSUBSCRIBE.
extension MQTTJudgedConnection {
    mutating func judge(_ packet: MQTTPacket.Subscribe) {
        claim(packet.packetID)
        checkAvailable(packet)
        checkNeed(of: packet)
        let identifier = packet.properties.subscriptionIdentifiers.first
        for request in packet.subscriptions {
            let key = ByteKey(request.filter)
            // A filter that the server does not hold is asked for as it was before.
            if session.subscriptions[key] == nil, !hasBegun, let before = session.identifiers[key], before != identifier
            {
                broke(
                    .subscriptionIdentifierChanged,
                    "Its subscription identifier was \(before) before the session was lost.")
            }
            session.identifiers[key] = identifier
        }
        requests[packet.packetID] = .subscribe(packet)
    }

    mutating func judge(_ packet: MQTTPacket.Unsubscribe) {
        claim(packet.packetID)
        hasBegun = true
        requests[packet.packetID] = .unsubscribe(packet)
    }

    private mutating func claim(_ id: UInt16) {
        if requests[id] != nil {
            broke(.packetIdentifierInUse, "A request with this packet identifier has no answer.")
        } else if let exchange = session.exchanges[id], exchange.state != .answered {
            broke(.packetIdentifierInUse, "A message with this packet identifier is unanswered.")
        }
    }

    private mutating func checkAvailable(_ packet: MQTTPacket.Subscribe) {
        guard knowsAllowed else { return }
        let filters = packet.subscriptions.map(\.filter)
        let shared = filters.filter { MQTTTopicFilter.shared($0) != nil }
        if allowed.sharedSubscriptionAvailable == false, !shared.isEmpty {
            broke(.sharedUnavailable, "The server has no shared subscriptions.")
        }
        let hasWildcard = filters.contains { $0.utf8.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") } }
        if allowed.wildcardSubscriptionAvailable == false, hasWildcard {
            broke(.wildcardUnavailable, "The server has no wildcards.")
        }
        if allowed.subscriptionIdentifierAvailable == false, packet.properties.contains(.subscriptionIdentifier) {
            broke(.subscriptionIdentifierUnavailable, "The server has no subscription identifiers.")
        }
    }

    /// Whether it is the first thing that a client asks of a session that has all of it, although it has to know that.
    private mutating func checkNeed(of packet: MQTTPacket.Subscribe) {
        guard sessionPresent, !hasBegun, version != .v3_1 else { return }
        let identifier = packet.properties.subscriptionIdentifiers.first
        let isHeld = packet.subscriptions.allSatisfy { request in
            guard MQTTTopicFilter.shared(request.filter) == nil,
                let held = session.subscriptions[ByteKey(request.filter)]
            else { return false }
            var (asked, before) = (request, held.request)
            (asked.retainHandling, before.retainHandling) = (.sendAtSubscribe, .sendAtSubscribe)
            return held.isKnown && held.isGrantedWhole && held.identifier == identifier && asked == before
        }
        guard isHeld else { return }
        // Once it may have been the app.
        if session.askedNeedlessly, !asksNeedlessly {
            broke(
                .needlessSubscribe,
                "The session that the server has kept holds all of it, here as on the connection before.")
        }
        asksNeedlessly = true
    }

    mutating func answered(_ suback: MQTTPacket.Suback) {
        guard case .subscribe(let packet)? = requests.removeValue(forKey: suback.packetID) else { return }
        let identifier = packet.properties.subscriptionIdentifiers.first
        for (request, code) in zip(packet.subscriptions, suback.reasonCodes) where code.rawValue < 0x80 {
            session.subscriptions[ByteKey(request.filter)] = .init(
                request: request, identifier: identifier, isGrantedWhole: code.rawValue == request.qos.rawValue)
        }
    }

    mutating func answered(_ unsuback: MQTTPacket.Unsuback) {
        guard case .unsubscribe(let packet)? = requests.removeValue(forKey: unsuback.packetID) else { return }
        for filter in packet.filters {
            session.subscriptions[ByteKey(filter)] = nil
            session.identifiers[ByteKey(filter)] = nil
        }
    }
}

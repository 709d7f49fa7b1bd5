import MQTTCore
import MessagingWire
import Synchronization
import Transport

/// Answers what one MQTT client asks; on the loop's thread, with no lock held.
struct MQTTClientHandler {
    let hub: Hub
    let id: Router.ConnectionID
    let link: Link<MQTTServerMachine>
    let now: Int64

    /// Handles messages and events in the order of their arrival.
    func handle(_ effects: MQTTEffects, _ bytes: RawSpan) {
        var next = 0
        for event in effects.events {
            publish(next..<event.messagesBefore, of: effects, bytes)
            next = event.messagesBefore
            handle(event.kind)
        }
        publish(next..<effects.messages.count, of: effects, bytes)
    }

    private func handle(_ event: MQTTEngineEvent.Kind) {
        switch event {
        case .connectReceived(let connect): self.connect(connect)
        case .subscribeReceived(let packet): subscribe(packet)
        case .unsubscribeReceived(let packet): unsubscribe(packet)
        case .disconnectReceived(let packet):
            // Normal disconnection alone deletes the will [MQTT-3.14.4-3].
            ended(sendsWill: packet.reasonCode != .normalDisconnection, expiry: packet.properties.sessionExpiryInterval)
        case .connectionFailed: ended(sendsWill: true)
        default: break
        }
    }

    /// Takes the session out of the connection, which is over, and gives it back to the router.
    func ended(sendsWill: Bool, telling farewell: Farewell? = nil, expiry: UInt32? = nil) {
        guard let taken = link.perform({ $0.takeSession(telling: farewell, at: now) }) else { return }
        hub.route(at: now) { router, effects in
            router.closeSession(
                taken.session, kept: taken.kept, queue: taken.queue, sendsWill: sendsWill, expiry: expiry, at: now,
                into: &effects)
        }
    }

    // MARK: Messages

    private func publish(_ range: Range<Int>, of effects: MQTTEffects, _ bytes: RawSpan) {
        guard !range.isEmpty else { return }
        var (session, published) = link.perform { ($0.session, $0.published) }
        guard session >= 0 else { return }
        let records = effects.messages[range]
        hub.counters.add(.messagesIn, records.count)
        let faults = hub.currentFaults
        var reason: MQTTReasonCode?
        var unmatched: [UInt64] = []
        let processed = hub.route(at: now) { router, routed in
            var topic = ""
            for (index, record) in records.enumerated() {
                if index == 0 || !record.repeatsTopic { topic = effects.topic(of: record, in: bytes) }
                if faults.forbiddenTopics.contains(topic) { reason = .notAuthorized }
                if faults.refuses(topic) { reason = .topicNameInvalid }
                let size = topic.utf8.count + record.payload.count
                if published.exceeds(faults, adding: size, at: now) { reason = .messageRateTooHigh }
                if reason != nil { return records.prefix(index) }
                let message = Message(record, topic: topic, in: bytes, publisher: session, at: now)
                let isMatched = router.publish(message, at: now, into: &routed)
                if !isMatched, record.delivery > 0 { unmatched.append(record.delivery) }
            }
            return records
        }
        // QoS 0 has no token.
        if let last = processed.lazy.map(\.delivery).max(), last > 0 {
            link.perform { machine in
                machine.firstUnrouted = last + 1
                if faults.withholdsAcknowledgements { return }
                // Older versions have no reason codes.
                if machine.engine.version.hasProperties {
                    for delivery in unmatched {
                        machine.engine.markAcknowledged(delivery, reason: .noMatchingSubscribers, at: now)
                    }
                }
                machine.engine.acknowledgeAll(through: last, at: now)
            }
        }
        link.perform { $0.published = published }
        if let reason { forbid(reason) }
    }

    /// Ends the connection of a client that asked for something forbidden: before 5.0 without a packet.
    private func forbid(_ reason: MQTTReasonCode = .notAuthorized) {
        ended(sendsWill: true, telling: Farewell(reason: reason))
    }

    // MARK: Requests

    private func subscribe(_ packet: MQTTPacket.Subscribe) {
        let session = link.perform { $0.session }
        guard session >= 0 else { return }
        let faults = hub.currentFaults
        if packet.subscriptions.contains(where: { faults.forbiddenFilters.contains($0.filter) }) { return forbid() }
        if let maximum = faults.maximumFiltersPerSubscribe, packet.subscriptions.count > maximum { return forbid() }
        if packet.subscriptions.contains(where: {
            faults.refuses(MQTTTopicFilter.shared($0.filter)?.filter ?? $0.filter)
        }) {
            return forbid(.topicFilterInvalid)
        }
        if let maximum = faults.maximumSubscriptions {
            let filters = packet.subscriptions.map(\.filter)
            let count = hub.route(at: now) { router, _ in router.subscriptionCount(of: session, adding: filters) }
            guard count <= maximum else { return forbid(.quotaExceeded) }
        }
        if faults.ignoresQoS2Subscriptions, packet.subscriptions.contains(where: { $0.qos == .exactlyOnce }) { return }
        let highest = QoS(rawValue: min(2, faults.highestGrantedQoS, hub.options.limits.maximumQoS)) ?? .exactlyOnce
        let allowed = packet.subscriptions.map(\.filter).filter { !faults.refusedFilters.contains($0) }
        let excess = hub.route(at: now) { router, _ in router.filtersWithoutRoom(of: session, allowed) }
        var granted: [MQTTSubscriptionRequest] = []
        var codes: [MQTTReasonCode] = []
        for var request in packet.subscriptions {
            if faults.refusedFilters.contains(request.filter) {
                codes.append(.notAuthorized)
                continue
            }
            if excess.contains(ByteKey(request.filter)) {
                codes.append(.quotaExceeded)
                continue
            }
            request.qos = min(request.qos, highest)
            codes.append(MQTTReasonCode(rawValue: request.qos.rawValue))
            granted.append(request)
        }
        // SUBACK goes before what is retained.
        if !faults.withholdsAcknowledgements {
            link.perform { try? $0.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: now) }
        }
        let identifier = packet.properties.subscriptionIdentifiers.first ?? 0
        hub.route(at: now) { router, effects in
            for request in granted {
                router.subscribe(session, request, identifier: identifier, at: now, into: &effects)
            }
        }
    }

    private func unsubscribe(_ packet: MQTTPacket.Unsubscribe) {
        let session = link.perform { $0.session }
        guard session >= 0 else { return }
        let codes = hub.route(at: now) { router, _ in
            packet.filters.map { router.unsubscribe(session, $0) ? MQTTReasonCode.success : .noSubscriptionExisted }
        }
        guard !hub.withholdsAcknowledgements else { return }
        link.perform { try? $0.engine.acknowledgeUnsubscribe(packet.packetID, codes: codes, at: now) }
    }
}

extension MQTTClientHandler {
    /// Decides about CONNECT: who the client is, whether it may connect, and which session it gets.
    func connect(_ connect: MQTTPacket.Connect) {
        let faults = hub.currentFaults
        if faults.ignoresConnect { return }
        if faults.refusesConnections { return refuse(.serverUnavailable, "this broker refuses connections on purpose") }
        if connect.properties.authenticationMethod != nil {
            return refuse(.badAuthenticationMethod, "this broker does not support enhanced authentication")
        }
        guard hub.admits(user: connect.userName, password: connect.password) else {
            // Without a user name there is no bad user name or password.
            return refuse(
                connect.userName == nil ? .notAuthorized : .badUserNameOrPassword, "bad user name or password")
        }
        var properties = MQTTProperties()
        var clientID = connect.clientID
        if clientID.isEmpty {
            // 3.1 has no such thing, and later versions only without a session to come back to [MQTT-3.1.3-7].
            guard connect.version != .v3_1, connect.cleanStart || connect.version.hasProperties else {
                return refuse(.clientIdentifierNotValid, "a client identifier is required")
            }
            clientID = (faults.refusesAssignedIdentifiers ? Self.assignedPrefix : "loopback-") + "\(id)"
            properties.assignedClientIdentifier = clientID
        } else if faults.refusesAssignedIdentifiers, clientID.hasPrefix(Self.assignedPrefix) {
            return refuse(.clientIdentifierNotValid, "identifiers that begin with \(Self.assignedPrefix) are reserved")
        }
        let limits = hub.options.limits
        guard clientID.utf8.count <= limits.maximumClientIDBytes else {
            return refuse(
                .clientIdentifierNotValid, "the client identifier has more than \(limits.maximumClientIDBytes) bytes")
        }
        if let will = connect.will, will.qos.rawValue > limits.maximumQoS {
            return refuse(.qosNotSupported, "the QoS of the will is above \(limits.maximumQoS)")
        }
        if let will = connect.will, Message(will, publisher: -1, at: now).size > limits.maximumSessionBytes {
            return refuse(.quotaExceeded, "the will has more than \(limits.maximumSessionBytes) bytes")
        }
        let keepAlive = limits.keepAlive(asked: connect.keepAlive)
        if keepAlive != connect.keepAlive { properties.serverKeepAlive = keepAlive }
        takeOver(clientID)
        var expiry = connect.properties.sessionExpiryInterval ?? 0
        if !connect.version.hasProperties { expiry = connect.cleanStart ? 0 : .max }
        let opened = hub.route(at: now) { router, effects in
            router.openSession(
                clientID: clientID, connection: id, cleanStart: connect.cleanStart, expiry: expiry, will: connect.will,
                at: now, into: &effects)
        }
        guard let opened else {
            return refuse(.quotaExceeded, "\(hub.options.limits.maximumSessions) sessions are kept already")
        }
        let granted = hub.route(at: now) { router, _ in router.expiry(ofSession: opened.session) }
        // The client has to know when its session ends sooner or later than it asked for (MQTT 5.0 3.2.2.3.2).
        if connect.version.hasProperties, granted != expiry { properties.sessionExpiryInterval = granted }
        hub.setName(clientID, of: id)
        link.perform { $0.accept(opened, of: clientID, properties: properties, at: now) }
    }

    /// What identifiers begin with that the broker assigns, and does not accept.
    private static let assignedPrefix = "$GEN/"

    /// Ends another connection of the same client [MQTT-3.1.4-3].
    private func takeOver(_ clientID: String) {
        let other = hub.state.withLock { state in
            state.router.connection(of: clientID).flatMap { state.connections[$0] }
        }
        guard case .mqtt(let link, _)? = other else { return }
        MQTTClientHandler(hub: hub, id: id, link: link, now: now).ended(
            sendsWill: true, telling: Farewell(reason: .sessionTakenOver))
    }

    private func refuse(_ reason: MQTTReasonCode, _ words: String) {
        link.perform { $0.refuse(reason, reasonString: words, at: now) }
    }
}

package import MQTTCore
import MessagingWire

extension Router {
    /// Subscribes a session, or changes its subscription to the same filter [MQTT-3.8.4-3], and sends what is retained.
    package mutating func subscribe(
        _ session: Int, _ request: MQTTSubscriptionRequest, identifier: UInt32 = 0, at now: Int64,
        into effects: inout RouterEffects
    ) {
        guard let record = sessions[session] else { return }
        let subscription = HeldSubscription(
            qos: request.qos, noLocal: request.noLocal, retainAsPublished: request.retainAsPublished,
            identifier: identifier)
        let isNew = !record.filters.contains(ByteKey(request.filter))
        sessions[session]?.filters.insert(ByteKey(request.filter))
        forgetRoutes()
        if let shared = MQTTTopicFilter.shared(request.filter) {
            // Retained messages are not sent to shared subscriptions [MQTT 5.0 4.8.2].
            addMember(session, subscription, group: shared.name, filter: shared.filter)
            return
        }
        let list = makeList(request.filter)
        if let index = lists[list].subscribers.firstIndex(where: { $0.session == session }) {
            lists[list].subscribers[index].subscription = subscription
        } else {
            lists[list].subscribers.append((session, subscription))
        }
        switch request.retainHandling {
        case .doNotSend: return
        case .sendIfNew where !isNew: return
        default: sendRetained(to: session, request.filter, subscription, at: now, into: &effects)
        }
    }

    /// How many subscriptions a session has once it has these too.
    func subscriptionCount(of session: Int, adding filters: [String]) -> Int {
        (sessions[session]?.filters ?? []).union(filters.map { ByteKey($0) }).count
    }

    /// Ends a subscription; false if there was none.
    @discardableResult
    package mutating func unsubscribe(_ session: Int, _ filter: String) -> Bool {
        guard sessions[session]?.filters.remove(ByteKey(filter)) != nil else { return false }
        removeSubscription(filter, of: session)
        return true
    }

    mutating func removeSubscription(_ filter: String, of session: Int) {
        forgetRoutes()
        let shared = MQTTTopicFilter.shared(filter)
        let inner = shared?.filter ?? filter
        guard let list = filters.value(for: inner) else { return }
        if let shared {
            let group = lists[list].groups.firstIndex { $0.name.hasSameBytes(as: shared.name) }
            if let group {
                lists[list].groups[group].members.removeAll { $0.session == session }
                if lists[list].groups[group].members.isEmpty { lists[list].groups.remove(at: group) }
            }
        } else {
            lists[list].subscribers.removeAll { $0.session == session }
        }
        guard lists[list].isEmpty else { return }
        filters.remove(inner)
        lists[list].filter = ""
        freeLists.append(list)
    }

    private mutating func addMember(
        _ session: Int, _ subscription: HeldSubscription, group name: String, filter: String
    ) {
        let list = makeList(filter)
        let index = lists[list].groups.firstIndex { $0.name.hasSameBytes(as: name) }
        guard let index else {
            lists[list].groups.append(ShareGroup(name: name, members: [(session, subscription)]))
            return
        }
        if let member = lists[list].groups[index].members.firstIndex(where: { $0.session == session }) {
            lists[list].groups[index].members[member].subscription = subscription
        } else {
            lists[list].groups[index].members.append((session, subscription))
        }
    }

    private mutating func makeList(_ filter: String) -> Int {
        if let list = filters.value(for: filter) { return list }
        let list: Int
        if let free = freeLists.popLast() {
            list = free
            lists[list] = FilterList(filter: filter)
        } else {
            list = lists.count
            lists.append(FilterList(filter: filter))
        }
        filters.insert(list, for: filter)
        return list
    }

    // MARK: Retained messages

    mutating func retain(_ message: Message, into effects: inout RouterEffects) {
        let name = ByteKey(message.topic)
        // The one before is stale, whatever becomes of this one [MQTT-3.3.1-5].
        if let old = retained.removeValue(forKey: name) { retainedBytes -= old.size }
        // An empty payload clears the topic [MQTT-3.3.1-6].
        if message.payload.isEmpty { return }
        let bytes = retainedBytes + message.size
        guard bytes <= limits.maximumRetainedBytes, retained.count < limits.maximumRetainedMessages else {
            effects.dropped += 1
            return
        }
        retained[name] = message
        retainedBytes = bytes
    }

    private mutating func sendRetained(
        to session: Int, _ filter: String, _ subscription: HeldSubscription, at now: Int64,
        into effects: inout RouterEffects
    ) {
        guard let connection = sessions[session]?.connection else { return }
        let identifiers = subscription.identifier == 0 ? [] : [subscription.identifier]
        let matching = retained.filter {
            $0.value.expiry > now && MQTTTopicFilter.matches(filter, topic: $0.key.text)
        }
        for (_, message) in matching.sorted(by: { $0.key.text < $1.key.text }) {
            let item = OutgoingPublish(
                message: message, qos: min(message.qos, subscription.qos), retain: true, identifiers: identifiers)
            effects.publishes.append((connection, item))
        }
    }
}

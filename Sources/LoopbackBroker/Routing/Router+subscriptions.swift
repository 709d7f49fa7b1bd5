package import MQTTCore
import MessagingWire

extension Router {
    /// Subscribes a session, or changes its subscription to the same filter [MQTT-3.8.4-3], and sends what is retained.
    package mutating func subscribe(
        _ session: Int, _ request: MQTTSubscriptionRequest, identifier: UInt32 = 0, at now: Int64,
        into effects: inout RouterEffects
    ) {
        guard sessions[session] != nil else { return }
        let subscription = HeldSubscription(
            qos: request.qos, noLocal: request.noLocal, retainAsPublished: request.retainAsPublished,
            identifier: identifier)
        let isNew = sessions[session]?.filters.insert(ByteKey(request.filter)) == true
        forgetRoutes()
        if let shared = MQTTTopicFilter.shared(request.filter) {
            // Retained messages are not sent to shared subscriptions [MQTT 5.0 4.8.2].
            addMember(session, subscription, group: shared.name, filter: shared.filter)
            return
        }
        let list = makeList(request.filter)
        lists[list].subscribers.set(subscription, of: session)
        switch request.retainHandling {
        case .doNotSend: return
        case .sendIfNew where !isNew: return
        default: sendRetained(to: session, request.filter, subscription, at: now, into: &effects)
        }
    }

    /// How many subscriptions a session has once it has these too.
    func subscriptionCount(of session: Int, adding filters: [String]) -> Int {
        let held = sessions[session]?.filters.all ?? []
        return held.count + Set(filters.map { ByteKey($0) }).lazy.filter { !held.contains($0) }.count
    }

    /// The filters of a SUBSCRIBE that would exceed the bound on the session's bytes.
    func filtersWithoutRoom(of session: Int, _ filters: [String]) -> Set<ByteKey> {
        let held = sessions[session]?.filters ?? SessionFilters()
        var (bytes, added, excess) = (held.bytes, Set<ByteKey>(), Set<ByteKey>())
        for filter in filters.map({ ByteKey($0) }) where !held.all.contains(filter) && added.insert(filter).inserted {
            let size = SessionFilters.size(of: filter)
            if bytes + size > limits.maximumSessionBytes {
                excess.insert(filter)
            } else {
                bytes += size
            }
        }
        return excess
    }

    /// Ends a subscription; false if there was none.
    @discardableResult
    package mutating func unsubscribe(_ session: Int, _ filter: String) -> Bool {
        guard sessions[session]?.filters.remove(ByteKey(filter)) == true else { return false }
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
                lists[list].groups[group].members.remove(session)
                if lists[list].groups[group].members.isEmpty { lists[list].groups.remove(at: group) }
            }
        } else {
            lists[list].subscribers.remove(session)
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
            var group = ShareGroup(name: name)
            group.members.set(subscription, of: session)
            lists[list].groups.append(group)
            return
        }
        lists[list].groups[index].members.set(subscription, of: session)
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
        // The one before is stale, whatever becomes of this one [MQTT-3.3.1-5].
        retained.remove(message.topic)
        // An empty payload clears the topic [MQTT-3.3.1-6].
        if message.payload.isEmpty { return }
        guard retained.bytes + message.size <= limits.maximumRetainedBytes,
            retained.count < limits.maximumRetainedMessages
        else {
            effects.dropped += 1
            return
        }
        retained.insert(message)
    }

    private mutating func sendRetained(
        to session: Int, _ filter: String, _ subscription: HeldSubscription, at now: Int64,
        into effects: inout RouterEffects
    ) {
        guard let connection = sessions[session]?.connection else { return }
        let identifiers = subscription.identifier == 0 ? [] : [subscription.identifier]
        for message in retained.matching(filter) where message.expiry > now {
            let item = OutgoingPublish(
                message: message, qos: min(message.qos, subscription.qos), retain: true, identifiers: identifiers)
            effects.publishes.append((connection, item))
        }
    }
}

import MQTTCore
import MessagingWire

extension Router {
    /// Publishes a message to everybody who subscribed to its topic.
    ///
    /// - Returns: whether anybody did.
    @discardableResult
    package mutating func publish(_ message: Message, at now: Int64, into effects: inout RouterEffects) -> Bool {
        if message.isRetained { retain(message, into: &effects) }
        let route = route(of: message.topic)
        for target in route.targets {
            guard let terms = target.session == message.publisher ? target.ownTerms : target.terms else { continue }
            let item = OutgoingPublish(
                message: message, qos: min(message.qos, terms.qos),
                retain: message.isRetained && terms.retainAsPublished, identifiers: terms.identifiers)
            send(item, to: target.session, at: now, into: &effects)
        }
        for (list, group) in route.groups { publish(message, toGroup: group, of: list, at: now, into: &effects) }
        if !route.consumers.isEmpty { publish(message, toConsumers: route.consumers, at: now, into: &effects) }
        for queue in route.queues where queues[queue]?.selector?.accepts(message.stompHeaders) != false {
            enqueue(message, in: queue, at: now, into: &effects)
        }
        return !route.targets.isEmpty || !route.groups.isEmpty || !route.consumers.isEmpty || !route.queues.isEmpty
    }

    private mutating func publish(
        _ message: Message, toConsumers indexes: [Int], at now: Int64, into effects: inout RouterEffects
    ) {
        guard message.expiry > now else {
            effects.dropped += indexes.count
            return
        }
        nextMessage += 1
        let entry = QueuedMessage(message: message, number: nextMessage)
        for index in indexes {
            guard let consumer = consumers[index], consumer.accepts(message) else { continue }
            deliver(entry, to: index, from: nil, into: &effects)
        }
    }

    private mutating func publish(
        _ message: Message, toGroup group: Int, of list: Int, at now: Int64, into effects: inout RouterEffects
    ) {
        let members = lists[list].groups[group].members.all
        let start = lists[list].groups[group].cursor
        let turns = (0..<members.count).lazy.map { (start + $0) % members.count }
        // A member that is connected goes before one that is not [MQTT 5.0 4.8.2].
        guard let turn = turns.first(where: { sessions[members[$0].session]?.connection != nil }) ?? turns.first else {
            return
        }
        lists[list].groups[group].cursor = (turn + 1) % members.count
        let (session, subscription) = members[turn]
        let item = OutgoingPublish(
            message: message, qos: min(message.qos, subscription.qos),
            retain: message.isRetained && subscription.retainAsPublished,
            identifiers: subscription.identifier == 0 ? [] : [subscription.identifier])
        send(item, to: session, at: now, into: &effects)
    }

    /// To the connection of a session, or into its queue while it has none.
    private mutating func send(
        _ item: OutgoingPublish, to session: Int, at now: Int64, into effects: inout RouterEffects
    ) {
        if let connection = sessions[session]?.connection {
            effects.publishes.append((connection, item))
        } else if item.qos != .atMostOnce, sessions[session] != nil {
            sessions[session]?.queue.append(item)
            effects.dropped += sessions[session]?.queue.takeDropped() ?? 0
        }
    }

    private mutating func route(of topic: String) -> Route {
        let name = ByteKey(topic)
        if let known = routes[name] { return known }
        let made = makeRoute(topic)
        if routes.count >= Self.routeLimit { forgetRoutes() }
        routes[name] = made
        return made
    }

    /// One target for each session, whatever number of its subscriptions match.
    private func makeRoute(_ topic: String) -> Route {
        var route = Route()
        var targets: [Int: Int] = [:]
        let name = TopicNaming.exchanged(topic)
        route.consumers = topicConsumers.receivers(of: name)
        route.queues = topicQueues.receivers(of: name)
        for list in filters.matches(topic) {
            for (session, subscription) in lists[list].subscribers.all {
                let index: Int
                if let known = targets[session] {
                    index = known
                } else {
                    index = route.targets.count
                    targets[session] = index
                    route.targets.append(Route.Target(session: session))
                }
                route.targets[index].add(subscription)
            }
            for group in lists[list].groups.indices { route.groups.append((list, group)) }
        }
        return route
    }
}

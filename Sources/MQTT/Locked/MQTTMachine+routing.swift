import MQTTCore
import MessagingWire

/// Assigns received messages to their subscriptions; on the loop's thread (the router lives there) and under the link's
/// lock (the engine does).
extension MQTTMachine {
    /// Assigns the messages of one read to their subscriptions, and acknowledges those that may be acknowledged.
    mutating func route(_ bytes: RawSpan, into afterLock: MQTTAfterLock, at now: Int64) {
        guard let core else { return }
        let router = core.subscriptions.router
        afterLock.work.version = engine.version
        if router.selectsCopies {
            routeCopies(bytes, router, into: afterLock, at: now)
        } else if let route = soleRoute(bytes, router, afterLock) {
            afterLock.work.uniformRoute = route
            acknowledge(afterLock.work.effects, for: route, at: now)
        } else {
            routeEach(bytes, router, into: afterLock, at: now)
        }
        engine.writeAnswers(at: now)
    }

    /// The subscription that receives every message of this read, if there is only one: most reads are like that, and no
    /// list of messages is made for them. Otherwise `destinations` has the number of each message's destination.
    private func soleRoute(_ bytes: RawSpan, _ router: MQTTRouter, _ afterLock: MQTTAfterLock) -> MQTTRoute? {
        let effects = afterLock.work.effects
        if effects.topicChanges == 1 {
            let routes = router.routes(at: router.number(for: effects.messages[0], of: bytes, effects))
            if routes.count == 1 { return routes[0] }
        }
        router.findNumbers(effects, bytes, into: &afterLock.work.destinations)
        let numbers = afterLock.work.destinations
        guard numbers.allSatisfy({ $0 == numbers[0] }) else { return nil }
        let routes = router.routes(at: numbers[0])
        return routes.count == 1 ? routes[0] : nil
    }

    /// Acknowledges the messages of a read that one subscription receives.
    private mutating func acknowledge(_ effects: borrowing MQTTEffects, for route: MQTTRoute, at now: Int64) {
        guard let deliveries = effects.deliveries else { return }
        // No other subscription has any of them.
        if route.acknowledgement == .automatic, !route.isFull { return engine.acknowledge(deliveries, at: now) }
        // Its buffer is full, or its receiver acknowledges.
        for message in effects.messages where message.delivery != 0 {
            withheld.acknowledge(message.delivery, for: [route], &engine, at: now)
        }
    }

    /// Assigns messages for several subscriptions one by one.
    private mutating func routeEach(
        _ bytes: RawSpan, _ router: MQTTRouter, into afterLock: MQTTAfterLock, at now: Int64
    ) {
        let effects = afterLock.work.effects
        let destinations = afterLock.work.destinations
        for (index, number) in destinations.enumerated() {
            let routes = router.routes(at: number)
            for route in routes { afterLock.assign(UInt32(index), to: route) }
            let message = effects.messages[index]
            if message.delivery == 0 { continue }
            if routes.isEmpty {
                receiveUnmatched(message, of: bytes, effects, at: now, into: afterLock)
            } else {
                withheld.acknowledge(message.delivery, for: routes, &engine, at: now)
            }
        }
    }

    /// The same for a client to which the server may send messages that not all matching subscriptions get: delivers one
    /// of several copies, and no retained messages to a subscription that wants none.
    private mutating func routeCopies(
        _ bytes: RawSpan, _ router: MQTTRouter, into afterLock: MQTTAfterLock, at now: Int64
    ) {
        let effects = afterLock.work.effects
        for (index, message) in effects.messages.enumerated() {
            let number = router.number(for: message, of: bytes, effects)
            let matching = router.routes(at: number)
            var routes = matching
            let copies = router.copies(at: number)
            if !copies.isEmpty {
                let identifiers = message.decodeProperties(in: bytes).subscriptionIdentifiers
                routes.removeAll { route in copies.contains { $0.route === route && $0.isSurplus(identifiers) } }
            }
            if message.flags.isRetained, engine.version.hasProperties {
                let refusing = router.refusing(at: number)
                routes.removeAll { route in refusing.contains { $0 === route } }
            }
            for route in routes { afterLock.assign(UInt32(index), to: route) }
            guard message.delivery != 0 else { continue }
            if matching.isEmpty {
                receiveUnmatched(message, of: bytes, effects, at: now, into: afterLock)
            } else {
                withheld.acknowledge(message.delivery, for: routes, &engine, at: now)
            }
        }
    }

    private mutating func receiveUnmatched(
        _ message: MQTTMessageRecord, of bytes: RawSpan, _ effects: MQTTEffects, at now: Int64,
        into afterLock: MQTTAfterLock
    ) {
        let topic = effects.topic(of: message, in: bytes)
        afterLock.work.unmatched.add(unmatched.receive(message, of: bytes, topic: topic, &engine, at: now))
        flushRecords()
    }
}

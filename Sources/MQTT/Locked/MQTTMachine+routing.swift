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
        if let route = soleRoute(bytes, router, afterLock) {
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
        if effects.topicChanges == 1, !(router.selects && engine.version.hasProperties) {
            let routes = router.routes(at: router.number(for: effects.messages[0], of: bytes, effects, engine))
            if routes.count == 1 { return routes[0] }
        }
        router.findNumbers(effects, bytes, engine, into: &afterLock.work.destinations)
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
            if router.isUnmatched(number) {
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

import MQTTCore

extension MQTTMachine {
    /// Assigns the messages of one read to their subscriptions and acknowledges what may be.
    ///
    /// On the loop's thread (the router lives there) and under the lock (the engine does).
    mutating func route(_ bytes: RawSpan, into scratch: MQTTScratch, at now: Int64) {
        guard let core else { return }
        let router = core.router
        scratch.work.version = engine.version
        if routeTogether(router, scratch) { return }
        if router.selectsCopies { return routeCopies(bytes, router, into: scratch, at: now) }
        var lastTopic = UInt32.max
        var routes: [MQTTRoute] = []
        // Most reads bring messages for one subscription: no list of indexes is kept for that case.
        var uniform: MQTTRoute?
        var isUniform = true
        // Read out of the scratch once, not for each message.
        let messages = scratch.work.effects.messages
        for (index, record) in messages.enumerated() {
            if record.topic != lastTopic {
                lastTopic = record.topic
                router.prepare(
                    record.topic, generation: engine.topicGeneration(at: record.topic),
                    topic: engine.topic(at: record.topic))
                routes = router.routes(at: record.topic)
                if isUniform {
                    if routes.count == 1, index == 0 || routes[0] === uniform {
                        uniform = routes[0]
                    } else {
                        isUniform = false
                        if let uniform {
                            for earlier in 0..<index { scratch.assign(UInt32(earlier), to: uniform) }
                        }
                    }
                }
            }
            if !isUniform {
                for route in routes { scratch.assign(UInt32(index), to: route) }
            }
            if record.delivery != 0 {
                if routes.isEmpty, keepPolicy.value.isOn {
                    keep(record, of: bytes, topic: router.topic(at: record.topic), at: now, into: scratch)
                } else {
                    acknowledge(record.delivery, routes, at: now)
                }
            }
        }
        if isUniform { scratch.work.uniformRoute = uniform }
    }

    /// Assigns messages of one topic for one subscription, as most are, without a look at each of them; returns
    /// whether they are such.
    private func routeTogether(_ router: MQTTRouter, _ scratch: MQTTScratch) -> Bool {
        let lead = scratch.work.effects.lead
        guard lead.count == scratch.work.effects.messages.count else { return false }
        router.prepare(
            lead.topic, generation: engine.topicGeneration(at: lead.topic), topic: engine.topic(at: lead.topic))
        let routes = router.routes(at: lead.topic)
        guard routes.count == 1 else { return false }
        scratch.work.uniformRoute = routes[0]
        return true
    }

    /// Acknowledges at once unless a receiver wants to do it or has no room.
    mutating func acknowledge(_ delivery: UInt64, _ routes: [MQTTRoute], at now: Int64) {
        for route in routes {
            if route.acknowledgement == .manual { return }
            if route.isFull {
                withheld.append(MQTTWithheldMessage(delivery: delivery, routes: routes))
                return
            }
        }
        engine.acknowledge(delivery, at: now)
    }

    /// A receiver has caught up: acknowledges what waited for it.
    mutating func acknowledgeWithheld(at now: Int64) {
        withheld.removeAll { message in
            if message.routes.contains(where: { $0.isFull }) { return false }
            engine.acknowledge(message.delivery, at: now)
            return true
        }
        flushRecords()
    }
}

import MQTTCore

/// Assigns received messages to their subscriptions; on the loop's thread (the router lives there) and under the link's
/// lock (the engine does).
extension MQTTMachine {
    /// Assigns the messages of one read to their subscriptions, and acknowledges those that may be acknowledged.
    mutating func route(_ bytes: RawSpan, into scratch: MQTTScratch, at now: Int64) {
        guard let core else { return }
        let router = core.subscriptions.router
        scratch.work.version = engine.version
        if routeTogether(router, scratch) { return }
        if router.selectsCopies { return routeCopies(bytes, router, into: scratch, at: now) }
        var lastTopic = UInt32.max
        var routes: [MQTTRoute] = []
        // Most reads bring messages for one subscription: no list of indexes is made for that case.
        var uniform: MQTTRoute?
        var isUniform = true
        // Read out of the scratch once, not for each message.
        let messages = scratch.work.effects.messages
        for (index, record) in messages.enumerated() {
            if record.topic != lastTopic {
                lastTopic = record.topic
                prepare(record.topic, router)
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
                if routes.isEmpty, unmatched.isOn {
                    retain(record, of: bytes, router, at: now, into: scratch)
                } else {
                    withheld.acknowledge(record.delivery, for: routes, &engine, at: now)
                }
            }
        }
        if isUniform { scratch.work.uniformRoute = uniform }
    }

    /// Assigns messages of one topic for one subscription, the usual case, without checking each of them. Returns
    /// whether they are such.
    private func routeTogether(_ router: MQTTRouter, _ scratch: MQTTScratch) -> Bool {
        let lead = scratch.work.effects.lead
        guard lead.count == scratch.work.effects.messages.count else { return false }
        prepare(lead.topic, router)
        let routes = router.routes(at: lead.topic)
        guard routes.count == 1 else { return false }
        scratch.work.uniformRoute = routes[0]
        return true
    }

    /// The same for a client with a subscription that the server may send several copies of a message to: delivers one
    /// of them.
    private mutating func routeCopies(
        _ bytes: RawSpan, _ router: MQTTRouter, into scratch: MQTTScratch, at now: Int64
    ) {
        for (index, record) in scratch.work.effects.messages.enumerated() {
            prepare(record.topic, router)
            let matching = router.routes(at: record.topic)
            var routes = matching
            let copies = router.copies(at: record.topic)
            if !copies.isEmpty {
                let identifiers = record.decodeProperties(in: bytes).subscriptionIdentifiers
                routes.removeAll { route in copies.contains { $0.route === route && $0.isSurplus(identifiers) } }
            }
            for route in routes { scratch.assign(UInt32(index), to: route) }
            guard record.delivery != 0 else { continue }
            if matching.isEmpty, unmatched.isOn {
                retain(record, of: bytes, router, at: now, into: scratch)
            } else {
                withheld.acknowledge(record.delivery, for: routes, &engine, at: now)
            }
        }
    }

    /// Has the router look up a topic, unless it knows the routes already.
    @inline(__always)
    private func prepare(_ topic: UInt32, _ router: MQTTRouter) {
        router.prepare(topic, generation: engine.topicGeneration(at: topic), topic: engine.topic(at: topic))
    }

    private mutating func retain(
        _ record: MQTTMessageRecord, of bytes: RawSpan, _ router: MQTTRouter, at now: Int64, into scratch: MQTTScratch
    ) {
        let topic = router.topic(at: record.topic)
        scratch.work.unmatchedDrops += unmatched.retain(record, of: bytes, topic: topic, &engine, at: now)
        flushRecords()
    }
}

import MQTTCore

extension MQTTScratch {
    /// Hands the messages of one read to their subscriptions: one batch each.
    func deliver(_ bytes: RawSpan) {
        guard let core = work.core else { return }
        if let route = work.uniformRoute {
            var storage = pool.take()
            let topics = fill(&storage, of: bytes, core.router)
            hand(storage, topics, to: route, core)
            return
        }
        let router = core.router
        for route in work.touchedRoutes {
            for index in route.pending { work.selected.append(work.effects.messages[Int(index)]) }
            route.pending.removeAll(keepingCapacity: true)
            var storage = pool.take()
            var topics = BatchTopics()
            storage.fill(work.selected.span, of: bytes) { topics.local($0, router) }
            work.selected.removeAll(keepingCapacity: true)
            hand(storage, topics.names, to: route, core)
        }
    }

    /// Copies all messages out of the read buffer, into memory that was used before; returns their topics.
    private func fill(_ storage: inout MQTTBatchStorage, of bytes: RawSpan, _ router: MQTTRouter) -> [String] {
        let (messages, lead) = (work.effects.messages, work.effects.lead)
        if lead.count == messages.count {
            storage.fill(messages.span, of: bytes, payloadBytes: lead.payloadBytes)
            return [router.topic(at: lead.topic)]
        }
        var topics = BatchTopics()
        storage.fill(messages.span, of: bytes) { topics.local($0, router) }
        return topics.names
    }

    private func hand(_ storage: MQTTBatchStorage, _ topics: [String], to route: MQTTRoute, _ core: MQTTClientCore) {
        // Before anybody can have them.
        core.counters.received(storage.records.count)
        let batch = MQTTBatch(storage, topics: topics, version: work.version, core: core, route: route, pool: pool)
        for (index, queue) in route.queues.enumerated() {
            // Each receiver gets a batch of its own: what it drops is its own affair.
            switch queue.push(index == 0 ? batch : batch.copy()) {
            case .stored: break
            case .full where route.policy.overflow == .pauseReading: core.pauseReading(for: route)
            case .full, .refused: break
            }
            if queue.connectionIsFull { core.pauseReading() }
        }
    }
}

/// The topics of a batch, by numbers of its own.
private struct BatchTopics {
    private(set) var names: [String] = []
    private var numbers: [UInt32: UInt32] = [:]
    private var last = UInt32.max
    private var lastNumber: UInt32 = 0

    /// The batch's number for a number of the engine's.
    @inline(__always)
    mutating func local(_ topic: UInt32, _ router: MQTTRouter) -> UInt32 {
        if topic != last {
            last = topic
            lastNumber = number(topic, router)
        }
        return lastNumber
    }

    private mutating func number(_ topic: UInt32, _ router: MQTTRouter) -> UInt32 {
        if let known = numbers[topic] { return known }
        let number = UInt32(names.count)
        names.append(router.topic(at: topic))
        numbers[topic] = number
        return number
    }
}

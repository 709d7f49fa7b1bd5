import MQTTCore

extension MQTTScratch {
    /// Hands the messages of one read to their subscriptions: one batch each.
    func deliver(_ bytes: RawSpan) {
        if let route = uniformRoute {
            hand(effects.messages, of: bytes, to: route)
            return
        }
        for route in touchedRoutes {
            let records = route.pending.map { effects.messages[Int($0)] }
            route.pending.removeAll(keepingCapacity: true)
            hand(records, of: bytes, to: route)
        }
    }

    private func hand(_ records: [MQTTMessageRecord], of bytes: RawSpan, to route: MQTTRoute) {
        guard let core else { return }
        // Before anybody can have them.
        core.counters.received(records.count)
        for queue in route.queues {
            // Each receiver gets a batch of its own: what it drops is its own affair.
            let batch = makeBatch(records, of: bytes, core: core, route: route)
            switch queue.push(batch) {
            case .stored: break
            case .full where route.policy.overflow == .pauseReading: core.pauseReading(for: route)
            case .full, .refused: break
            }
        }
    }

    /// Copies what the records point at out of the read buffer.
    private func makeBatch(
        _ records: [MQTTMessageRecord], of bytes: RawSpan, core: MQTTClientCore, route: MQTTRoute
    ) -> MQTTBatch {
        let start = Int(records[0].propertiesStart)
        let end = records[records.count - 1].payload.upperBound
        var needed = 0
        for record in records { needed += record.payload.upperBound - Int(record.propertiesStart) }
        var topics: [String] = []
        var moved = records
        var copied: [UInt8]
        if needed * 2 >= end - start {
            // Mostly ours: one copy of the whole stretch, headers in between included.
            copied = bytes.extracting(start..<end).withUnsafeBytes { Array($0) }
            for index in moved.indices {
                moved[index].propertiesStart -= UInt32(start)
                moved[index].payloadStart -= UInt32(start)
            }
        } else {
            copied = []
            copied.reserveCapacity(needed)
            for index in moved.indices {
                let from = Int(moved[index].propertiesStart)
                let offset = UInt32(from - copied.count)
                bytes.extracting(from..<moved[index].payload.upperBound).withUnsafeBytes {
                    copied.append(contentsOf: $0)
                }
                // Both starts move by the same distance, which may be negative.
                moved[index].propertiesStart &-= offset
                moved[index].payloadStart &-= offset
            }
        }
        var lastTopic = UInt32.max
        var local: [UInt32: UInt32] = [:]
        var lastLocal: UInt32 = 0
        for index in moved.indices {
            let topic = moved[index].topic
            if topic != lastTopic {
                lastTopic = topic
                if let known = local[topic] {
                    lastLocal = known
                } else {
                    lastLocal = UInt32(topics.count)
                    topics.append(core.router.topic(at: topic))
                    local[topic] = lastLocal
                }
            }
            moved[index].topic = lastLocal
        }
        return MQTTBatch(bytes: copied, records: moved, topics: topics, version: version, core: core, route: route)
    }
}

import MQTTCore
import Messaging
import Transport
import Wire

extension MQTTMachine {
    /// Keeps a message that matches no subscription and acknowledges it once it is stored.
    mutating func keep(
        _ record: MQTTMessageRecord, of bytes: RawSpan, topic: String, at now: Int64, into scratch: MQTTScratch
    ) {
        let payload = bytes.extracting(record.payload).withUnsafeBytes { Array($0) }
        var properties = MQTTProperties()
        var deadline = now.advanced(byNanoseconds: keepPolicy.value.timeToLive.inNanoseconds)
        if !record.properties.isEmpty {
            properties = record.decodeProperties(in: bytes)
            properties.topicAlias = nil
            if let expiry = properties.messageExpiryInterval {
                deadline = min(deadline, now.advanced(byNanoseconds: Int64(expiry) * 1_000_000_000))
            }
        }
        let message = MQTTKeeper.Message(
            sequence: keeper.nextSequence(), topic: topic, properties: properties.publishBytes, payload: payload,
            flags: record.flags, packetID: record.packetID, deadline: deadline)
        let drops = keeper.expire(at: now) + keeper.add(message)
        if journal != nil {
            let wallClock = deadline.advanced(byNanoseconds: engine.configuration.wallClockOffset) / 1_000_000
            engine.acknowledge(
                record.delivery,
                storing: .kept(
                    sequence: message.sequence, packetID: record.packetID, topic: topic, payload: payload,
                    qos: record.qos, retain: record.isRetained, properties: properties, time: wallClock), at: now)
        } else {
            engine.acknowledge(record.delivery, at: now)
        }
        noteEnds(drops.map(\.sequence))
        scratch.work.keptDrops += drops
    }

    /// Takes out what is too old.
    mutating func expireKept(at now: Int64) -> [MQTTKeeper.Drop] {
        let drops = knownKeeper?.expire(at: now) ?? []
        noteEnds(drops.map(\.sequence))
        return drops
    }

    /// Tells the store what is kept no longer.
    mutating func noteEnds(_ sequences: [UInt64]) {
        guard journal != nil else { return }
        for sequence in sequences { engine.note(.keptFinished(sequence: sequence)) }
        flushRecords()
    }

    /// What an earlier process kept. Those that this one does not want to keep are given up.
    mutating func restoreKept(_ records: [MQTTStoreRecord], at now: Int64) -> [MQTTKeeper.Drop] {
        var drops: [MQTTKeeper.Drop] = []
        for case .kept(
            let sequence, let packetID, let topic, let payload, let qos, let retain, let properties, let time)
            in records
        {
            // The wall clock may have been set: nothing is kept for longer than this process would.
            let longest = max(0, keepPolicy.value.timeToLive.inNanoseconds)
            let present = now.advanced(byNanoseconds: engine.configuration.wallClockOffset) / 1_000_000
            let (left, isFar) = max(0, time).subtractingReportingOverflow(present)
            let nanoseconds = isFar || left > longest / 1_000_000 ? longest : max(0, left) * 1_000_000
            drops += keeper.add(
                MQTTKeeper.Message(
                    sequence: sequence, topic: topic, properties: properties.publishBytes, payload: payload,
                    flags: qos.rawValue << 1 | (retain ? 1 : 0), packetID: packetID,
                    deadline: now.advanced(byNanoseconds: nanoseconds)))
        }
        drops += knownKeeper?.expire(at: now) ?? []
        noteEnds(drops.map(\.sequence))
        return drops
    }
}

extension MQTTClientCore {
    /// Gives a new subscription what was kept for it; before anything that comes later, on the loop's thread.
    func handKept(to route: MQTTRoute) {
        let now = MonotonicClock.now
        let filters = route.requests.map { MQTTTopicFilter.shared($0.filter)?.filter ?? $0.filter }
        let (messages, drops) = link.perform { machine in
            let drops = machine.expireKept(at: now)
            return (
                machine.knownKeeper?.hand(to: route) { topic in
                    filters.isEmpty || filters.contains { MQTTTopicFilter.matches($0, topic: topic) }
                } ?? [], drops
            )
        }
        report(drops)
        guard !messages.isEmpty else { return }
        // Before anybody can have them.
        counters.received(messages.count)
        for queue in route.queues { _ = queue.push(batch(of: messages, for: route)) }
    }

    /// A subscription is made: what it got of kept messages is its own, unless it wants to acknowledge.
    func confirmKept(_ route: MQTTRoute) {
        guard route.acknowledgement == .automatic else { return }
        link.perform { machine in
            if let keeper = machine.knownKeeper { machine.noteEnds(keeper.confirm(route)) }
        }
    }

    func report(_ drops: [MQTTKeeper.Drop]) {
        for drop in drops { news.tell(.unmatchedMessageDropped(topic: drop.topic, reason: drop.reason)) }
    }

    private func batch(of messages: [MQTTKeeper.Message], for route: MQTTRoute) -> MQTTBatch {
        var bytes: [UInt8] = []
        var records: [MQTTMessageRecord] = []
        for message in messages {
            let start = bytes.count
            bytes += message.properties
            bytes += message.payload
            records.append(
                MQTTMessageRecord(
                    delivery: MQTTKeeper.deliveryBit | message.sequence, topic: UInt32(records.count),
                    propertiesStart: UInt32(start), payloadStart: UInt32(start + message.properties.count),
                    payloadCount: UInt32(message.payload.count), packetID: message.packetID, flags: message.flags))
        }
        var storage = MQTTBatchStorage()
        storage.fill(records.span, of: bytes.span.bytes) { $0 }
        return MQTTBatch(storage, topics: messages.map(\.topic), version: .v5_0, core: self, route: route)
    }
}

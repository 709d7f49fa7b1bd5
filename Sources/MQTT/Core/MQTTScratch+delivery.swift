import MQTTCore

extension MQTTScratch {
    /// Hands the messages of one read to their subscriptions: one batch each.
    func deliver(_ bytes: RawSpan) {
        if let route = uniformRoute {
            hand(bytes, to: route) { records in swap(&records, &self.effects.messages) }
            return
        }
        for route in touchedRoutes {
            hand(bytes, to: route) { records in
                for index in route.pending { records.append(self.effects.messages[Int(index)]) }
            }
            route.pending.removeAll(keepingCapacity: true)
        }
    }

    /// - Parameter fill: puts the records of the messages into an empty array; called once.
    private func hand(_ bytes: RawSpan, to route: MQTTRoute, _ fill: (inout [MQTTMessageRecord]) -> Void) {
        guard let core else { return }
        var storage = pool.take()
        storage.records.removeAll(keepingCapacity: true)
        fill(&storage.records)
        // Before anybody can have them.
        core.counters.received(storage.records.count)
        let batch = makeBatch(&storage, of: bytes, core: core, route: route)
        for (index, queue) in route.queues.enumerated() {
            // Each receiver gets a batch of its own: what it drops is its own affair.
            switch queue.push(index == 0 ? batch : batch.copy()) {
            case .stored: break
            case .full where route.policy.overflow == .pauseReading: core.pauseReading(for: route)
            case .full, .refused: break
            }
        }
    }

    /// Copies what the records point at out of the read buffer, into memory that was used before.
    ///
    /// - Parameter storage: changed where it is; taken apart, each of its arrays would be copied to be changed.
    private func makeBatch(
        _ storage: inout MQTTBatchPool.Storage, of bytes: RawSpan, core: MQTTClientCore, route: MQTTRoute
    ) -> MQTTBatch {
        let start = Int(storage.records[0].propertiesStart)
        let end = storage.records[storage.records.count - 1].payload.upperBound
        var topics = BatchTopics()
        var needed = 0
        let router = core.router
        var records = storage.records.mutableSpan
        for index in records.indices {
            needed += records[index].payload.upperBound - Int(records[index].propertiesStart)
            records[index].topic = topics.local(records[index].topic, router)
        }
        storage.bytes.removeAll(keepingCapacity: true)
        var base = 0
        if needed * 2 >= end - start {
            // Mostly ours: one copy of the whole stretch, headers in between included.
            base = start
            bytes.extracting(start..<end).withUnsafeBytes { storage.bytes.append(contentsOf: $0) }
        } else {
            storage.bytes.append(addingCapacity: needed) { output in pack(&storage.records, bytes, into: &output) }
        }
        return MQTTBatch(
            bytes: storage.bytes, base: base, records: storage.records, topics: topics.names, version: version,
            core: core, route: route, pool: pool)
    }
}

/// Copies what the records point at, one behind the other, and moves the records with it.
private func pack(_ records: inout [MQTTMessageRecord], _ bytes: RawSpan, into output: inout OutputSpan<UInt8>) {
    var records = records.mutableSpan
    output.withUnsafeMutableBufferPointer { target, initialized in
        bytes.withUnsafeBytes { source in
            for index in records.indices {
                let from = Int(records[index].propertiesStart)
                let count = records[index].payload.upperBound - from
                copy(UnsafeRawBufferPointer(rebasing: source[from..<from + count]), to: target, at: initialized)
                // Both starts move by the same distance, which may be negative.
                let distance = UInt32(truncatingIfNeeded: from - initialized)
                records[index].propertiesStart &-= distance
                records[index].payloadStart &-= distance
                initialized += count
            }
        }
    }
}

/// A call of `memcpy` costs more than copying a few words.
@inline(__always)
private func copy(_ source: UnsafeRawBufferPointer, to target: UnsafeMutableBufferPointer<UInt8>, at start: Int) {
    let count = source.count
    // What is written here, and where, was counted from the same records.
    precondition(count <= target.count - start)
    guard count > 0, let from = source.baseAddress, let base = target.baseAddress else { return }
    let to = UnsafeMutableRawPointer(base + start)
    guard count >= 8, count <= 64 else { return to.copyMemory(from: from, byteCount: count) }
    let last = count - 8
    var offset = 0
    while offset < last {
        to.storeBytes(
            of: from.loadUnaligned(fromByteOffset: offset, as: UInt64.self), toByteOffset: offset, as: UInt64.self)
        offset += 8
    }
    to.storeBytes(of: from.loadUnaligned(fromByteOffset: last, as: UInt64.self), toByteOffset: last, as: UInt64.self)
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

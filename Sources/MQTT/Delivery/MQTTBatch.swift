import MQTTCore
import Messaging

/// The messages that one read brought to one subscription: their records, and the bytes they point into.
@usableFromInline
final class MQTTBatch: DeliveryBatch, @unchecked Sendable {
    // Sendable because `records` and `gap` change only while the batch waits in a queue, under the queue's lock; once a
    // receiver has it, nothing changes any more. For the same reason exclusive access needs no check.

    @exclusivity(unchecked) @usableFromInline private(set) var bytes: [UInt8]
    /// What offsets of `records` count from: the place of `bytes` in what was read.
    @usableFromInline let base: Int
    /// `topic` is an index into `topics`.
    @exclusivity(unchecked) @usableFromInline private(set) var records: [MQTTMessageRecord]
    @usableFromInline let topics: [String]
    @usableFromInline let version: MQTTVersion
    /// Weak: a message that somebody keeps does not keep the connection.
    weak let core: MQTTClientCore?
    /// Whose messages they are.
    let route: MQTTRoute?
    /// How many messages were lost just before the first one.
    @exclusivity(unchecked) @usableFromInline private(set) var gap = 0
    private let pool: MQTTBatchPool?

    init(
        bytes: [UInt8], base: Int = 0, records: [MQTTMessageRecord], topics: [String], version: MQTTVersion,
        core: MQTTClientCore?, route: MQTTRoute? = nil, pool: MQTTBatchPool? = nil
    ) {
        self.bytes = bytes
        self.base = base
        self.records = records
        self.topics = topics
        self.pool = pool
        self.version = version
        self.core = core
        self.route = route
    }

    /// The same messages for another receiver, which may drop others of them.
    func copy() -> MQTTBatch {
        MQTTBatch(
            bytes: bytes, base: base, records: records, topics: topics, version: version, core: core, route: route)
    }

    deinit {
        guard let pool, MQTTBatchPool.keeps(bytes) else { return }
        var storage = MQTTBatchPool.Storage()
        swap(&storage.bytes, &bytes)
        swap(&storage.records, &records)
        pool.give(storage)
    }

    @usableFromInline var count: Int { records.count }

    var byteCount: Int { bytes.count + records.count * MemoryLayout<MQTTMessageRecord>.stride }

    func dropOldest(_ count: Int) -> Int {
        var left = count
        let before = records.count
        records.removeAll { record in
            // Messages of QoS 1 and 2 are acknowledged or will be: they must arrive.
            guard left > 0, record.delivery == 0 else { return false }
            left -= 1
            return true
        }
        return before - records.count
    }

    func noteGap(_ count: Int) {
        gap += count
    }
}

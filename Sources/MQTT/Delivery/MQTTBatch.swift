import MQTTCore
public import Messaging

/// The messages that one read brought to one subscription: their records, and the bytes they point into.
@usableFromInline
final class MQTTBatch: DeliveryBatch, @unchecked Sendable {
    // Sendable because records and `gap` change only while the batch waits in a queue, under the queue's lock; once a
    // receiver has it, nothing changes any more. For the same reason exclusive access needs no check.

    @safe @exclusivity(unchecked) @usableFromInline private(set) var bytes: [UInt8]
    /// `topic` is an index into `topics`.
    @safe @exclusivity(unchecked) @usableFromInline private(set) var records: [MQTTBatchRecord]
    @safe @exclusivity(unchecked) private var details: [MQTTBatchDetail]
    @usableFromInline let topics: [String]
    @usableFromInline let version: MQTTVersion
    /// Weak, so that a message that is kept does not keep the connection open.
    weak let core: MQTTClientCore?
    /// The subscription of the messages.
    let route: MQTTRoute?
    /// How many messages were lost just before the first one.
    @safe @exclusivity(unchecked) @usableFromInline private(set) var gap = 0
    private let pool: MQTTBatchPool?

    init(
        _ storage: MQTTBatchStorage, topics: [String], version: MQTTVersion, core: MQTTClientCore?,
        route: MQTTRoute? = nil, pool: MQTTBatchPool? = nil
    ) {
        bytes = storage.bytes
        records = storage.records
        details = storage.details
        self.topics = topics
        self.pool = pool
        self.version = version
        self.core = core
        self.route = route
    }

    /// The same messages for another receiver, so that dropping messages from one does not affect the other.
    func copy() -> MQTTBatch {
        MQTTBatch(storage, topics: topics, version: version, core: core, route: route)
    }

    private var storage: MQTTBatchStorage { MQTTBatchStorage(bytes: bytes, records: records, details: details) }

    deinit {
        guard let pool, MQTTBatchPool.keeps(bytes) else { return }
        var storage = MQTTBatchStorage()
        swap(&storage.bytes, &bytes)
        swap(&storage.records, &records)
        swap(&storage.details, &details)
        pool.give(storage)
    }

    @usableFromInline var count: Int { records.count }

    @inlinable subscript(index: Int) -> MQTTMessage { MQTTMessage(batch: self, index: index) }

    @usableFromInline var byteCount: Int { storage.count }

    func detail(at index: Int) -> MQTTBatchDetail { details.isEmpty ? .none : details[index] }

    /// The record as the engine made it, except that its offsets are into `bytes`.
    func message(at index: Int) -> MQTTMessageRecord {
        let (record, detail) = (records[index], detail(at: index))
        return MQTTMessageRecord(
            delivery: detail.delivery, topic: record.topic,
            propertiesStart: record.payloadStart - detail.propertiesCount, payloadStart: record.payloadStart,
            payloadCount: record.payloadCount, packetID: detail.packetID,
            flags: record.flags)
    }

    @usableFromInline
    func dropOldest(_ count: Int) -> Int {
        // Messages of QoS 1 and 2 are acknowledged or will be: they must arrive.
        var kept = 0
        var dropped = 0
        for index in records.indices {
            if dropped < count, detail(at: index).delivery == 0 {
                dropped += 1
                continue
            }
            records[kept] = records[index]
            if !details.isEmpty { details[kept] = details[index] }
            kept += 1
        }
        records.removeLast(dropped)
        if !details.isEmpty { details.removeLast(dropped) }
        return dropped
    }

    @usableFromInline func noteGap(_ count: Int) { gap += count }
}

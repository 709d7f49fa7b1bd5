import MQTTCore
public import Messaging

/// The messages that one read brought to one subscription: their records, and the bytes they point into.
@_documentation(visibility: internal)
public final class MQTTBatch: DeliveryBatch, @unchecked Sendable {
    // Sendable because records and `gap` change only while the batch waits in a queue, under the queue's lock; once a
    // receiver has it, nothing changes any more. For the same reason exclusive access needs no check.

    /// A constant, because reading it then changes no reference count.
    @usableFromInline let bytes: [UInt8]
    /// Their offsets are into `bytes`.
    @safe @exclusivity(unchecked) @usableFromInline private(set) var records: [MQTTMessageRecord]
    /// The topics of messages that came with a topic alias instead.
    private let aliasTopics: [UInt8]
    /// The topic of all messages, if they have one: made once rather than for each of them.
    @usableFromInline let commonTopic: String?
    let version: MQTTVersion
    /// Weak, so that a message that is kept does not keep the connection open.
    weak let core: MQTTClientCore?
    /// The subscription of the messages.
    let route: MQTTRoute?
    /// How many messages were lost just before the first one.
    @safe @exclusivity(unchecked) @usableFromInline package var gap = 0
    private let pool: MQTTBatchPool?

    init(
        _ storage: MQTTBatchStorage, aliasTopics: [UInt8] = [], commonTopic: String? = nil, version: MQTTVersion,
        core: MQTTClientCore?, route: MQTTRoute? = nil, pool: MQTTBatchPool? = nil
    ) {
        bytes = storage.bytes
        records = storage.records
        self.aliasTopics = aliasTopics
        self.commonTopic = commonTopic
        self.pool = pool
        self.version = version
        self.core = core
        self.route = route
    }

    /// The same messages for another receiver, so that dropping messages from one does not affect the other.
    func copy() -> MQTTBatch {
        MQTTBatch(
            storage, aliasTopics: aliasTopics, commonTopic: commonTopic, version: version, core: core, route: route)
    }

    private var storage: MQTTBatchStorage { MQTTBatchStorage(bytes: bytes, records: records) }

    deinit {
        // Once this has returned, the pool has the only reference. A batch that takes the storage before that finds it
        // shared and gets other memory, because arrays are values.
        if let pool, MQTTBatchPool.keeps(bytes) { pool.give(storage) }
    }

    /// Messages that are still here.
    public var count: Int { records.count }

    /// The message at a place from 0 to `count`.
    @inlinable public subscript(index: Int) -> MQTTMessage { MQTTMessage(batch: self, index: index) }

    @usableFromInline package var byteCount: Int { storage.count + aliasTopics.count }

    /// The topic of a message; made for each call unless all messages have one topic.
    @inlinable
    func topic(at index: Int) -> String { commonTopic ?? makeTopic(at: index) }

    @usableFromInline
    func makeTopic(at index: Int) -> String {
        let record = records[index]
        // Constants that are read in place: one variable for both would cost a counted reference. The bytes of an array of
        // bytes: nothing to reinterpret.
        if record.isTopicAliased {
            let source = aliasTopics
            return unsafe record.topicName(in: source.span.bytes)
        }
        let source = bytes
        return unsafe record.topicName(in: source.span.bytes)
    }

    /// The bytes of a message's topic, without a copy.
    @usableFromInline
    func topicBytes(at index: Int) -> ArraySlice<UInt8> {
        let record = records[index]
        return record.isTopicAliased ? aliasTopics[record.topic] : bytes[record.topic]
    }

    @usableFromInline
    package func dropOldest(_ count: Int) -> Int {
        // Messages of QoS 1 and 2 are acknowledged or will be: they must arrive.
        var kept = 0
        var dropped = 0
        for index in records.indices {
            if dropped < count, records[index].delivery == 0 {
                dropped += 1
                continue
            }
            records[kept] = records[index]
            kept += 1
        }
        records.removeLast(dropped)
        return dropped
    }
}

import MQTTCore
public import MessagingShell
import MessagingWire
public import Synchronization

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
    @usableFromInline let leased = Atomic(DeliveryPlace())

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

    /// A batch of one of the messages, with another payload.
    func with(_ payload: [UInt8], at index: Int) -> MQTTBatch {
        let record = records[index]
        var moved = record.moved(to: 0)
        moved.payloadCount = UInt32(clamping: payload.count)
        let head = bytes[record.range.lowerBound..<Int(record.payloadStart)]
        let batch = MQTTBatch(
            MQTTBatchStorage(bytes: head + payload, records: [moved]), aliasTopics: aliasTopics, version: version,
            core: core, route: route)
        if index == 0 { batch.gap = gap }
        return batch
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

    @inlinable public var place: DeliveryPlace { leased.load(ordering: .relaxed) }

    @inlinable
    public func move(from old: DeliveryPlace, to new: DeliveryPlace) -> Bool {
        leased.compareExchange(expected: old, desired: new, ordering: .relaxed).exchanged
    }

    @usableFromInline package var byteCount: Int { storage.memory + aliasTopics.count }

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

typealias MQTTBatchStorage = BatchStorage<MQTTMessageRecord>
typealias MQTTBatchPool = BatchPool<MQTTMessageRecord>

extension MQTTBatchStorage {
    /// Fills empty storage with all messages of a read, whose records it takes out of the effects.
    mutating func takeAll(_ effects: inout MQTTEffects, of source: RawSpan) {
        let messages = effects.messages
        guard let last = messages.last else { return }
        let end = last.range.upperBound
        if effects.messageBytes < end / 2 {
            // The bytes between the messages would take more room than the messages.
            let places = Array(0..<UInt32(messages.count))
            fill(messages.span, places.span, of: source)
        } else {
            // Copying all bytes at once costs less than copying each message, and the records need no change.
            source.extracting(0..<end).append(to: &bytes)
            if messages.capacity / 4 <= messages.count {
                swap(&records, &effects.messages)
            } else {
                // Few messages must not keep the records of the many that an earlier read brought.
                records.append(contentsOf: messages)
            }
        }
    }

    /// Fills empty storage with the messages at some places of a read.
    mutating func fill(_ messages: Span<MQTTMessageRecord>, _ places: Span<UInt32>, of source: RawSpan) {
        records.reserveCapacity(places.count)
        var byteCount = 0
        for index in places.indices {
            let message = messages[Int(places[index])]
            records.append(message.moved(to: byteCount))
            byteCount += message.range.count
        }
        bytes.append(addingCapacity: byteCount) { output in
            for index in places.indices {
                output.append(copying: source.extracting(messages[Int(places[index])].range))
            }
        }
    }
}

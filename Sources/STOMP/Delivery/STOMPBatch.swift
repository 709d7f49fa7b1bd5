public import MessagingShell
import MessagingWire
import STOMPCore
public import Synchronization
import Transport

/// The messages that one read brought to one subscription: their records, and the bytes they point into.
@_documentation(visibility: internal)
public final class STOMPBatch: DeliveryBatch, @unchecked Sendable {
    // Sendable because `records` and `gap` change only while the batch waits in a queue, under the queue's lock;
    // once a receiver has it, nothing changes any more. For the same reason exclusive access needs no check.

    @safe @exclusivity(unchecked) @usableFromInline private(set) var records: [STOMPMessageRecord]
    /// Offsets of `records` are into these bytes.
    @usableFromInline let bytes: [UInt8]
    let version: STOMPVersion
    /// The engine's number of the connection that the messages came over.
    let connection: UInt32
    let route: STOMPRoute
    /// The number of the first message in its subscription, if its messages are acknowledged; nil if they are not, and if
    /// the subscription ended.
    let firstNumber: UInt64?
    /// Weak, so that a message that is kept does not keep the connection open.
    weak let core: STOMPClientCore?
    @safe @exclusivity(unchecked) @usableFromInline package var gap = 0
    @usableFromInline let leased = Atomic(DeliveryPlace())
    private let pool: BatchPool<STOMPMessageRecord>

    init(
        _ storage: BatchStorage<STOMPMessageRecord>, version: STOMPVersion, connection: UInt32, route: STOMPRoute,
        firstNumber: UInt64?, core: STOMPClientCore?, pool: BatchPool<STOMPMessageRecord>
    ) {
        records = storage.records
        bytes = storage.bytes
        self.version = version
        self.connection = connection
        self.route = route
        self.firstNumber = firstNumber
        self.core = core
        self.pool = pool
    }

    deinit {
        // A batch that takes the memory while this still has it gets other memory, because arrays are values.
        if BatchPool<STOMPMessageRecord>.keeps(bytes) { pool.give(BatchStorage(bytes: bytes, records: records)) }
    }

    /// Which message of its subscription the message at a place is. Right for every place, because messages that are
    /// acknowledged are not dropped.
    func number(at index: Int) -> STOMPMessageNumber? {
        firstNumber.map { STOMPMessageNumber(subscription: route.token, number: $0 + UInt64(index)) }
    }

    @inlinable public var place: DeliveryPlace { leased.load(ordering: .relaxed) }

    @inlinable
    public func move(from old: DeliveryPlace, to new: DeliveryPlace) -> Bool {
        leased.compareExchange(expected: old, desired: new, ordering: .relaxed).exchanged
    }

    /// A batch of one of the messages, with another body.
    func with(_ body: [UInt8], at index: Int) -> STOMPBatch {
        let record = records[index]
        let head = bytes[record.frame.lowerBound..<record.body.lowerBound]
        let batch = STOMPBatch(
            BatchStorage(bytes: head + body + [0], records: [record.alone(bodyCount: body.count)]), version: version,
            connection: connection, route: route, firstNumber: firstNumber.map { $0 + UInt64(index) }, core: core,
            pool: pool)
        if index == 0 { batch.gap = gap }
        return batch
    }

    /// Messages that are still here.
    public var count: Int { records.count }

    /// The message at a place from 0 to `count`.
    @inlinable public subscript(index: Int) -> STOMPMessage { STOMPMessage(batch: self, index: index) }

    @usableFromInline package var byteCount: Int { BatchStorage(bytes: bytes, records: records).memory }

    @usableFromInline
    package func dropOldest(_ count: Int) -> Int {
        // Messages that their receiver acknowledges are not dropped: the broker's prefetch bounds them.
        guard route.acknowledgement == .auto else { return 0 }
        let dropped = min(count, records.count)
        records.removeFirst(dropped)
        return dropped
    }
}

extension STOMPBatch {
    /// The text of a header.
    func text(in range: Range<Int>) -> String {
        let bytes = bytes
        return unsafe STOMPHeaderReader(version: version).string(in: bytes.span.bytes, range)
    }
}

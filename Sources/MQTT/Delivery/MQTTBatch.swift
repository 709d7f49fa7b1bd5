import MQTTCore
import Messaging

/// The messages that one read brought to one subscription: their records, and the bytes they point into.
@usableFromInline
final class MQTTBatch: DeliveryBatch, @unchecked Sendable {
    // Sendable because `first`, `dropped` and `gap` change only while the batch waits in a queue, under the queue's
    // lock; once a receiver has it, nothing changes any more.

    /// Offsets of `records` are into these bytes.
    @usableFromInline let bytes: [UInt8]
    /// `topic` is an index into `topics`.
    @usableFromInline private(set) var records: [MQTTMessageRecord]
    @usableFromInline let topics: [String]
    @usableFromInline let version: MQTTVersion
    /// Weak: a message that somebody keeps does not keep the connection.
    weak let core: MQTTClientCore?
    /// Whose messages they are.
    let route: MQTTRoute?
    /// How many messages were lost just before the first one.
    @usableFromInline private(set) var gap = 0

    init(
        bytes: [UInt8], records: [MQTTMessageRecord], topics: [String], version: MQTTVersion, core: MQTTClientCore?,
        route: MQTTRoute? = nil
    ) {
        self.bytes = bytes
        self.records = records
        self.topics = topics
        self.version = version
        self.core = core
        self.route = route
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

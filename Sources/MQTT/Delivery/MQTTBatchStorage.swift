import MQTTCore
import Synchronization
import Transport

/// The memory of a batch: the bytes of its messages, and a record of each. On the loop's thread until a batch has it.
struct MQTTBatchStorage {
    var bytes: [UInt8] = []
    var records: [MQTTBatchRecord] = []
    /// As many as there are records, or none if all messages are plain.
    var details: [MQTTBatchDetail] = []

    /// The memory that its contents take, in bytes.
    var count: Int {
        bytes.count + records.count * MemoryLayout<MQTTBatchRecord>.stride
            + details.count * MemoryLayout<MQTTBatchDetail>.stride
    }

    var capacity: Int {
        bytes.capacity + records.capacity * MemoryLayout<MQTTBatchRecord>.stride
            + details.capacity * MemoryLayout<MQTTBatchDetail>.stride
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        records.removeAll(keepingCapacity: true)
        details.removeAll(keepingCapacity: true)
    }

    /// Fills empty storage with messages, whatever they are.
    ///
    /// - Parameter topic: the batch's number for a number of the engine's.
    mutating func fill(_ messages: Span<MQTTMessageRecord>, of source: RawSpan, topic: (UInt32) -> UInt32) {
        var byteCount = 0
        var arePlain = true
        for index in messages.indices {
            let message = messages[index]
            byteCount += message.payload.upperBound - Int(message.propertiesStart)
            if message.delivery != 0 || !message.properties.isEmpty { arePlain = false }
        }
        fill(messages, of: source, byteCount: byteCount, arePlain: false)
        var records = records.mutableSpan
        for index in records.indices { records[index].topic = topic(records[index].topic) }
        if arePlain { return }
        details.reserveCapacity(messages.count)
        for index in messages.indices { details.append(MQTTBatchDetail(messages[index])) }
    }

    /// Fills empty storage with plain messages of one topic: the hot path.
    ///
    /// - Parameter payloadBytes: the sum of their payloads, or more.
    mutating func fill(_ messages: Span<MQTTMessageRecord>, of source: RawSpan, payloadBytes: Int) {
        fill(messages, of: source, byteCount: payloadBytes, arePlain: true)
    }

    private mutating func fill(
        _ messages: Span<MQTTMessageRecord>, of source: RawSpan, byteCount: Int, arePlain: Bool
    ) {
        let spare = MemoryLayout<Piece>.size
        records.append(addingCapacity: messages.count) { records in
            bytes.append(addingCapacity: byteCount + spare) { output in
                unsafe output.withUnsafeMutableBufferPointer { target, used in
                    unsafe source.withUnsafeBytes { source in
                        let target = UnsafeMutableRawBufferPointer(target)
                        used =
                            unsafe arePlain
                            ? packPlain(messages, source, target, &records)
                            : packAny(messages, source, target, &records)
                    }
                }
            }
        }
    }
}

/// What every receiver reads of a message of a batch. Plain data of 16 bytes: a batch of plain messages has nothing else for
/// each of them.
@usableFromInline
struct MQTTBatchRecord: Sendable {
    /// Where the payload starts in the bytes of the batch.
    @usableFromInline let payloadStart: UInt32
    @usableFromInline let payloadCount: UInt32
    /// The index into the topics of the batch.
    @usableFromInline var topic: UInt32
    /// DUP, QoS and RETAIN.
    @usableFromInline let flags: MQTTPublishFlags

    @inline(__always)
    init(payloadStart: UInt32, payloadCount: UInt32, topic: UInt32, flags: MQTTPublishFlags) {
        self.payloadStart = payloadStart
        self.payloadCount = payloadCount
        self.topic = topic
        self.flags = flags
    }
}

/// What messages of QoS 1 and 2 and messages with properties have in addition.
struct MQTTBatchDetail: Sendable {
    /// The token to acknowledge the message with; 0 for QoS 0.
    let delivery: UInt64
    /// How long the properties are, which end where the payload starts.
    let propertiesCount: UInt32
    let packetID: UInt16

    static let none = MQTTBatchDetail()

    private init() {
        (delivery, propertiesCount, packetID) = (0, 0, 0)
    }

    init(_ message: MQTTMessageRecord) {
        delivery = message.delivery
        propertiesCount = UInt32(truncatingIfNeeded: message.properties.count)
        packetID = message.packetID
    }
}

/// Memory of large batches that were released, for later ones: allocating and freeing memory for every read costs more than
/// parsing what was read. From any thread.
///
/// There is one for each loop, of 4 MiB at most, which is freed when a connection of the loop has nothing to do.
final class MQTTBatchPool: Sendable {
    private struct State {
        var kept: [MQTTBatchStorage] = []
        var size = 0
    }

    private let state = Lock(State())
    private static let limit = 4 << 20

    /// Small ones are reused by malloc itself, very large ones would leave no room for others.
    static func keeps(_ bytes: [UInt8]) -> Bool { bytes.capacity >= 16 << 10 && bytes.capacity <= 1 << 20 }

    /// Empty storage.
    func take() -> MQTTBatchStorage {
        var storage = state.withLock { state in
            guard let storage = state.kept.popLast() else { return MQTTBatchStorage() }
            state.size -= storage.capacity
            return storage
        }
        storage.removeAll()
        return storage
    }

    /// Takes memory back. If a slice of it is still in use, the next batch gets other memory, because arrays are values.
    func give(_ storage: consuming MQTTBatchStorage) {
        let storage = storage
        state.withLock { state in
            guard state.size + storage.capacity <= Self.limit else { return }
            state.size += storage.capacity
            state.kept.append(storage)
        }
    }

    /// Frees all memory.
    func trim() {
        let dropped = state.withLock { state in
            defer { state = State() }
            return state.kept
        }
        withExtendedLifetime(dropped) {}
    }
}

/// The bytes that are copied at once if there is room for all of them: a call of `memcpy` costs more than copying a few bytes
/// too many.
private typealias Piece = SIMD32<UInt8>

/// Copies the properties and payloads of messages one behind the other, with a record for each; returns the number of
/// bytes.
private func packAny(
    _ messages: Span<MQTTMessageRecord>, _ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer,
    _ records: inout OutputSpan<MQTTBatchRecord>
) -> Int {
    unsafe pack(messages, source, target, &records, arePlain: false)
}

/// The same for messages without properties that all have the batch's first topic.
private func packPlain(
    _ messages: Span<MQTTMessageRecord>, _ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer,
    _ records: inout OutputSpan<MQTTBatchRecord>
) -> Int {
    unsafe pack(messages, source, target, &records, arePlain: true)
}

@inline(__always)
private func pack(
    _ messages: Span<MQTTMessageRecord>, _ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer,
    _ records: inout OutputSpan<MQTTBatchRecord>, arePlain: Bool
) -> Int {
    guard let from = source.baseAddress, let to = target.baseAddress else { return 0 }
    var used = 0
    for index in messages.indices {
        let message = messages[index]
        let propertiesCount = arePlain ? 0 : Int(message.payloadStart) &- Int(message.propertiesStart)
        let start = Int(message.payloadStart) &- propertiesCount
        let count = propertiesCount &+ Int(message.payloadCount)
        // The engine's ranges are within the bytes that it read, and the room was counted from the same records.
        precondition(propertiesCount >= 0 && count <= source.count &- start && count <= target.count &- used)
        records.append(
            MQTTBatchRecord(
                payloadStart: UInt32(truncatingIfNeeded: used &+ propertiesCount), payloadCount: message.payloadCount,
                topic: arePlain ? 0 : message.topic, flags: message.flags))
        let size = MemoryLayout<Piece>.size
        if count <= size, size <= source.count &- start, size <= target.count &- used {
            unsafe to.storeBytes(
                of: from.loadUnaligned(fromByteOffset: start, as: Piece.self), toByteOffset: used, as: Piece.self)
        } else if count > 0 {
            unsafe (to + used).copyMemory(from: from + start, byteCount: count)
        }
        used &+= count
    }
    return used
}

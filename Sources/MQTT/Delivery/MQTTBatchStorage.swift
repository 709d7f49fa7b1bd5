import MQTTCore

/// The memory of a batch: what its messages point into, and what is known of each.
struct MQTTBatchStorage {
    var bytes: [UInt8] = []
    var records: [MQTTBatchRecord] = []
    /// As many as there are records, or none if all messages are plain.
    var details: [MQTTBatchDetail] = []

    /// What it keeps, in bytes.
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

/// What is moved at once, if there is room for all of it: a call of `memcpy` costs more than a few words too many.
private typealias Piece = SIMD32<UInt8>

/// Copies what records point at, one behind the other, and notes where it is; returns how many bytes they are together.
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
        // The engine's ranges lie in what it read, and the room was counted from the same records.
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

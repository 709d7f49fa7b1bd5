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

    /// Appends a message with its properties and payload, which are copied.
    mutating func append(_ message: MQTTMessageRecord, of source: RawSpan, topic: UInt32) {
        let properties = message.properties
        if message.delivery != 0 || !properties.isEmpty || !details.isEmpty {
            while details.count < records.count { details.append(.none) }
            details.append(
                MQTTBatchDetail(
                    delivery: message.delivery, propertiesCount: UInt32(truncatingIfNeeded: properties.count),
                    packetID: message.packetID))
        }
        records.append(
            MQTTBatchRecord(
                payloadStart: UInt32(truncatingIfNeeded: bytes.count + properties.count),
                payloadCount: message.payloadCount, topic: topic, flags: message.flags))
        source.extracting(properties.lowerBound..<message.payload.upperBound).withUnsafeBytes {
            bytes.append(contentsOf: $0)
        }
    }

    /// Fills empty storage with plain messages of one topic: the hot path.
    ///
    /// - Parameter payloadBytes: the sum of their payloads, or more.
    mutating func fill(_ messages: Span<MQTTMessageRecord>, of source: RawSpan, payloadBytes: Int) {
        let spare = MemoryLayout<Piece>.size
        records.append(addingCapacity: messages.count) { records in
            bytes.append(addingCapacity: payloadBytes + spare) { output in
                output.withUnsafeMutableBufferPointer { target, used in
                    source.withUnsafeBytes { source in
                        used = pack(messages, source, into: UnsafeMutableRawBufferPointer(target), &records)
                    }
                }
            }
        }
    }
}

/// What is moved at once, if there is room for all of it: a call of `memcpy` costs more than a few words too many.
private typealias Piece = SIMD32<UInt8>

/// Copies payloads one behind the other and notes where they are; returns how many bytes they have together.
private func pack(
    _ messages: Span<MQTTMessageRecord>, _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer,
    _ records: inout OutputSpan<MQTTBatchRecord>
) -> Int {
    guard let from = source.baseAddress, let to = target.baseAddress else { return 0 }
    var used = 0
    for index in messages.indices {
        let message = messages[index]
        let (start, count) = (Int(message.payloadStart), Int(message.payloadCount))
        // The engine's ranges lie in what it read, and the room was counted from the same records.
        precondition(count <= source.count &- start && count <= target.count &- used)
        records.append(
            MQTTBatchRecord(
                payloadStart: UInt32(truncatingIfNeeded: used), payloadCount: message.payloadCount, topic: 0,
                flags: message.flags))
        let size = MemoryLayout<Piece>.size
        if count <= size, size <= source.count &- start, size <= target.count &- used {
            to.storeBytes(
                of: from.loadUnaligned(fromByteOffset: start, as: Piece.self), toByteOffset: used, as: Piece.self)
        } else if count > 0 {
            (to + used).copyMemory(from: from + start, byteCount: count)
        }
        used &+= count
    }
    return used
}

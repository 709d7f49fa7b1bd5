import MQTTCore
import Synchronization
import Transport
import Wire

/// The memory of a batch: the bytes of its messages, and a record of each. On the loop's thread until a batch has it.
struct MQTTBatchStorage {
    var bytes: [UInt8] = []
    /// Their offsets are into `bytes`.
    var records: [MQTTMessageRecord] = []

    /// The memory that its contents take, in bytes.
    var count: Int { bytes.count + records.count * MemoryLayout<MQTTMessageRecord>.stride }

    var capacity: Int { bytes.capacity + records.capacity * MemoryLayout<MQTTMessageRecord>.stride }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        records.removeAll(keepingCapacity: true)
    }

    /// Fills empty storage with all messages of a read, whose records it takes out of the effects.
    ///
    /// - Parameter owned: an array of the same bytes, which is kept if most of it is messages, or empty.
    mutating func takeAll(_ effects: inout MQTTEffects, of source: RawSpan, orKeeping owned: [UInt8] = []) {
        let messages = effects.messages
        guard let last = messages.last else { return }
        let end = last.range.upperBound
        if effects.messageBytes < end / 2 {
            // What is between the messages would take more room than they do.
            let places = Array(0..<UInt32(messages.count))
            fill(messages.span, places.span, of: source, orKeeping: owned)
        } else if !owned.isEmpty, effects.messageBytes >= owned.count / 2 {
            bytes = owned
            swap(&records, &effects.messages)
        } else {
            // Copying all bytes at once costs less than copying each message, and the records need no change.
            source.extracting(0..<end).append(to: &bytes)
            swap(&records, &effects.messages)
        }
    }

    /// Fills empty storage with the messages at some places of a read.
    ///
    /// - Parameter owned: an array of the same bytes, which is kept if most of it is these messages, or empty.
    mutating func fill(
        _ messages: Span<MQTTMessageRecord>, _ places: Span<UInt32>, of source: RawSpan, orKeeping owned: [UInt8] = []
    ) {
        records.reserveCapacity(places.count)
        if !owned.isEmpty {
            for index in places.indices { records.append(messages[Int(places[index])]) }
            if records.reduce(0, { $0 + $1.range.count }) >= owned.count / 2 {
                bytes = owned
                return
            }
            records.removeAll(keepingCapacity: true)
        }
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

import MQTTCore
import Synchronization
import Transport

/// Memory of large batches that were received and let go, for those to come: memory that the system gives and takes
/// back for every read costs more than parsing what was read.
///
/// One for each loop, of four MiB at most, which is given back when a connection of the loop has nothing to do.
final class MQTTBatchPool: Sendable {
    private struct State {
        var kept: [MQTTBatchStorage] = []
        var size = 0
    }

    private let state = Lock(State())
    private static let limit = 4 << 20

    /// Small ones come from malloc's own lists, very large ones would leave no room for others.
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

    /// Takes memory back. If somebody still holds a slice of it, whoever takes it next gets other memory: arrays are
    /// values.
    func give(_ storage: consuming MQTTBatchStorage) {
        let storage = storage
        state.withLock { state in
            guard state.size + storage.capacity <= Self.limit else { return }
            state.size += storage.capacity
            state.kept.append(storage)
        }
    }

    /// Gives everything back to the system.
    func trim() {
        let dropped = state.withLock { state in
            defer { state = State() }
            return state.kept
        }
        withExtendedLifetime(dropped) {}
    }
}

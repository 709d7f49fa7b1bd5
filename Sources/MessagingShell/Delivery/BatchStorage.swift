import MessagingWire
public import Synchronization
public import Transport

/// The memory of a batch: the bytes of its messages, and a record of each. On the loop's thread until a batch has it.
@usableFromInline
package struct BatchStorage<Record: Sendable>: Sendable {
    @usableFromInline package var bytes: [UInt8] = []
    /// Their offsets are into `bytes`.
    @usableFromInline package var records: [Record] = []

    @inlinable package init(bytes: [UInt8] = [], records: [Record] = []) {
        self.bytes = bytes
        self.records = records
    }

    @inlinable package var capacity: Int { bytes.capacity + records.capacity * MemoryLayout<Record>.stride }

    /// The memory of a batch with these arrays, in bytes, room that earlier uses have left included.
    @inlinable package var memory: Int {
        let stride = MemoryLayout<Record>.stride
        return Self.memory(of: bytes.count, in: bytes.capacity)
            + Self.memory(of: records.count * stride, in: records.capacity * stride) + Self.overhead
    }

    /// Does not count the bytes that malloc adds to an array that is about as large as its contents: they depend on all
    /// that the process has allocated before, and two runs of a simulation would pause at different messages. The room
    /// of others counts in powers of two, for the same reason.
    @inlinable static func memory(of count: Int, in capacity: Int) -> Int {
        if capacity <= 2 * count + 64 { return count }
        return 1 << (Int.bitWidth - (capacity - 1).leadingZeroBitCount)
    }

    /// What a batch takes beside its contents: its object, the heads of its arrays, its place in a queue, and what malloc
    /// adds to each. Most of a batch of one small message.
    @inlinable package static var overhead: Int { 256 }

    @inlinable
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        records.removeAll(keepingCapacity: true)
    }
}

/// Memory of large batches that were released, for later ones: allocating and freeing memory for every read costs more than
/// parsing what was read. From any thread.
///
/// There is one for each loop and protocol, of 4 MiB at most, which is freed as ``MemoryTrimming`` says, and when a connection
/// of the loop ends; until the next batch the memory of those that are released after it is freed too. Inlinable, so that a client's
/// module gets code of its own for its own records.
@usableFromInline
package final class BatchPool<Record: Sendable>: Sendable {
    @usableFromInline
    struct State: Sendable {
        @usableFromInline var kept: [BatchStorage<Record>] = []
        @usableFromInline var size = 0
        /// No task reads: batches that are released keep no memory.
        @usableFromInline var isIdle = false

        @inlinable init() {}
    }

    @usableFromInline let state: Lock<State>

    @inlinable package init() { state = Lock(State()) }

    @inlinable static var limit: Int { 4 << 20 }

    /// The least bytes of a batch whose memory is kept: malloc itself reuses that of smaller ones.
    @inlinable package static var minimumBytes: Int { 16 << 10 }

    /// Whether memory is kept; very large memory would leave no room for others.
    @inlinable
    package static func keeps(_ bytes: [UInt8]) -> Bool {
        bytes.capacity >= minimumBytes && bytes.capacity <= 1 << 20
    }

    /// Empty storage.
    @inlinable
    package func take() -> BatchStorage<Record> {
        var storage = state.withLock { state in
            state.isIdle = false
            guard let storage = state.kept.popLast() else { return BatchStorage<Record>() }
            state.size -= storage.capacity
            return storage
        }
        storage.removeAll()
        return storage
    }

    /// Takes memory back. If a slice of it is still in use, the next batch gets other memory, because arrays are values.
    @inlinable
    package func give(_ storage: consuming BatchStorage<Record>) {
        let storage = storage
        state.withLock { state in
            guard !state.isIdle, state.size + storage.capacity <= Self.limit else { return }
            state.size += storage.capacity
            state.kept.append(storage)
        }
    }

    /// The bytes that are kept now.
    package var keptBytes: Int { state.withLock { $0.size } }

    /// Frees all memory.
    @inlinable
    package func trim() {
        let dropped = state.withLock { state in
            let kept = state.kept
            state = State()
            state.isIdle = true
            return kept
        }
        withExtendedLifetime(dropped) {}
    }
}

/// When the memory is freed that large reads have left behind: ten to twenty seconds after the last of them. Neither keep alive
/// nor heart-beats tell that a connection is quiet: it may have none.
package struct MemoryTrimming: Sendable {
    /// `Int64.max` while there is nothing to free.
    package private(set) var deadline = Int64.max
    /// Whether there was another use since the deadline was set.
    private var isUsedAgain = false
    private static let patience: Int64 = 10_000_000_000

    package init() {}

    /// Memory was used that is worth freeing.
    package mutating func noteUse(at now: Int64) {
        // The deadline is not moved by each use: that would set the loop's timer each time.
        isUsedAgain = deadline != .max
        if !isUsedAgain { deadline = now.advanced(byNanoseconds: Self.patience) }
    }

    /// Whether the memory is to be freed now.
    package mutating func isDue(at now: Int64) -> Bool {
        guard now >= deadline else { return false }
        deadline = isUsedAgain ? now.advanced(byNanoseconds: Self.patience) : .max
        isUsedAgain = false
        return deadline == .max
    }
}
